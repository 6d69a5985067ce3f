import { BRACE, BRACKET, closers, endOfString, hasEscapedKey, isDigit, MINUS, QUOTE, separators } from './scan.ts';

/** A JSON value as it is spelled: a leaf is its text, an object a map with its keys in their order. */
export type ExactJson = string | readonly ExactJson[] | ReadonlyMap<string, ExactJson>;

/** Deeper values are rejected wherever they would be stored: each is one leaf of the exact form. */
const MAX_DEPTH = 1_000;

/** Whether this V8, once it has parsed an object with the key `\`, may read `"\n"` or `"\u0061"` as that key (nodejs/node#63785). */
const CONFUSES_ESCAPED_KEYS = Number.parseInt(process.versions.node, 10) >= 23;

/** `JSON.parse`, also of keys that are written with an escape, which take ten times as long where V8 confuses them. Throws a SyntaxError. */
export function parseValue(text: string, confusesEscapedKeys = CONFUSES_ESCAPED_KEYS): unknown {
  const value: unknown = JSON.parse(text);
  return confusesEscapedKeys && hasEscapedKey(text) ? toValue(readExact(text)) : value;
}

function toValue(exact: ExactJson): unknown {
  if (typeof exact === 'string') return toLeaf(exact);
  if (exact instanceof Map) return Object.fromEntries([...exact].map(([key, item]) => [key, toValue(item)]));
  return (exact as readonly ExactJson[]).map(toValue);
}

/** The value of a leaf. `JSON.parse` takes several times as long for a string or a number, of which a text may have hundreds of thousands. */
function toLeaf(leaf: string): unknown {
  const unit = leaf.charCodeAt(0);
  if (unit === QUOTE) return readString(leaf);
  return unit === MINUS || isDigit(unit) ? Number(leaf) : JSON.parse(leaf);
}

/** The longest part of a string that V8 copies: a longer one would keep the whole text in memory. */
const MAX_COPIED = 12;

/** A backslash, and the surrogates, of which `JSON.stringify` escapes a lone one. A string without them is spelled as its value is. */
const respelled = /[\\\ud800-\udfff]/;

/** The value of a string. */
function readString(leaf: string): string {
  return leaf.length > MAX_COPIED + 2 || respelled.test(leaf) ? JSON.parse(leaf) : leaf.slice(1, -1);
}

/** A string as `JSON.stringify` spells it. */
function respell(leaf: string): string {
  return respelled.test(leaf) ? JSON.stringify(JSON.parse(leaf)) : leaf;
}

/** Reads a text that `JSON.parse` has accepted, so that it needs no validation, or the value in it that begins at `start`. */
export function readExact(text: string, start = 0): ExactJson {
  let at = start;
  const takeString = () => {
    const begin = at;
    at = endOfString(text, at);
    return text.slice(begin, at);
  };
  const readParts = (isList: boolean, depth: number): ExactJson => {
    at += 1;
    const items: ExactJson[] = [];
    const members = new Map<string, ExactJson>();
    for (at = endOfSeparators(text, at); !closers.has(text.charCodeAt(at)); at = endOfSeparators(text, at)) {
      if (isList) items.push(read(depth));
      else members.set(readString(takeString()), read(depth));
    }
    at += 1;
    return isList ? items : members;
  };
  const read = (depth: number): ExactJson => {
    at = endOfSeparators(text, at);
    const begin = at;
    const unit = text.charCodeAt(at);
    if (unit === QUOTE) return respell(takeString());
    if (hasParts(unit) && depth <= MAX_DEPTH) return readParts(unit === BRACKET, depth + 1);
    at = endOfValue(text, at);
    return text.slice(begin, at);
  };
  return read(1);
}

/** A value in a text that `JSON.parse` has accepted. It is found, and its members are, without reading those beside them. */
export class JsonPart {
  readonly #text: string;
  readonly #start: number;
  /** Where the members begin, by key or index; null until one is looked for. */
  #starts: ReadonlyMap<string, number> | null = null;

  constructor(text: string, start = 0) {
    this.#text = text;
    this.#start = start;
  }

  /** The exact form of the value. Each call reads the text again. */
  read(): ExactJson {
    return readExact(this.#text, this.#start);
  }

  /** The member of an object, or the item of a list; of two members with the same key the last. */
  member(key: string | number): JsonPart | undefined {
    this.#starts ??= findMembers(this.#text, this.#start);
    const start = this.#starts.get(String(key));
    return start === undefined ? undefined : new JsonPart(this.#text, start);
  }
}

/** Where the members of the value that begins at `start` begin, by key or index; a leaf has none. */
function findMembers(text: string, start: number): ReadonlyMap<string, number> {
  const starts = new Map<string, number>();
  const begin = endOfSeparators(text, start);
  const unit = text.charCodeAt(begin);
  if (!hasParts(unit)) return starts;
  for (let at = endOfSeparators(text, begin + 1); !closers.has(text.charCodeAt(at)); at = endOfSeparators(text, at)) {
    let key = String(starts.size);
    if (unit === BRACE) {
      const end = endOfString(text, at);
      key = readString(text.slice(at, end));
      at = endOfSeparators(text, end);
    }
    starts.set(key, at);
    at = endOfValue(text, at);
  }
  return starts;
}

function endOfSeparators(text: string, start: number): number {
  let at = start;
  while (separators.has(text.charCodeAt(at))) at += 1;
  return at;
}

function hasParts(unit: number): boolean {
  return unit === BRACKET || unit === BRACE;
}

/** The end of the value that begins at `start`. */
function endOfValue(text: string, start: number): number {
  let at = start;
  if (!hasParts(text.charCodeAt(at)) && text.charCodeAt(at) !== QUOTE) {
    while (at < text.length && !separators.has(text.charCodeAt(at)) && !closers.has(text.charCodeAt(at))) at += 1;
    return at;
  }
  let depth = 0;
  do {
    const unit = text.charCodeAt(at);
    if (hasParts(unit)) depth += 1;
    else if (closers.has(unit)) depth -= 1;
    at = unit === QUOTE ? endOfString(text, at) : at + 1;
  } while (depth > 0);
  return at;
}
