import { randomUUID } from 'node:crypto';
import { parseValue } from './read.ts';
import { removeSpace } from './scan.ts';

/**
 * A JSON value as its text, without white space between its tokens: a value from the database, which is answered as it is
 * stored, or a client's value that `JSON.parse` and `JSON.stringify` would change, since its numbers are spelled differently or
 * are not doubles (`9007199254740993`, `1e-400`, `-0`, `1.0`), or since keys like `"2"` would move. It has no enumerable
 * properties, so that code that walks values treats it as a leaf.
 */
export class JsonText {
  readonly #text: string;

  constructor(text: string) {
    this.#text = text;
  }

  /** The text of a JSON column. Portico writes it without white space between tokens; other writers may not. */
  static ofColumn(text: string): JsonText {
    return new JsonText(text.length <= MAX_MATCHED && compact.test(text) ? text : removeSpace(text));
  }

  get text(): string {
    return this.#text;
  }

  /** The parsed value. Each access parses the text again. */
  get value(): unknown {
    return parseValue(this.#text);
  }

  /** Returns a placeholder, which `spliceTexts` replaces with the text. */
  toJSON(): string {
    return placeholderPrefix + (pendingTexts.push(this.#text) - 1);
  }
}

/** Random, so that no string of a client can be mistaken for a placeholder. */
const placeholderPrefix = `${randomUUID()}:`;
const placeholders = new RegExp(`"${placeholderPrefix}(\\d+)"`, 'g');
/**
 * The texts that `JSON.stringify` has replaced with placeholders since the last splice; a placeholder ends with an index. One
 * list for all: whoever stringifies splices at once, without anything awaited in between.
 */
let pendingTexts: string[] = [];

/** `JSON.stringify`, with the text of every `JsonText` as it is. */
export function stringifyJson(value: unknown): string {
  return stringifyJsonParts(value).join('');
}

/** The same as consecutive parts, so that a large text need not be joined before it is encoded to bytes. */
export function stringifyJsonParts(value: unknown): readonly string[] {
  pendingTexts = [];
  return splitTexts(JSON.stringify(value));
}

/** Replaces the placeholders in the JSON that `JSON.stringify` has just returned. */
export function spliceTexts(json: string): string {
  return splitTexts(json).join('');
}

function splitTexts(json: string): readonly string[] {
  const texts = pendingTexts;
  if (texts.length === 0) return [json];
  pendingTexts = [];
  // Every second part is the captured index of a placeholder.
  return json.split(placeholders).map((part, index) => (index % 2 === 0 ? part : (texts[Number(part)] as string)));
}

/** The expression finds what needs no change: it is faster than a scan, and takes memory for each string and escape. */
const compact = /^[^"\s]*(?:"[^"\\]*(?:\\.[^"\\]*)*"[^"\s]*)*$/;
/** The longest text for which it is used, in UTF-16 units. */
const MAX_MATCHED = 1024 * 1024;
