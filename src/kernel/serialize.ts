import v8 from 'node:v8';
import { JsonText } from './json/text.ts';

/**
 * Serializes a value in V8's format, which preserves dates and bytes, and which later versions of Node read, too. A `JsonText`
 * is stored as a map with its text: no serialized value contains other maps.
 */
export function serialize(value: unknown): Uint8Array {
  return v8.serialize(replace(value, (part) => (part instanceof JsonText ? new Map([[TEXT, part.text]]) : undefined)));
}

export function deserialize(bytes: Uint8Array): unknown {
  return replace(v8.deserialize(bytes), (part) => (part instanceof Map ? new JsonText(part.get(TEXT)) : undefined));
}

const TEXT = 'text';

/** A copy in which `replacementOf` replaces objects. Recurses as deep as the value, which is a response of ours. */
function replace(value: unknown, replacementOf: (part: object) => object | undefined): unknown {
  if (typeof value !== 'object' || value === null || value instanceof Date || ArrayBuffer.isView(value)) return value;
  const replacement = replacementOf(value);
  if (replacement) return replacement;
  if (Array.isArray(value)) return value.map((item) => replace(item, replacementOf));
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, replace(item, replacementOf)]));
}
