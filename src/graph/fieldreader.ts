import type { GraphQLResolveInfo } from 'graphql';
import type { ReadWithinBudget, ResponseContext } from './responsebudget.ts';
import { findSelected } from './selection.ts';

/**
 * Reads the rows of a field. It is an argument of `loadBatched`, where arguments are told apart by their JSON; all readers of a
 * request that read heavy columns share its budget.
 */
export class FieldReader {
  /** `selected` are the heavy fields that are selected: `rows` reads no others, and counts no others. */
  constructor(
    readonly selected: ReadonlySet<string>,
    readonly rows: ReadWithinBudget,
  ) {}

  toJSON(): string {
    return `heavy fields: ${[...this.selected].join()}`;
  }
}

/** Reads rows without their heavy columns. */
export const withoutHeavyFields = new FieldReader(new Set(), (load) => load(null));

/** The reader for the rows of a field: it reads the heavy fields that are selected. */
export function openReader(context: ResponseContext, info: GraphQLResolveInfo, heavyFields: ReadonlySet<string>): FieldReader {
  const selected = findSelected(info, heavyFields);
  return selected.size === 0 ? withoutHeavyFields : openHeavyReader(context, info.path, selected);
}

/** The reader for rows with heavy columns; a list that exceeds the budget is named by the path. */
export function openHeavyReader(context: ResponseContext, path: GraphQLResolveInfo['path'], selected: ReadonlySet<string>): FieldReader {
  return new FieldReader(selected, (load) => context.openResponseBudget().read(path, load));
}
