import { randomUUID } from 'node:crypto';

/**
 * A JSON value as its text, without white space between its tokens: a value from the database, which is answered as it is
 * stored, or a client's value that `JSON.parse` and `JSON.stringify` would change, since its numbers are spelled differently or
 * are no doubles (`9007199254740993`, `1e-400`, `-0`, `1.0`), or since keys like `"2"` would move. It has no enumerable
 * properties, so that code that walks values treats it as a leaf.
 */
export class JsonText {
  readonly #text: string;

  constructor(text: string) {
    this.#text = text;
  }

  get text(): string {
    return this.#text;
  }

  /** The parsed value. Each access parses the text again. */
  get value(): unknown {
    return JSON.parse(this.#text);
  }

  /** Returns a placeholder, which `spliceTexts` replaces with the text. */
  toJSON(): string {
    return placeholderPrefix + (pendingTexts.push(this.#text) - 1);
  }
}

/** Random, so that no string of a client can be mistaken for a placeholder. */
const placeholderPrefix = `${randomUUID()}:`;
const placeholders = new RegExp(`"${placeholderPrefix}(\\d+)"`, 'g');
/** The texts that `JSON.stringify` has replaced with placeholders since the last splice; a placeholder ends with an index. */
let pendingTexts: string[] = [];

/** `JSON.stringify`, with the text of every `JsonText` as it is. */
export function toJsonText(value: unknown): string {
  return toJsonParts(value).join('');
}

/** The same as consecutive parts, so that a large text need not be joined before it is encoded to bytes. */
export function toJsonParts(value: unknown): readonly string[] {
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

/** The exact form of parsed values that `JSON.stringify` would change, computed on demand. */
const exactForms = new WeakMap<object, () => ExactJson | undefined>();

/** Deeper values are rejected wherever they would be stored: each is one leaf of the exact form. */
const MAX_DEPTH = 1_000;

/** `JSON.parse`, which also remembers what it loses for `readExactJson`. Throws a SyntaxError. */
export function parseJson(text: string): unknown {
  const value: unknown = JSON.parse(text);
  if (typeof value === 'object' && value !== null && !survivesRoundTrip(text)) {
    let exact: ExactJson | undefined;
    exactForms.set(value, () => {
      exact ??= readExact(text);
      return exact;
    });
  }
  return value;
}

/** The text of a JSON column. Portico writes it without white space between tokens; other writers may not. */
export function readJson(text: string): JsonText {
  return new JsonText(compact.test(text) ? text : text.replace(stringOrSpace, '$1'));
}

const compact = /^[^"\s]*(?:"[^"\\]*(?:\\.[^"\\]*)*"[^"\s]*)*$/;
const stringOrSpace = /("[^"\\]*(?:\\.[^"\\]*)*")|\s+/g;

/** The exact form of a value from `parseJson`; undefined where `JSON.stringify` reproduces the text. */
export function readExactJson(value: object): ExactJson | undefined {
  return exactForms.get(value)?.();
}

/** Makes `readExactJson` work for a member of a parsed value on its own. */
export function inheritExactJson(parent: object, name: string): void {
  const member: unknown = (parent as Readonly<Record<string, unknown>>)[name];
  const readParent = exactForms.get(parent);
  if (readParent && typeof member === 'object' && member !== null) exactForms.set(member, () => exactMember(readParent(), name));
}

/** A JSON value as it is spelled: a leaf is its text, an object a map with its keys in their order. */
export type ExactJson = string | readonly ExactJson[] | ReadonlyMap<string, ExactJson>;

export function exactMember(exact: ExactJson | undefined, key: string | number): ExactJson | undefined {
  if (exact instanceof Map) return exact.get(String(key));
  return Array.isArray(exact) ? exact[Number(key)] : undefined;
}

/** A parsed value in the form in which it is stored: a `JsonText` where `JSON.stringify` would change it. */
export function withExactText(value: unknown, exact: ExactJson | undefined): unknown {
  const text = exact === undefined ? undefined : exactText(exact);
  return text === undefined || survivesRoundTrip(text) ? value : new JsonText(text);
}

/** The text of a value with the members of every object sorted by name. */
export function sortedText({ text }: JsonText): string {
  return exactText(readExact(text), (members) => members.sort(([a], [b]) => (a < b ? -1 : 1)));
}

type Members = Array<[string, ExactJson]>;

function exactText(exact: ExactJson, order = (members: Members) => members): string {
  if (typeof exact === 'string') return exact;
  if (!(exact instanceof Map)) return `[${(exact as readonly ExactJson[]).map((item) => exactText(item, order)).join(',')}]`;
  return `{${order([...exact])
    .map(([key, item]) => `${JSON.stringify(key)}:${exactText(item, order)}`)
    .join(',')}}`;
}

/** Reads a text that `JSON.parse` has accepted, so that it needs no validation. */
function readExact(text: string): ExactJson {
  let at = 0;
  const skipSeparators = () => {
    while (separators.has(text.charCodeAt(at))) at += 1;
  };
  const skipValue = () => {
    let depth = 0;
    do {
      const unit = text.charCodeAt(at);
      if (unit === BRACKET || unit === BRACE) depth += 1;
      else if (closers.has(unit)) depth -= 1;
      at = unit === QUOTE ? endOfString(text, at) : at + 1;
    } while (depth > 0);
  };
  const read = (depth: number): ExactJson => {
    skipSeparators();
    const start = at;
    const unit = text.charCodeAt(at);
    if (unit === QUOTE) {
      at = endOfString(text, at);
      return JSON.stringify(JSON.parse(text.slice(start, at)));
    }
    if (unit === BRACKET || unit === BRACE) {
      if (depth > MAX_DEPTH) {
        skipValue();
        return text.slice(start, at);
      }
      at += 1;
      const items: ExactJson[] = [];
      const members = new Map<string, ExactJson>();
      for (skipSeparators(); !closers.has(text.charCodeAt(at)); skipSeparators()) {
        if (unit === BRACKET) items.push(read(depth + 1));
        else members.set(JSON.parse(read(depth) as string), read(depth + 1));
      }
      at += 1;
      return unit === BRACKET ? items : members;
    }
    while (at < text.length && !separators.has(text.charCodeAt(at)) && !closers.has(text.charCodeAt(at))) at += 1;
    return text.slice(start, at);
  };
  return read(1);
}

/** The number of lists, objects and fields in a JSON text, without parsing it. */
export function countParts(text: string): number {
  let count = 0;
  for (let at = 0; at < text.length; ) {
    const unit = text.charCodeAt(at);
    if (unit === BRACKET || unit === BRACE || unit === COLON) count += 1;
    at = unit === QUOTE ? endOfString(text, at) : at + 1;
  }
  return count;
}

/** Whether `JSON.parse` and `JSON.stringify` preserve the spelling of every number of a JSON text and the position of every key. */
export function survivesRoundTrip(text: string): boolean {
  for (let at = 0; at < text.length; ) {
    const unit = text.charCodeAt(at);
    if (unit === QUOTE) {
      const end = endOfString(text, at);
      if (isMovedKey(text, at, end)) return false;
      at = end;
    } else if (unit === MINUS || isDigit(unit)) {
      const end = endOfPreservedNumber(text, at);
      if (end < 0) return false;
      at = end;
    } else at += 1;
  }
  return true;
}

/** A double represents any number of so many digits exactly, and JavaScript spells it in the same way. */
const SHORT_DIGITS = 15;
/** JavaScript spells a fraction with more zeros behind the point with an exponent. */
const MAX_ZEROS = 5;

/** The end of a number that JavaScript spells in the same way, or -1. Most numbers are recognized without being parsed. */
function endOfPreservedNumber(text: string, start: number): number {
  const first = text.charCodeAt(start) === MINUS ? start + 1 : start;
  const whole = endOfDigits(text, first);
  const hasFraction = text.charCodeAt(whole) === POINT;
  const end = hasFraction ? endOfDigits(text, whole + 1) : whole;
  const isShort = end - first <= SHORT_DIGITS && !numberUnits.has(text.charCodeAt(end));
  if (isShort && !hasFraction && first === start) return end;
  if (isShort && hasFraction && text.charCodeAt(end - 1) !== ZERO) {
    let zeros = 0;
    if (text.charCodeAt(first) === ZERO) while (text.charCodeAt(whole + 1 + zeros) === ZERO) zeros += 1;
    if (zeros <= MAX_ZEROS) return end;
  }
  let last = end;
  while (numberUnits.has(text.charCodeAt(last))) last += 1;
  const number = text.slice(start, last);
  return String(Number(number)) === number && number !== '-0' ? last : -1;
}

function endOfDigits(text: string, start: number): number {
  let at = start;
  while (isDigit(text.charCodeAt(at))) at += 1;
  return at;
}

/** Whether a string is a key that may be an array index: JavaScript moves those to the front, in numeric order. */
function isMovedKey(text: string, start: number, end: number): boolean {
  const first = text.charCodeAt(start + 1);
  if (!isDigit(first) && first !== BACKSLASH) return false;
  let at = end;
  while (separators.has(text.charCodeAt(at)) && text.charCodeAt(at) !== COLON) at += 1;
  return text.charCodeAt(at) === COLON && /^\d{1,10}$/.test(JSON.parse(text.slice(start, end)));
}

/** The end of the string whose opening quote is at `start`. */
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
const codeUnits = (text: string): ReadonlySet<number> => new Set([...text].map((character) => character.charCodeAt(0)));
const separators = codeUnits(' \t\r\n,:');
const closers = codeUnits(']}');
const numberUnits = codeUnits('0123456789.eE+-');
