import { type ExactJson, JsonPart, parseValue, readExact } from './read.ts';
import { survivesRoundTrip } from './scan.ts';
import { JsonText } from './text.ts';

/** The texts of parsed values that `JSON.stringify` would change: a function, so that what leads to one is looked for on demand. */
const parts = new WeakMap<object, () => JsonPart | undefined>();

/** `parseValue`, which also remembers what it loses for `findJsonPart`. Throws a SyntaxError. */
export function parseTracked(text: string): unknown {
  const value = parseValue(text);
  if (typeof value === 'object' && value !== null && !survivesRoundTrip(text)) {
    const part = new JsonPart(text);
    parts.set(value, () => part);
  }
  return value;
}

/** The text of a value from `parseTracked`; undefined where `JSON.stringify` reproduces it. */
export function findJsonPart(value: object): JsonPart | undefined {
  return parts.get(value)?.();
}

/** Forgets the text of a value, which is in memory as long as the value. */
export function forgetJsonPart(value: object): void {
  parts.delete(value);
}

/**
 * Makes `findJsonPart` work for a member of a parsed value on its own, found by the keys of the path to it, and no longer for the
 * whole value: whoever holds that does not hold the text.
 */
export function moveJsonPart(root: object, ...path: readonly string[]): void {
  const findRoot = parts.get(root);
  if (!findRoot) return;
  parts.delete(root);
  let value: unknown = root;
  for (const key of path) value = (value as Readonly<Record<string, unknown>> | null | undefined)?.[key];
  if (typeof value !== 'object' || value === null) return;
  let member: JsonPart | undefined;
  parts.set(value, () => {
    member ??= path.reduce<JsonPart | undefined>((part, key) => part?.member(key), findRoot());
    return member;
  });
}

/** A parsed value in the form in which it is stored: a `JsonText` where `JSON.stringify` would change it. */
export function withExactText(value: unknown, part: JsonPart | undefined): unknown {
  const text = part && exactText(part.read());
  return text === undefined || survivesRoundTrip(text) ? value : new JsonText(text);
}

/** The text of a value with the members of every object sorted by name. */
export function sortedText({ text }: JsonText): string {
  if (!text.includes('{')) return text;
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
