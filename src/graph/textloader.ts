import type { GraphQLResolveInfo } from 'graphql';
import { pickRows } from '../kernel/rows.ts';
import type { Database } from '../platform/database.ts';
import type { Context } from './context.ts';
import { type FieldReader, openHeavyReader } from './fieldreader.ts';
import type { Sized } from './responsebudget.ts';

/** A long text, with the id of its row; empty if it does not fit in the budget. */
export interface SizedText extends Sized {
  readonly id: string;
  readonly text: string;
}

/** Reads the texts of as many of the first rows as fit in `bytesLeft`. */
type ReadTexts = (database: Database, ids: readonly string[], bytesLeft: number) => Promise<SizedText[]>;

/**
 * A long text that the lists of its type leave out. One statement reads it for all rows of a level, within the budget of the
 * response. Throws `invalid_request` for the whole response beyond that.
 */
export function createTextLoader(readTexts: ReadTexts): (context: Context, info: GraphQLResolveInfo, id: string) => Promise<string> {
  const loadTexts = async ({ database }: Context, ids: readonly string[], reader: FieldReader) => {
    const rows = await reader.rows((bytesLeft) => readTexts(database, ids, bytesLeft ?? 0));
    return pickRows(ids, rows, ({ id }) => id).map((row) => row?.text ?? '');
  };
  // The error names the list of rows, of which fewer can be requested.
  return (context, { path, fieldName }, id) =>
    context.loadBatched(loadTexts, id, openHeavyReader(context, path.prev ?? path, new Set([fieldName])));
}
