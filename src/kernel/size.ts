import { JsonText } from './jsontext.ts';

/**
 * Whether a value takes more than `maxBytes` as JSON text in UTF-8, without building the text. Most answers are far from the
 * bound, so the first pass, without recursion, computes a lower and an upper limit of the size and stops early; only a value
 * in between is measured to the byte.
 */
export function exceedsBytes(value: unknown, maxBytes: number): boolean {
  const pending: unknown[] = [value];
  let minBytes = 0;
  let characters = 0;
  let others = 0;
  while (pending.length > 0 && minBytes <= maxBytes) {
    const part = jsonOf(pending.pop());
    if (typeof part === 'string') {
      minBytes += part.length + 2;
      characters += part.length;
    } else if (typeof part !== 'object' || part === null) {
      minBytes += 1;
      others += 1;
    } else if (Array.isArray(part)) {
      // The brackets, and one comma fewer than there are items.
      minBytes += Math.max(2, part.length + 1);
      for (let index = 0; index < part.length && minBytes <= maxBytes; index += 1) {
        const item: unknown = part[index];
        if (typeof item === 'string') {
          minBytes += item.length + 2;
          characters += item.length;
        } else pending.push(item);
      }
    } else if (part instanceof JsonText) {
      minBytes += part.text.length;
      characters += part.text.length;
    } else {
      minBytes += 2;
      // One comma fewer than there are members.
      let commas = -1;
      for (const name in part) {
        const item = (part as Readonly<Record<string, unknown>>)[name];
        if (item === undefined) continue;
        commas += 1;
        minBytes += name.length + 3;
        characters += name.length;
        if (typeof item === 'string') {
          minBytes += item.length + 2;
          characters += item.length;
        } else if (typeof item === 'object' && item !== null) pending.push(item);
        else {
          minBytes += 1;
          others += 1;
        }
        if (minBytes > maxBytes) return true;
      }
      minBytes += Math.max(0, commas);
    }
  }
  if (minBytes > maxBytes) return true;
  return minBytes + characters * (MAX_CHARACTER_BYTES - 1) + others * MAX_OTHER_BYTES > maxBytes && findOverflow(value, maxBytes) !== null;
}

/** `\u0000`: the most that one UTF-16 unit takes. */
const MAX_CHARACTER_BYTES = 6;
/** The most that a number or a literal such as `false` takes. */
const MAX_OTHER_BYTES = 25;

/**
 * The path (names and indices) of the first part of a value that does not fit into `maxBytes` of JSON text, or null where all
 * of it fits. Measures to the byte. Recurses as deep as the value, which is an answer of ours.
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

/** What JSON may escape: quotes, backslashes, control characters and surrogates. */
const escapable = /[^ !#-[\]-\ud7ff\ue000-\uffff]/;

/** The bytes of a text as a JSON string, including its quotes. */
function textBytes(text: string): number {
  if (!escapable.test(text)) return Buffer.byteLength(text) + 2;
  let bytes = 2;
  for (let index = 0; index < text.length; index += 1) {
    const unit = text.charCodeAt(index);
    if (unit < 0x80) bytes += unit < 0x20 ? (shortEscapes.has(unit) ? 2 : 6) : unit === 0x22 || unit === 0x5c ? 2 : 1;
    else if (unit < 0x800) bytes += 2;
    else if (unit < 0xd800 || unit > 0xdfff) bytes += 3;
    else if (unit <= 0xdbff && (text.charCodeAt(index + 1) & 0xfc00) === 0xdc00) {
      bytes += 4;
      index += 1;
    } else bytes += 6;
  }
  return bytes;
}

/** The control characters with a short escape, such as `\n`. */
const shortEscapes: ReadonlySet<number> = new Set([8, 9, 10, 12, 13]);
