import type { GraphQLResolveInfo } from 'graphql';
import type { Weighed } from './answer.ts';
import type { Context } from './context.ts';

/** A long text, with the id of its row; empty where it does not fit. */
export interface WeighedText extends Weighed {
  readonly id: string;
  readonly text: string;
}

/** Reads the texts of rows, of as many of the first rows as `bytesLeft` allows. */
type ReadTexts = (ids: readonly string[], bytesLeft: number) => Promise<WeighedText[]>;

/**
 * A long text that the lists of its type leave out: one statement reads it for all rows of a level, as far as the budget of
 * the answer goes. Throws the refusal of the whole answer beyond that.
 */
export function loadText(context: Context, info: GraphQLResolveInfo, name: string, id: string, read: ReadTexts): Promise<string> {
  // The refusal names the rows, of which fewer can be asked for.
  const { prev: place = info.path } = info.path;
  return context.loadBatched(name, id, async (ids) => {
    const rows = await context.openAnswerBudget().read(place, (bytesLeft) => read(ids, bytesLeft));
    const texts = new Map(rows.map((row) => [row.id, row.text]));
    return ids.map((wanted) => texts.get(wanted) ?? '');
  });
}
