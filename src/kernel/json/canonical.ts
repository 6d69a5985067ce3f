import { exceedsBytes } from '../size.ts';
import { textProblem } from '../text.ts';
import { exceedsDepth, MAX_JSON_DEPTH } from './depth.ts';
import { sortedText } from './exact.ts';
import { JsonText } from './text.ts';

/** Why a JSON value cannot be stored exactly as it was sent, or null. */
export function jsonProblem(input: unknown, maxBytes: number): string | null {
  const value = input instanceof JsonText ? input.value : input;
  if (exceedsDepth(value, MAX_JSON_DEPTH)) return `Nested deeper than ${MAX_JSON_DEPTH} levels.`;
  return contentProblem(value) ?? (exceedsBytes(input, maxBytes) ? sizeProblem(maxBytes) : null);
}

/** The problem of a number, a text or a key in a value, whose depth is limited. */
function contentProblem(value: unknown): string | null {
  if (typeof value === 'number') return Number.isFinite(value) ? null : 'A number is out of range.';
  if (typeof value === 'string') return textProblem(value);
  if (typeof value !== 'object' || value === null) return null;
  if (Array.isArray(value)) return firstProblem(value);
  return firstProblem(Object.keys(value)) ?? firstProblem(Object.values(value));
}

function firstProblem(parts: readonly unknown[]): string | null {
  for (const part of parts) {
    const problem = contentProblem(part);
    if (problem) return problem;
  }
  return null;
}

export const sizeProblem = (maxBytes: number): string => `Ensure this value takes no more than ${maxBytes} bytes.`;

/** A text that `canonicalJson` has returned, as a part of another value. */
export class CanonicalText {
  constructor(readonly text: string) {}
}

/** A JSON value as text, the same for equal values: the fields of an object are sorted by name. */
export function canonicalJson(value: unknown): string {
  if (value instanceof CanonicalText) return value.text;
  if (value instanceof JsonText) return sortedText(value);
  if (typeof value !== 'object' || value === null || value instanceof Date) return JSON.stringify(value) ?? 'null';
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join()}]`;
  const fields = Object.entries(value).filter(([, item]) => item !== undefined);
  const texts = fields.sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, item]) => `${JSON.stringify(name)}:${canonicalJson(item)}`);
  return `{${texts.join()}}`;
}
