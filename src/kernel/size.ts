import { JsonText } from './jsontext.ts';

/**
 * Whether a value takes more than so many bytes as JSON text in UTF-8, found without making the text. A walk without
 * recursion that stops as soon as it knows: most answers are far from the bound, so a first look takes each character for
 * what it takes at least and at most, and only a value in between is measured to the byte.
 */
export function exceedsBytes(value: unknown, maxBytes: number): boolean {
  const open: unknown[] = [value];
  let least = 0;
  let characters = 0;
  let others = 0;
  while (open.length > 0 && least <= maxBytes) {
    const part = jsonOf(open.pop());
    if (typeof part === 'string') {
      least += part.length + 2;
      characters += part.length;
    } else if (typeof part !== 'object' || part === null) {
      least += 1;
      others += 1;
    } else if (Array.isArray(part)) {
      // Brackets, and a comma less than there are items.
      least += Math.max(2, part.length + 1);
      for (let index = 0; index < part.length && least <= maxBytes; index += 1) {
        const item: unknown = part[index];
        if (typeof item === 'string') {
          least += item.length + 2;
          characters += item.length;
        } else open.push(item);
      }
    } else if (part instanceof JsonText) {
      least += part.text.length;
      characters += part.text.length;
    } else {
      least += 2;
      // Behind each name a colon, and a comma behind all members but one.
      let commas = -1;
      for (const name in part) {
        const item = (part as Readonly<Record<string, unknown>>)[name];
        if (item === undefined) continue;
        commas += 1;
        least += name.length + 3;
        characters += name.length;
        if (typeof item === 'string') {
          least += item.length + 2;
          characters += item.length;
        } else if (typeof item === 'object' && item !== null) open.push(item);
        else {
          least += 1;
          others += 1;
        }
        if (least > maxBytes) return true;
      }
      least += Math.max(0, commas);
    }
  }
  if (least > maxBytes) return true;
  return least + characters * (MOST_CHARACTER_BYTES - 1) + others * MOST_OTHER_BYTES > maxBytes && findExcess(value, maxBytes) !== null;
}

/** `\u0000`: what one UTF-16 unit takes at most. */
const MOST_CHARACTER_BYTES = 6;
/** A number, or a word such as `false`. */
const MOST_OTHER_BYTES = 25;

/**
 * Where a value passes so many bytes as JSON text: the names and indices that lead to what does not fit, in the order of
 * the text. Null where all of it fits. Measures to the byte; recursion is as deep as the value, which is an answer's.
 */
export function findExcess(value: unknown, maxBytes: number): ReadonlyArray<string | number> | null {
  const path: Array<string | number> = [];
  let left = maxBytes;
  const passes = (given: unknown): boolean => {
    const part = jsonOf(given);
    left -= isObject(part) ? 2 : leafBytes(part);
    if (left < 0) return true;
    if (!isObject(part)) return false;
    let isFirst = true;
    const keys = Array.isArray(part) ? part.keys() : Object.keys(part);
    for (const key of keys) {
      const item = (part as Readonly<Record<string | number, unknown>>)[key];
      if (item === undefined && typeof key === 'string') continue;
      left -= (isFirst ? 0 : 1) + (typeof key === 'string' ? textBytes(key) + 1 : 0);
      isFirst = false;
      path.push(key);
      if (left < 0 || passes(item)) return true;
      path.pop();
    }
    return false;
  };
  return passes(value) ? path : null;
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !(value instanceof JsonText);
}

/** The JSON value of an object with a `toJSON` of its own: an error, a moment. A text that is kept is left for its length. */
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

/** Quotes, backslashes, control characters and halves of characters: all that JSON may spell in its own way. */
const special = /[^ !#-[\]-\ud7ff\ue000-\uffff]/;

/** The bytes of a text as JSON, with its quotes. */
function textBytes(text: string): number {
  if (!special.test(text)) return Buffer.byteLength(text) + 2;
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

/** Line ends, tabs and the like: `\n`. */
const shortEscapes: ReadonlySet<number> = new Set([8, 9, 10, 12, 13]);
