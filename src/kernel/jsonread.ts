import { BRACE, BRACKET, closers, endOfString, hasEscapedKey, isDigit, MINUS, QUOTE, separators } from './jsonscan.ts';

/** A JSON value as it is spelled: a leaf is its text, an object a map with its keys in their order. */
export type ExactJson = string | readonly ExactJson[] | ReadonlyMap<string, ExactJson>;

/** Deeper values are rejected wherever they would be stored: each is one leaf of the exact form. */
const MAX_DEPTH = 1_000;

/** Whether this V8, once it has parsed an object with the key `\`, may read `"\n"` or `"\u0061"` as that key (nodejs/node#63785). */
const CONFUSES_ESCAPED_KEYS = Number.parseInt(process.versions.node, 10) >= 23;

/** `JSON.parse`, also of keys that are written with an escape, which take ten times as long where V8 confuses them. Throws a SyntaxError. */
export function readValue(text: string, confusesEscapedKeys = CONFUSES_ESCAPED_KEYS): unknown {
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

/** Reads a text that `JSON.parse` has accepted, so that it needs no validation. */
export function readExact(text: string): ExactJson {
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
  const takeString = () => {
    const start = at;
    at = endOfString(text, at);
    return text.slice(start, at);
  };
  const skipLeaf = () => {
    while (at < text.length && !separators.has(text.charCodeAt(at)) && !closers.has(text.charCodeAt(at))) at += 1;
  };
  const readParts = (isList: boolean, depth: number): ExactJson => {
    at += 1;
    const items: ExactJson[] = [];
    const members = new Map<string, ExactJson>();
    for (skipSeparators(); !closers.has(text.charCodeAt(at)); skipSeparators()) {
      if (isList) items.push(read(depth));
      else members.set(readString(takeString()), read(depth));
    }
    at += 1;
    return isList ? items : members;
  };
  const read = (depth: number): ExactJson => {
    skipSeparators();
    const start = at;
    const unit = text.charCodeAt(at);
    if (unit === QUOTE) return respell(takeString());
    const hasParts = unit === BRACKET || unit === BRACE;
    if (hasParts && depth <= MAX_DEPTH) return readParts(unit === BRACKET, depth + 1);
    if (hasParts) skipValue();
    else skipLeaf();
    return text.slice(start, at);
  };
  return read(1);
}
