import { randomUUID } from 'node:crypto';
import { exceedsDepth } from './depth.ts';

/**
 * A JSON value that is kept as its text: one from the database, which is answered as it was stored, or one of a client that
 * JavaScript would give back otherwise than it came, with numbers that are spelled differently or are no doubles
 * (`9007199254740993`, `1e-400`, `-0`, `1.0`), or with keys like `"2"` in another order. The text has no white space between
 * its tokens. Its parts are no properties of it, so that it is a leaf to whatever walks values.
 */
export class JsonText {
  readonly #text: string;

  constructor(text: string) {
    this.#text = text;
  }

  get text(): string {
    return this.#text;
  }

  /** What `JSON.parse` makes of it, each time anew. */
  get value(): unknown {
    return JSON.parse(this.#text);
  }

  /** To `JSON.stringify` it is a mark, in whose place `spliceTexts` puts the text. */
  toJSON(): string {
    return mark + (taken.push(this.#text) - 1);
  }
}

/** No client knows it, so that no string of theirs is taken for one of these. */
const mark = `${randomUUID()}:`;
const marks = new RegExp(`"${mark}(\\d+)"`, 'g');
/** The texts that `JSON.stringify` has met since texts were spliced last. */
let taken: string[] = [];

/** What `JSON.stringify` makes of a value, with the texts that are kept in it as they are. */
export function toJsonText(value: unknown): string {
  return toJsonParts(value).join('');
}

/** The same in parts, one behind the other: a large one need not be put together twice, as a text and as bytes. */
export function toJsonParts(value: unknown): readonly string[] {
  taken = [];
  return splitTexts(JSON.stringify(value));
}

/** Puts the texts that are kept into the JSON that `JSON.stringify` has just made. */
export function spliceTexts(json: string): string {
  return splitTexts(json).join('');
}

function splitTexts(json: string): readonly string[] {
  const texts = taken;
  if (texts.length === 0) return [json];
  taken = [];
  // The marks' numbers stand between the parts.
  return json.split(marks).map((part, index) => (index % 2 === 0 ? part : (texts[Number(part)] as string)));
}

/** The texts of values that JavaScript would give back otherwise. */
const texts = new WeakMap<object, () => Exact | undefined>();

/** Deeper values are refused wherever they are kept. */
const MAX_DEPTH = 1_000;

/** A text as `JSON.parse` has it; `exactOf` has the rest. Throws a SyntaxError. */
export function parseJson(text: string): unknown {
  const value: unknown = JSON.parse(text);
  if (typeof value === 'object' && value !== null && !isPlain(text)) {
    let exact: Exact | undefined;
    texts.set(value, () => {
      exact ??= exceedsDepth(value, MAX_DEPTH) ? undefined : readExact(text);
      return exact;
    });
  }
  return value;
}

/** A value as it is stored in the database. What is written here has no white space between its tokens; what others write may have. */
export function readJson(text: string): JsonText {
  return new JsonText(compact.test(text) ? text : text.replace(stringOrSpace, '$1'));
}

const compact = /^[^"\s]*(?:"[^"\\]*(?:\\.[^"\\]*)*"[^"\s]*)*$/;
const stringOrSpace = /("[^"\\]*(?:\\.[^"\\]*)*")|\s+/g;

/** What the text of a parsed value says, where JavaScript would give it back otherwise. */
export function exactOf(value: object): Exact | undefined {
  return texts.get(value)?.();
}

/** The member of a parsed value is taken from it: what is known of its text goes along. */
export function passText(parent: object, name: string): void {
  const member: unknown = (parent as Readonly<Record<string, unknown>>)[name];
  const read = texts.get(parent);
  if (read && typeof member === 'object' && member !== null) texts.set(member, () => exactMember(read(), name));
}

/** A JSON value as it is spelled: a leaf as its text, an object with its keys in their order. */
export type Exact = string | readonly Exact[] | ReadonlyMap<string, Exact>;

export function exactMember(exact: Exact | undefined, key: string | number): Exact | undefined {
  if (exact instanceof Map) return exact.get(String(key));
  return Array.isArray(exact) ? exact[Number(key)] : undefined;
}

/** A parsed value as it is to be kept: with its text, where JavaScript would give it back otherwise. */
export function keepText(value: unknown, exact: Exact | undefined): unknown {
  const text = exact === undefined ? undefined : exactText(exact);
  return text === undefined || isPlain(text) ? value : new JsonText(text);
}

/** The text of a value, of whose objects the members stand in the order of their names. */
export function sortedText({ text }: JsonText): string {
  return exactText(readExact(text), (members) => members.sort(([a], [b]) => (a < b ? -1 : 1)));
}

type Members = Array<[string, Exact]>;

function exactText(exact: Exact, order = (members: Members) => members): string {
  if (typeof exact === 'string') return exact;
  if (!(exact instanceof Map)) return `[${(exact as readonly Exact[]).map((item) => exactText(item, order)).join(',')}]`;
  return `{${order([...exact])
    .map(([key, item]) => `${JSON.stringify(key)}:${exactText(item, order)}`)
    .join(',')}}`;
}

/** Reads a text that `JSON.parse` has taken, so that nothing in it needs to be checked. */
function readExact(text: string): Exact {
  let at = 0;
  const skipSeparators = () => {
    while (separators.has(text.charCodeAt(at))) at += 1;
  };
  const read = (): Exact => {
    skipSeparators();
    const start = at;
    const unit = text.charCodeAt(at);
    if (unit === QUOTE) {
      at = endOfString(text, at);
      return JSON.stringify(JSON.parse(text.slice(start, at)));
    }
    if (unit === BRACKET || unit === BRACE) {
      at += 1;
      const items: Exact[] = [];
      const members = new Map<string, Exact>();
      for (skipSeparators(); !closing.has(text.charCodeAt(at)); skipSeparators()) {
        if (unit === BRACKET) items.push(read());
        else members.set(JSON.parse(read() as string), read());
      }
      at += 1;
      return unit === BRACKET ? items : members;
    }
    while (at < text.length && !separators.has(text.charCodeAt(at)) && !closing.has(text.charCodeAt(at))) at += 1;
    return text.slice(start, at);
  };
  return read();
}

/** Whether JavaScript gives back every number of a JSON text as it is spelled, and every key in its place. */
export function isPlain(text: string): boolean {
  for (let at = 0; at < text.length; ) {
    const unit = text.charCodeAt(at);
    if (unit === QUOTE) {
      const end = endOfString(text, at);
      if (isMoved(text, at, end)) return false;
      at = end;
    } else if (unit === MINUS || isDigit(unit)) {
      const end = endOfKept(text, at);
      if (end < 0) return false;
      at = end;
    } else at += 1;
  }
  return true;
}

/** So many digits are as exact as a double, and spelled in the same way. */
const SHORT_DIGITS = 15;
/** Behind so many zeros a fraction is spelled with an exponent. */
const MOST_ZEROS = 5;

/** Where a number ends that JavaScript spells in the same way; -1 for any other. What most numbers are is seen without making one. */
function endOfKept(text: string, start: number): number {
  const first = text.charCodeAt(start) === MINUS ? start + 1 : start;
  const whole = endOfDigits(text, first);
  const hasFraction = text.charCodeAt(whole) === POINT;
  const end = hasFraction ? endOfDigits(text, whole + 1) : whole;
  const isShort = end - first <= SHORT_DIGITS && !inNumber.has(text.charCodeAt(end));
  if (isShort && !hasFraction && first === start) return end;
  if (isShort && hasFraction && text.charCodeAt(end - 1) !== ZERO) {
    let zeros = 0;
    if (text.charCodeAt(first) === ZERO) while (text.charCodeAt(whole + 1 + zeros) === ZERO) zeros += 1;
    if (zeros <= MOST_ZEROS) return end;
  }
  let last = end;
  while (inNumber.has(text.charCodeAt(last))) last += 1;
  const number = text.slice(start, last);
  return String(Number(number)) === number && number !== '-0' ? last : -1;
}

function endOfDigits(text: string, start: number): number {
  let at = start;
  while (isDigit(text.charCodeAt(at))) at += 1;
  return at;
}

/** Whether a string may be a key that is a whole number: JavaScript has those in front, by size. */
function isMoved(text: string, start: number, end: number): boolean {
  const first = text.charCodeAt(start + 1);
  if (!isDigit(first) && first !== BACKSLASH) return false;
  let at = end;
  while (separators.has(text.charCodeAt(at)) && text.charCodeAt(at) !== COLON) at += 1;
  return text.charCodeAt(at) === COLON && /^\d{1,10}$/.test(JSON.parse(text.slice(start, end)));
}

/** Where a string ends that begins with the quote at `start`. */
function endOfString(text: string, start: number): number {
  for (let at = text.indexOf('"', start + 1); at >= 0; at = text.indexOf('"', at + 1)) {
    let backslashes = 0;
    while (text.charCodeAt(at - 1 - backslashes) === BACKSLASH) backslashes += 1;
    if (backslashes % 2 === 0) return at + 1;
  }
  return text.length;
}

function isDigit(unit: number): boolean {
  return unit >= 0x30 && unit <= 0x39;
}

const [QUOTE, MINUS, POINT, ZERO, COLON, BRACKET, BACKSLASH, BRACE] = [0x22, 0x2d, 0x2e, 0x30, 0x3a, 0x5b, 0x5c, 0x7b];
const unitsOf = (text: string): ReadonlySet<number> => new Set([...text].map((character) => character.charCodeAt(0)));
const separators = unitsOf(' \t\r\n,:');
const closing = unitsOf(']}');
const inNumber = unitsOf('0123456789.eE+-');
