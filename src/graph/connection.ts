import { resolveCursorConnection } from '@pothos/plugin-relay';
import { Fault } from '../kernel/fault.ts';

/** What a keyset query needs: keys to start behind, how many rows, and whether to walk backwards. */
export interface Slice<Key> {
  readonly after: Key | undefined;
  readonly before: Key | undefined;
  readonly limit: number;
  readonly backwards: boolean;
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
  /** The key of its text, or null where the text is none. */
  readonly parseKey: (text: string) => Key | null;
  /** What is said of a text that is none. */
  readonly problem?: string;
}

/**
 * A Relay connection over rows in the order of a unique key: 20 a page, at most 100, and as fast at the end of the list
 * as at its beginning. Throws a field error for a malformed cursor or a negative size.
 */
export async function resolveKeyset<Node, Key extends string | number>(
  { args, keyOf, parseKey, problem = 'Not a valid cursor.' }: Keyset<Node, Key>,
  load: (slice: Slice<Key>) => Promise<Node[]>,
) {
  const fields: Record<string, string[]> = {};
  for (const name of ['first', 'last'] as const) {
    if ((args[name] ?? 0) < 0) fields[name] = ['Ensure this value is greater than or equal to 0.'];
  }
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
    (window) => load({ after, before, limit: window.limit, backwards: window.inverted }),
  );
  // With both, Relay has `first` cut before `last` does.
  const hasBoth = typeof args.first === 'number' && typeof args.last === 'number';
  const edges = hasBoth ? found.slice(Math.max(0, found.length - Number(args.last))) : found;
  const hasPreviousPage = pageInfo.hasPreviousPage || edges.length < found.length;
  const [startCursor, endCursor] = [edges.at(0)?.cursor ?? null, edges.at(-1)?.cursor ?? null];
  return { edges, pageInfo: { ...pageInfo, hasPreviousPage, startCursor, endCursor } };
}

/** Prisma's `where`, `orderBy` and `take` for a slice of rows that are listed by ascending (or descending) id. */
export function sliceById(slice: Slice<string>, order: 'asc' | 'desc' = 'asc') {
  const [behind, ahead] = order === 'asc' ? [slice.after, slice.before] : [slice.before, slice.after];
  const direction: 'asc' | 'desc' = (order === 'asc') === slice.backwards ? 'desc' : 'asc';
  return { where: { id: { gt: behind, lt: ahead } }, orderBy: { id: direction }, take: slice.limit };
}

/** Before and behind every id. */
const FIRST = '00000000-0000-0000-0000-000000000000';
const LAST = 'ffffffff-ffff-ffff-ffff-ffffffffffff';

/** What a statement takes for a slice. */
export interface Bounds {
  readonly above: string;
  readonly below: string;
  readonly limit: number;
  readonly isAscending: boolean;
}

/** The same slice for a statement: `id > above AND id < below ORDER BY id LIMIT limit`, with `DESC` unless it is ascending. */
export function boundsOf({ after, before, limit, backwards }: Slice<string>, order: 'asc' | 'desc'): Bounds {
  const [above = FIRST, below = LAST] = order === 'asc' ? [after, before] : [before, after];
  return { above, below, limit, isAscending: (order === 'asc') !== backwards };
}

/** The bounds of a page of a whole list: it passes over as many rows as are before it. */
export function boundsOfPage(pageSize: number, offset: number, order: 'asc' | 'desc' = 'asc'): Bounds & { readonly offset: number } {
  return { ...boundsOf({ after: undefined, before: undefined, limit: pageSize, backwards: false }, order), offset };
}

function encode(key: string | number): string {
  return Buffer.from(String(key)).toString('base64url');
}
