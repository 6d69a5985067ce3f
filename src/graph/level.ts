import type { ProjectScope } from '../access/scope.ts';

// One statement loads the data of all parents of a level of a document; these functions assign its rows to the parents, in order.

export function idsOf(scopes: readonly ProjectScope[]): string[] {
  return scopes.map(({ projectId }) => projectId);
}

/** The rows of each parent. */
export function groupRows<Row>(parentIds: readonly string[], rows: readonly Row[], parentOf: (row: Row) => string | null): Row[][] {
  const lists = new Map<string | null, Row[]>(parentIds.map((id) => [id, []]));
  for (const row of rows) lists.get(parentOf(row))?.push(row);
  return parentIds.map((id) => lists.get(id) ?? []);
}

/** The list that was read with each parent; an empty one for a parent that was not found. */
export function pickLists<Parent extends { readonly id: string }, Item>(
  parentIds: readonly string[],
  parents: readonly Parent[],
  listOf: (parent: Parent) => Item[],
): Item[][] {
  const lists = new Map(parents.map((parent) => [parent.id, listOf(parent)]));
  return parentIds.map((id) => lists.get(id) ?? []);
}

/** The count of each parent; 0 for a parent that has no row. */
export function pickCounts<Row extends { readonly count: number | null }>(
  parentIds: readonly string[],
  rows: readonly Row[],
  parentOf: (row: Row) => string | null,
): number[] {
  const counts = new Map(rows.map((row) => [parentOf(row), row.count]));
  return parentIds.map((id) => counts.get(id) ?? 0);
}
