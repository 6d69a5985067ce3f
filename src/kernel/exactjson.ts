import { type ExactJson, readExact, readValue } from './jsonread.ts';
import { survivesRoundTrip } from './jsonscan.ts';
import { JsonText } from './jsontext.ts';

/** The exact form of parsed values that `JSON.stringify` would change, computed on demand. */
const exactForms = new WeakMap<object, () => ExactJson | undefined>();

/** `readValue`, which also remembers what it loses for `readExactJson`. Throws a SyntaxError. */
export function parseJson(text: string): unknown {
  const value = readValue(text);
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

/** Forgets the exact form of a value, which is in memory as long as the value. */
export function forgetExactJson(value: object): void {
  exactForms.delete(value);
}

/**
 * Makes `readExactJson` work for a member of a parsed value on its own, found by the keys of the path to it, and no longer for the
 * whole value: whoever holds that does not hold the text.
 */
export function moveExactJson(root: object, ...path: readonly string[]): void {
  const readRoot = exactForms.get(root);
  if (!readRoot) return;
  exactForms.delete(root);
  let member: unknown = root;
  for (const key of path) member = (member as Readonly<Record<string, unknown>> | null | undefined)?.[key];
  if (typeof member === 'object' && member !== null)
    exactForms.set(member, () => path.reduce<ExactJson | undefined>(exactMember, readRoot()));
}

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
