/** A part of a list for an operator. */
export interface Listing {
  /** One for each item, with tabs between its columns. */
  readonly lines: readonly string[];
  /** The id of the last item if more follow it, otherwise null. */
  readonly next: string | null;
}

/** How many items a command lists at most. */
export const MAX_LISTED = 200;

/** How many rows are read for that: one more, which tells whether more follow. */
export const MAX_READ = MAX_LISTED + 1;

/** The listing of up to `MAX_READ` rows, whose first column is the id by which they are ordered. */
export function toListing<Row>(rows: readonly Row[], toColumns: (row: Row) => readonly [id: string, ...others: string[]]): Listing {
  const columns = rows.slice(0, MAX_LISTED).map(toColumns);
  return {
    lines: columns.map((line) => line.map(printable).join('\t')),
    next: rows.length > MAX_LISTED ? (columns.at(-1)?.[0] ?? null) : null,
  };
}

/** A text of a user on one line, without the characters that move the cursor or change the direction of a text. */
export const printable = (text: string): string => text.replace(/[\p{Cc}\u2028-\u202e\u2066-\u2069]+/gu, ' ');
