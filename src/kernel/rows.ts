// One statement reads what belongs to many keys, such as all parents of a level of a document; these functions assign its rows to
// the keys, in the order of the keys, as a DataLoader requires.

/** A row whose columns PostgreSQL reports as nullable: all those in the result of a UNION, and those of a table that is joined outer. */
export type Nullable<Row> = { readonly [Name in keyof Row]: Row[Name] | null };

/** The row of each key; null for a key without one. */
export function pickRows<Key, Row>(keys: readonly Key[], rows: readonly Row[], keyOf: (row: Row) => Key | null): Array<Row | null> {
  const found = new Map(rows.map((row) => [keyOf(row), row]));
  return keys.map((key) => found.get(key) ?? null);
}

/** The rows of each key. */
export function groupRows<Row>(keys: readonly string[], rows: readonly Row[], keyOf: (row: Row) => string | null): Row[][] {
  const lists = new Map<string | null, Row[]>(keys.map((key) => [key, []]));
  for (const row of rows) lists.get(keyOf(row))?.push(row);
  return keys.map((key) => lists.get(key) ?? []);
}

/** The list that was read with each parent; an empty one for a parent that was not found. */
export function pickLists<Parent extends { readonly id: string }, Item>(
  parentIds: readonly string[],
  parents: readonly Parent[],
  listOf: (parent: Parent) => Item[],
): Item[][] {
  return pickRows(parentIds, parents, ({ id }) => id).map((parent) => (parent ? listOf(parent) : []));
}

/** The count of each key; 0 for a key that has no row. */
export function pickCounts<Row extends { readonly count: number | null }>(
  keys: readonly string[],
  rows: readonly Row[],
  keyOf: (row: Row) => string | null,
): number[] {
  return pickRows(keys, rows, keyOf).map((row) => row?.count ?? 0);
}
