import { exceedsDepth } from './depth.ts';
import { JsonText, sortedText, toJsonText } from './jsontext.ts';
import { textProblem } from './text.ts';

const MAX_DEPTH = 500;

/**
 * Why a JSON value could not be kept exactly as it was sent, or null.
 * Walks without recursion: a value nested deeper than the stack must be refused, not crash.
 */
export function jsonProblem(given: unknown, maxBytes: number): string | null {
  const value = given instanceof JsonText ? given.value : given;
  if (exceedsDepth(value, MAX_DEPTH)) return `Nested deeper than ${MAX_DEPTH} levels.`;
  const open = [value];
  while (open.length > 0) {
    const part = open.pop();
    if (typeof part === 'number' && !Number.isFinite(part)) return 'A number is out of range.';
    if (typeof part === 'string') {
      const problem = textProblem(part);
      if (problem) return problem;
    } else if (Array.isArray(part)) {
      for (const item of part) open.push(item);
    } else if (typeof part === 'object' && part !== null) {
      for (const [key, item] of Object.entries(part)) {
        const problem = textProblem(key);
        if (problem) return problem;
        open.push(item);
      }
    }
  }
  if (Buffer.byteLength(toJsonText(given)) > maxBytes) return `Ensure this value takes no more than ${maxBytes} bytes.`;
  return null;
}

/** The text of a JSON value, the same for equal values: of an object the fields stand in the order of their names. */
export function canonicalJson(value: unknown): string {
  if (value instanceof JsonText) return sortedText(value);
  if (typeof value !== 'object' || value === null || value instanceof Date) return JSON.stringify(value) ?? 'null';
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join()}]`;
  const fields = Object.entries(value).filter(([, item]) => item !== undefined);
  const texts = fields.sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, item]) => `${JSON.stringify(name)}:${canonicalJson(item)}`);
  return `{${texts.join()}}`;
}
