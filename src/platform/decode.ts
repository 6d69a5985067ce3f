import pg from 'pg';
import { readJson } from '../kernel/jsontext.ts';

/** A `bigint` is a number here: none of ours comes near 2^53. */
export function parserOf(type: number, format: 'text'): (text: string) => unknown {
  const { INT8, TIMESTAMPTZ } = pg.types.builtins;
  const parse = pg.types.getTypeParser(type, format);
  if (type === INT8) return Number;
  if (type === pg.types.builtins.JSON) return readJson;
  return type === TIMESTAMPTZ ? (text) => parseMoment(text) ?? parse(text) : parse;
}

/**
 * A moment as PostgreSQL writes it in UTC, which all our connections are in: `2026-01-31 12:00:00.123456+00`. Null for one
 * that is written otherwise, as those of the first thousand years, which `Date.UTC` would take for later ones.
 */
function parseMoment(text: string): Date | null {
  const end = text.length - 3;
  if (end < 19 || end > 26 || text[0] === '0' || text[4] !== '-' || text[10] !== ' ' || !text.endsWith('+00')) return null;
  const digit = (at: number) => text.charCodeAt(at) - 48;
  const two = (at: number) => digit(at) * 10 + digit(at + 1);
  let ms = 0;
  for (let at = 20, unit = 100; at < end && unit >= 1; at += 1, unit /= 10) ms += digit(at) * unit;
  return new Date(Date.UTC(two(0) * 100 + two(2), two(5) - 1, two(8), two(11), two(14), two(17), ms));
}
