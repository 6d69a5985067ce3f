import { JsonText } from './json/text.ts';

/**
 * Whether a value takes more than `maxBytes` as JSON text in UTF-8, without building the text. Most responses are far from the
 * bound, so the first pass, without recursion, computes a lower and an upper limit of the size and stops early; only a value
 * in between is measured to the byte.
 */
export function exceedsBytes(value: unknown, maxBytes: number): boolean {
  const { minBytes, maxRest } = estimateBytes(value, maxBytes, leafBytes);
  if (minBytes > maxBytes) return true;
  return minBytes + maxRest > maxBytes && findOverflow(value, maxBytes) !== null;
}

/** Whether a parsed value takes more than `maxBytes` however its numbers are spelled: `1e20` is shorter than what JavaScript makes of it. */
export function exceedsBytesInAnySpelling(value: unknown, maxBytes: number): boolean {
  const bytesOf = (leaf: unknown) => (typeof leaf === 'number' ? 1 : leafBytes(leaf));
  return estimateBytes(value, maxBytes, bytesOf).minBytes > maxBytes;
}

/** Limits of the size of a value, whose leaves other than texts are measured by `bytesOf`. Stops once the lower one exceeds `maxBytes`. */
function estimateBytes(value: unknown, maxBytes: number, bytesOf: (leaf: unknown) => number): { minBytes: number; maxRest: number } {
  const pending: unknown[] = [value];
  let minBytes = 0;
  /** The most that the value may take besides. */
  let maxRest = 0;
  const addText = (text: string) => {
    minBytes += text.length;
    maxRest += text.length * (MAX_CHARACTER_BYTES - 1);
  };
  while (pending.length > 0 && minBytes <= maxBytes) {
    const part = jsonOf(pending.pop());
    if (part instanceof JsonText) addText(part.text);
    else if (typeof part === 'string') {
      minBytes += 2;
      addText(part);
    } else if (typeof part !== 'object' || part === null) minBytes += bytesOf(part);
    else if (Array.isArray(part)) {
      // The brackets, and one comma fewer than there are items.
      minBytes += 1 + Math.max(1, part.length);
      for (const item of part) pending.push(item);
    } else {
      let members = 0;
      for (const name in part) {
        const item = (part as Readonly<Record<string, unknown>>)[name];
        if (item === undefined) continue;
        members += 1;
        addText(name);
        pending.push(item);
      }
      // The braces, one comma fewer than there are members, and the quotes and the colon of each name.
      minBytes += 1 + Math.max(1, members) + 3 * members;
    }
  }
  return { minBytes, maxRest };
}

/** `\u0000`: the most that one UTF-16 unit takes. */
const MAX_CHARACTER_BYTES = 6;

/**
 * The path (names and indices) of the first part of a value that does not fit into `maxBytes` of JSON text, or null where all
 * of it fits. Measures to the byte. Recurses as deep as the value, which is a response of ours.
 */
export function findOverflow(value: unknown, maxBytes: number): ReadonlyArray<string | number> | null {
  const path: Array<string | number> = [];
  let remaining = maxBytes;
  const overflows = (input: unknown): boolean => {
    const part = jsonOf(input);
    remaining -= isObject(part) ? 2 : leafBytes(part);
    if (remaining < 0) return true;
    if (!isObject(part)) return false;
    let isFirst = true;
    const keys = Array.isArray(part) ? part.keys() : Object.keys(part);
    for (const key of keys) {
      const item = (part as Readonly<Record<string | number, unknown>>)[key];
      if (item === undefined && typeof key === 'string') continue;
      remaining -= (isFirst ? 0 : 1) + (typeof key === 'string' ? textBytes(key) + 1 : 0);
      isFirst = false;
      path.push(key);
      if (remaining < 0 || overflows(item)) return true;
      path.pop();
    }
    return false;
  };
  return overflows(value) ? path : null;
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !(value instanceof JsonText);
}

/** The result of an object's `toJSON`, such as that of an error or a date. A `JsonText` is returned as it is, for its length. */
function jsonOf(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  const { toJSON } = value as { toJSON?: unknown };
  return typeof toJSON === 'function' && !(value instanceof JsonText) ? toJSON.call(value) : value;
}

function leafBytes(value: unknown): number {
  if (value instanceof JsonText) return Buffer.byteLength(value.text);
  if (typeof value === 'string') return textBytes(value);
  if (typeof value === 'number') return Number.isFinite(value) ? String(value).length : 4;
  return value === false ? 5 : 4;
}

/** The characters that JSON may escape: quotes, backslashes, control characters and surrogates. */
const escapable = /[^ !#-[\]-\ud7ff\ue000-\uffff]/;

/** The bytes of a text as a JSON string, including its quotes. */
function textBytes(text: string): number {
  return escapable.test(text) ? Buffer.byteLength(JSON.stringify(text)) : Buffer.byteLength(text) + 2;
}
