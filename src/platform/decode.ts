import pg from 'pg';
import { readJson } from '../kernel/jsontext.ts';
import { readTimestamp } from '../kernel/timestamp.ts';

/** The decoder of a PostgreSQL type. A `bigint` becomes a number: none of ours comes near 2^53. */
export function parserOf(type: number, format: 'text'): (text: string) => unknown {
  const { builtins } = pg.types;
  if (type === builtins.INT8) return Number;
  if (type === builtins.JSON) return readJson;
  return type === builtins.TIMESTAMPTZ ? readTimestamp : pg.types.getTypeParser(type, format);
}
