import { exceedsDepth } from './depth.ts';
import { sortedText } from './exactjson.ts';
import { JsonText } from './jsontext.ts';
import { exceedsBytes } from './size.ts';
import { textProblem } from './text.ts';

const MAX_DEPTH = 500;

/**
 * Why a JSON value cannot be stored exactly as it was sent, or null.
 * Walks without recursion: a value nested deeper than the stack must be rejected, not crash the process.
 */
export function jsonProblem(input: unknown, maxBytes: number): string | null {
  const value = input instanceof JsonText ? input.value : input;
  if (exceedsDepth(value, MAX_DEPTH)) return `Nested deeper than ${MAX_DEPTH} levels.`;
  const pending = [value];
  while (pending.length > 0) {
    const part = pending.pop();
    const problem = ownProblem(part);
    if (problem) return problem;
    if (typeof part === 'object' && part !== null) for (const item of Object.values(part)) pending.push(item);
  }
  return exceedsBytes(input, maxBytes) ? sizeProblem(maxBytes) : null;
}

/** The problem of a number, a text, or the keys of an object. */
function ownProblem(part: unknown): string | null {
  if (typeof part === 'number') return Number.isFinite(part) ? null : 'A number is out of range.';
  if (typeof part === 'string') return textProblem(part);
  if (typeof part !== 'object' || part === null || Array.isArray(part)) return null;
  for (const key of Object.keys(part)) {
    const problem = textProblem(key);
    if (problem) return problem;
  }
  return null;
}

export const sizeProblem = (maxBytes: number): string => `Ensure this value takes no more than ${maxBytes} bytes.`;

/** A JSON value as text, the same for equal values: the fields of an object are sorted by name. */
export function canonicalJson(value: unknown): string {
  if (value instanceof JsonText) return sortedText(value);
  if (typeof value !== 'object' || value === null || value instanceof Date) return JSON.stringify(value) ?? 'null';
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join()}]`;
  const fields = Object.entries(value).filter(([, item]) => item !== undefined);
  const texts = fields.sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, item]) => `${JSON.stringify(name)}:${canonicalJson(item)}`);
  return `{${texts.join()}}`;
}
