import pg from 'pg';
import { JsonText } from '../kernel/json/text.ts';
import { readTimestamp } from '../kernel/timestamp.ts';

const { builtins } = pg.types;

type Decode = (text: string) => unknown;

/** Decoders by PostgreSQL type, for handwritten statements. A `bigint` becomes a number: none of ours comes near 2^53. */
export const decoders: Readonly<Record<number, Decode>> = {
  [builtins.INT8]: Number,
  [builtins.JSON]: JsonText.ofColumn,
  [builtins.TIMESTAMPTZ]: readTimestamp,
};

/** The decoder of a PostgreSQL type: ours, or the driver's. */
export function parserOf(type: number, format: 'text'): Decode {
  return decoders[type] ?? pg.types.getTypeParser(type, format);
}
