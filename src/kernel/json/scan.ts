// Scans of JSON texts by their UTF-16 units, without parsing them. `JSON.parse` has accepted a text, or will reject it.

export const [QUOTE, BRACKET, BRACE, MINUS] = [0x22, 0x5b, 0x7b, 0x2d] as const;
const [COLON, BACKSLASH, COMMA, POINT, ZERO] = [0x3a, 0x5c, 0x2c, 0x2e, 0x30] as const;
const codeUnits = (text: string): ReadonlySet<number> => new Set([...text].map((character) => character.charCodeAt(0)));
const spaces = codeUnits(' \t\r\n');
export const separators = codeUnits(' \t\r\n,:');
export const closers = codeUnits(']}');
const numberUnits = codeUnits('0123456789.eE+-');

/**
 * The number of lists, objects and fields in a JSON text, without parsing it; of one in which a key is written with an escape, also of
 * the items of lists, as each value of it may have to be read by itself.
 */
export function countParts(text: string): number {
  let count = 0;
  const countsItems = hasEscapedKey(text);
  /** For each open bracket, whether it is that of a list. */
  const isList: boolean[] = [];
  for (let at = 0; at < text.length; ) {
    const unit = text.charCodeAt(at);
    if (unit === BRACKET || unit === BRACE) {
      count += 1;
      if (countsItems) isList.push(unit === BRACKET);
    } else if (unit === COLON) count += 1;
    else if (countsItems && closers.has(unit)) isList.pop();
    else if (countsItems && unit === COMMA && isList.at(-1)) count += 1;
    at = unit === QUOTE ? endOfString(text, at) : at + 1;
  }
  return count;
}

/** Whether `JSON.parse` and `JSON.stringify` preserve the spelling of every number of a JSON text and the position of every key. */
export function survivesRoundTrip(text: string): boolean {
  for (let at = 0; at < text.length; ) {
    const unit = text.charCodeAt(at);
    if (unit === QUOTE) {
      const end = endOfString(text, at);
      if (isMovedKey(text, at, end)) return false;
      at = end;
    } else if (unit === MINUS || isDigit(unit)) {
      const end = endOfPreservedNumber(text, at);
      if (end < 0) return false;
      at = end;
    } else at += 1;
  }
  return true;
}

/** A double preserves any number of this many digits, and JavaScript spells it in the same way. */
const SHORT_DIGITS = 15;
/** JavaScript spells smaller numbers with an exponent. */
const TOO_SMALL = '0.000000';

/** The end of a number that JavaScript spells in the same way, or -1. Most have few digits, and need not be parsed. */
function endOfPreservedNumber(text: string, start: number): number {
  let end = endOfDigits(text, start);
  if (end > start && end - start <= SHORT_DIGITS && !numberUnits.has(text.charCodeAt(end))) return end;
  const first = text.charCodeAt(start) === MINUS ? start + 1 : start;
  const point = endOfDigits(text, first);
  if (text.charCodeAt(point) === POINT) {
    end = endOfDigits(text, point + 1);
    const isShort = end - first - 1 <= SHORT_DIGITS && text.charCodeAt(end - 1) !== ZERO && !text.startsWith(TOO_SMALL, first);
    if (isShort && !numberUnits.has(text.charCodeAt(end))) return end;
  }
  while (numberUnits.has(text.charCodeAt(end))) end += 1;
  const number = text.slice(start, end);
  return String(Number(number)) === number && number !== '-0' ? end : -1;
}

function endOfDigits(text: string, start: number): number {
  let at = start;
  while (isDigit(text.charCodeAt(at))) at += 1;
  return at;
}

/** Whether a string is a key that may be an array index: JavaScript moves those to the front, in numeric order. */
function isMovedKey(text: string, start: number, end: number): boolean {
  const first = text.charCodeAt(start + 1);
  if (!isDigit(first) && first !== BACKSLASH) return false;
  return isKey(text, end) && /^\d{1,10}$/.test(JSON.parse(text.slice(start, end)));
}

/** Whether a key of an object is written with an escape. */
export function hasEscapedKey(text: string): boolean {
  let backslash = text.indexOf('\\');
  for (let at = text.indexOf('"'); at >= 0 && backslash >= 0; ) {
    const end = endOfString(text, at);
    if (backslash < end && isKey(text, end)) return true;
    if (backslash < end) backslash = text.indexOf('\\', end);
    at = text.indexOf('"', end);
  }
  return false;
}

/** Whether the string that ends here is the key of a member. */
function isKey(text: string, end: number): boolean {
  let at = end;
  while (separators.has(text.charCodeAt(at)) && text.charCodeAt(at) !== COLON) at += 1;
  return text.charCodeAt(at) === COLON;
}

/** The text without the white space between its tokens. */
export function removeSpace(text: string): string {
  let compact = '';
  let kept = 0;
  for (let at = 0; at < text.length; ) {
    const unit = text.charCodeAt(at);
    if (unit === QUOTE) at = endOfString(text, at);
    else if (spaces.has(unit)) {
      compact += text.slice(kept, at);
      at += 1;
      kept = at;
    } else at += 1;
  }
  return kept === 0 ? text : compact + text.slice(kept);
}

/** The end of the string whose opening quote is at `start`. */
export function endOfString(text: string, start: number): number {
  for (let at = text.indexOf('"', start + 1); at >= 0; at = text.indexOf('"', at + 1)) {
    let backslashes = 0;
    while (text.charCodeAt(at - 1 - backslashes) === BACKSLASH) backslashes += 1;
    if (backslashes % 2 === 0) return at + 1;
  }
  return text.length;
}

export function isDigit(unit: number): boolean {
  return unit >= 0x30 && unit <= 0x39;
}
