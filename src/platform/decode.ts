import pg from 'pg';
import { readJson } from '../kernel/jsontext.ts';

/** The decoder of a PostgreSQL type. A `bigint` becomes a number: none of ours comes near 2^53. */
export function parserOf(type: number, format: 'text'): (text: string) => unknown {
  const { INT8, TIMESTAMPTZ } = pg.types.builtins;
  const parse = pg.types.getTypeParser(type, format);
  if (type === INT8) return Number;
  if (type === pg.types.builtins.JSON) return readJson;
  return type === TIMESTAMPTZ ? (text) => parseTimestamp(text) ?? infinities.get(text) ?? parse(text) : parse;
}

/** The ends of the calendar that ISO 8601 has, for the infinite moments that another program may have stored. */
const infinities = new Map([
  ['infinity', new Date('9999-12-31T23:59:59.999Z')],
  ['-infinity', new Date('0001-01-01T00:00:00.000Z')],
]);

/**
 * Parses a `timestamptz` as PostgreSQL writes it in UTC, the time zone of all our connections: `2026-01-31 12:00:00.123456+00`.
 * Null for any other form, and for the years before 1000, since `Date.UTC` reads years below 100 as 1900 and later.
 */
function parseTimestamp(text: string): Date | null {
  const end = text.length - 3;
  if (end < 19 || end > 26 || text[0] === '0' || text[4] !== '-' || text[10] !== ' ' || !text.endsWith('+00')) return null;
  const digit = (at: number) => text.charCodeAt(at) - 48;
  const twoDigits = (at: number) => digit(at) * 10 + digit(at + 1);
  let ms = 0;
  for (let at = 20, unit = 100; at < end && unit >= 1; at += 1, unit /= 10) ms += digit(at) * unit;
  return new Date(
    Date.UTC(twoDigits(0) * 100 + twoDigits(2), twoDigits(5) - 1, twoDigits(8), twoDigits(11), twoDigits(14), twoDigits(17), ms),
  );
}
