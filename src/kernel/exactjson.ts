import { BRACE, BRACKET, closers, endOfString, QUOTE, separators, survivesRoundTrip } from './jsonscan.ts';
import { JsonText } from './jsontext.ts';

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
