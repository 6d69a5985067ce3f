import type { GraphQLResolveInfo } from 'graphql';
import type { Sized } from './answer.ts';
import type { Context } from './context.ts';

/** A long text, with the id of its row; empty if it does not fit in the budget. */
export interface SizedText extends Sized {
  readonly id: string;
  readonly text: string;
}

/** Reads the texts of as many of the first rows as fit in `bytesLeft`. */
type ReadTexts = (ids: readonly string[], bytesLeft: number) => Promise<SizedText[]>;

/**
 * A long text that the lists of its type leave out. One statement reads it for all rows of a level, within the budget of the
 * answer. Throws `invalid_request` for the whole answer beyond that.
 */
export function loadText(context: Context, info: GraphQLResolveInfo, name: string, id: string, read: ReadTexts): Promise<string> {
  // The error names the list of rows, of which fewer can be requested.
  const { prev: place = info.path } = info.path;
  return context.loadBatched(name, id, async (ids) => {
    const rows = await context.openAnswerBudget().read(place, (bytesLeft) => read(ids, bytesLeft));
    const texts = new Map(rows.map((row) => [row.id, row.text]));
    return ids.map((rowId) => texts.get(rowId) ?? '');
  });
}
