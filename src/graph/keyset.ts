import { resolveCursorConnection } from '@pothos/plugin-relay';
import { Fault } from '../kernel/fault.ts';
import type { IdRange, PageRange } from '../kernel/page.ts';
import { NOT_A_CURSOR } from './constraints.ts';

/** The input of a keyset query: the keys that bound it (exclusive), the number of rows, and the direction. */
export interface Slice<Key> {
  readonly after: Key | undefined;
  readonly before: Key | undefined;
  readonly limit: number;
  readonly isBackwards: boolean;
}

interface ConnectionArgs {
  readonly first?: number | null;
  readonly last?: number | null;
  readonly after?: string | null;
  readonly before?: string | null;
}

interface Keyset<Node, Key> {
  readonly args: ConnectionArgs;
  readonly keyOf: (node: Node) => Key;
  /** Null for a text that is not a key. */
  readonly parseKey: (text: string) => Key | null;
  /** The message for a text that is not a key. */
  readonly problem?: string;
  /** Called only if the client selects the total. */
  readonly count: () => Promise<number>;
}

/**
 * A Relay connection over rows in the order of a unique key: 20 a page, at most 100, and as fast at the end of the list as
 * at its beginning. Throws field errors for cursors of another list; malformed ones and negative sizes are rejected before the
 * operation is executed.
 */
export async function resolveList<Node, Key extends string | number>(
  { args, keyOf, parseKey, problem = NOT_A_CURSOR, count }: Keyset<Node, Key>,
  load: (slice: Slice<Key>) => Promise<Node[]>,
) {
  const fields: Record<string, string[]> = {};
  const decode = (name: 'after' | 'before') => {
    const cursor = args[name];
    if (cursor === null || cursor === undefined) return undefined;
    const key = parseKey(Buffer.from(cursor, 'base64url').toString('utf8'));
    if (key === null || encode(key) !== cursor) fields[name] = [problem];
    return key ?? undefined;
  };
  const after = decode('after');
  const before = decode('before');
  if (Object.keys(fields).length > 0) throw Fault.invalidFields(fields);
  const { edges: found, pageInfo } = await resolveCursorConnection<Promise<Node[]>>(
    { args, toCursor: (node) => encode(keyOf(node as Node)), defaultSize: 20, maxSize: 100 },
    (window) => load({ after, before, limit: window.limit, isBackwards: window.inverted }),
  );
  // Relay applies `first` before `last`.
  const hasBoth = typeof args.first === 'number' && typeof args.last === 'number';
  const edges = hasBoth ? found.slice(Math.max(0, found.length - Number(args.last))) : found;
  const hasPreviousPage = pageInfo.hasPreviousPage || edges.length < found.length;
  const [startCursor, endCursor] = [edges.at(0)?.cursor ?? null, edges.at(-1)?.cursor ?? null];
  return { edges, pageInfo: { ...pageInfo, hasPreviousPage, startCursor, endCursor }, count };
}

/** Prisma's `where`, `orderBy` and `take` for a slice of a list ordered by id. */
export function sliceById(slice: Slice<string>, order: 'asc' | 'desc' = 'asc') {
  const [above, below] = order === 'asc' ? [slice.after, slice.before] : [slice.before, slice.after];
  const direction: 'asc' | 'desc' = (order === 'asc') === slice.isBackwards ? 'desc' : 'asc';
  return { where: { id: { gt: above, lt: below } }, orderBy: { id: direction }, take: slice.limit };
}

/** Bounds of all ids. */
export const FIRST_ID = '00000000-0000-0000-0000-000000000000';
export const LAST_ID = 'ffffffff-ffff-ffff-ffff-ffffffffffff';

/** A slice of a list ordered by id: for a statement with `id > above AND id < below ORDER BY id LIMIT limit`, with `DESC` unless `isAscending`. */
export function boundsOf({ after, before, limit, isBackwards }: Slice<string>, order: 'asc' | 'desc'): IdRange {
  const [above = FIRST_ID, below = LAST_ID] = order === 'asc' ? [after, before] : [before, after];
  return { above, below, limit, isAscending: (order === 'asc') !== isBackwards };
}

/**
 * The same for a statement that compares whole keys of an index, whose first columns are the same for all rows of a list: PostgreSQL
 * would not end the scan at the last bound, but read the rest of the list. So the statement has none, only its limit, and `within` drops
 * the rows beyond it.
 */
export function boundsFromStart(slice: Slice<string>, order: 'asc' | 'desc') {
  const { above, below, limit, isAscending } = boundsOf(slice, order);
  return {
    above: isAscending ? above : FIRST_ID,
    below: isAscending ? LAST_ID : below,
    limit,
    isAscending,
    within: <Row extends { readonly id: string }>(rows: Row[]): Row[] => rows.filter(({ id }) => above < id && id < below),
  };
}

/** The bounds of a numbered page of a list ordered by ascending id. */
export function boundsOfPage(range: PageRange): Required<IdRange> {
  return { above: FIRST_ID, below: LAST_ID, isAscending: true, ...range };
}

function encode(key: string | number): string {
  return Buffer.from(String(key)).toString('base64url');
}
