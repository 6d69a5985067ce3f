import type { ApolloClient, InMemoryCache, OperationVariables, TypedDocumentNode } from '@apollo/client';
import { useApolloClient } from '@apollo/client/react';
import { useCallback, useEffect, useMemo, useRef, useState } from 'react';
import { type Failure, toFailure } from '../graphql/link.ts';

/** A page of a list: the shape of every connection in the schema. */
export interface Connection<Row> {
  readonly nodes: readonly Row[];
  readonly pageInfo: { readonly endCursor: string | null; readonly hasNextPage: boolean };
  readonly totalCount?: number;
}

export interface Endless<Row> {
  /** The total number of rows, as far as it is known. */
  readonly count: number;
  /** The number of rows that can be scrolled to: as far as cursors are known. */
  readonly reach: number;
  /** The row at an index; undefined while it is loading. */
  row(index: number): Row | undefined;
  /** The rows of all loaded pages: those around the visible ones. */
  loaded(): Row[];
  /** The first row as it was last loaded, also after its page has been released; null before that, and in an empty list. */
  readonly first: Row | null;
  /** Loads the missing rows between the two indices, and releases pages far from them. */
  show(from: number, to: number): void;
  readonly isLoading: boolean;
  /** The previous rows are shown while the list is reloaded. */
  readonly isRefreshing: boolean;
  readonly failure: Failure | null;
  /** Retries what failed. */
  retry(): void;
  /** Reloads the list from the first page. */
  refresh(): void;
  /** Reloads the visible pages in place. */
  update(): void;
  /** The reader's position in the list, restored when they come back to it. */
  readonly place: Place;
}

export interface Place {
  scrollTop: number;
  /** The index of the current row, -1 while it is not among the loaded rows; `id` is that row's id. */
  current: number;
  id: string | null;
}

interface EndlessOptions<Data, Variables, Row> {
  readonly document: TypedDocumentNode<Data, Variables>;
  /** Without `first` and `after`, which are added. A changed value starts a new list. */
  readonly variables: Omit<Variables, 'first' | 'after'>;
  /** The object and the field under which the cache stores the list. */
  readonly parent: { readonly __typename: string; readonly id: string };
  readonly field: string;
  /** Extracts the page from a response; `from` is the index of its first row. */
  pick(data: Data, from: number): Connection<Row> | null | undefined;
}

const PAGE = 100;
/** Pages kept before and after the visible ones: the memory of a list of any length is bounded by them. */
const PAGES_AROUND = 4;
/** The number of lists kept in memory: those used last. */
const MAX_LISTS = 8;

interface ListState<Row> {
  /** The cursor after which each page begins; null for the first. */
  readonly cursors: (string | null)[];
  /** The loaded pages, each with the cursor after which it was loaded. */
  readonly pages: Map<number, { readonly nodes: readonly Row[]; readonly after: string | null }>;
  /** The pages with an active query, which may not be loaded yet: `release` ends it, `update` reloads the page. */
  readonly watched: Map<number, { readonly after: string | null; release(): void; update(): void }>;
  readonly place: Place;
  /** The indices between which rows are visible. */
  shown: readonly [number, number];
  first: Row | null;
  count: number;
  failure: Failure | null;
}

const newState = <Row>(): ListState<Row> => ({
  cursors: [null],
  pages: new Map(),
  watched: new Map(),
  place: { scrollTop: 0, current: 0, id: null },
  shown: [0, 0],
  first: null,
  count: 0,
  failure: null,
});

const toPages = ([from, to]: readonly [number, number]) => [Math.floor(from / PAGE), Math.floor(to / PAGE)] as const;

/** The lists used last, by client: they are dropped with the session. */
const statesByClient = new WeakMap<ApolloClient, Map<string, ListState<never>>>();

function openState<Row>(apollo: ApolloClient, key: string): ListState<Row> {
  const states = statesByClient.get(apollo) ?? new Map<string, ListState<never>>();
  statesByClient.set(apollo, states);
  const state = (states.get(key) as ListState<Row> | undefined) ?? newState<Row>();
  states.delete(key);
  states.set(key, state as ListState<never>);
  for (const oldest of states.keys()) if (states.size > MAX_LISTS) states.delete(oldest);
  return state;
}

/** An infinite list by cursors: pages are loaded as they are scrolled to, follow the cache, and are released when far away. */
export function useEndless<Data, Variables extends OperationVariables, Row extends { readonly id: string }>(
  options: EndlessOptions<Data, Variables, Row>,
): Endless<Row> {
  const apollo = useApolloClient();
  const latest = useRef(options);
  latest.current = options;
  const key = JSON.stringify([options.parent.id, options.field, options.variables]);
  const [, setRenders] = useState(0);
  const [epoch, setEpoch] = useState(0);
  const [last, setLast] = useState<{ readonly key: string; readonly state: ListState<Row> } | null>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: a reload of the same list has a state of its own.
  const state = useMemo(() => openState<Row>(apollo, key), [apollo, key, epoch]);

  const read = useCallback(
    (index: number) => {
      const after = state.cursors[index];
      if (after === undefined || state.watched.has(index)) return;
      const { document, variables, pick, parent, field } = latest.current;
      const page = apollo.watchQuery<Data, Variables>({
        query: document,
        variables: { ...variables, first: PAGE, after } as unknown as Variables,
        fetchPolicy: 'network-only',
        nextFetchPolicy: 'cache-first',
      } as never);
      const rerender = () => setRenders((before) => before + 1);
      const subscription = page.subscribe(({ data, error, dataState }) => {
        if (error) {
          state.failure = toFailure(error);
          release();
          return rerender();
        }
        const connection = dataState === 'complete' ? pick(data as Data, index * PAGE) : null;
        if (!connection) return;
        if (storePage(state, index, after, connection)) {
          state.watched.get(index + 1)?.release();
          if (index + 1 <= toPages(state.shown)[1]) read(index + 1);
        }
        if (!isLacking(state)) state.failure = null;
        rerender();
      });
      const release = () => {
        subscription.unsubscribe();
        state.watched.delete(index);
        evictPage(apollo.cache as InMemoryCache, parent, field, after);
      };
      const update = () => {
        // The subscriber receives the error as well.
        page.refetch().catch(() => {});
      };
      state.watched.set(index, { after, release, update });
    },
    [apollo, state],
  );

  const show = useCallback(
    (from: number, to: number) => {
      state.shown = [Math.max(0, from), Math.max(0, to)];
      const [first, last] = toPages(state.shown);
      for (let index = first; index <= last; index += 1) read(index);
      const isFar = (index: number) => index < first - PAGES_AROUND || index > last + PAGES_AROUND;
      for (const [index, { release }] of [...state.watched]) if (isFar(index)) release();
      for (const index of [...state.pages.keys()]) if (isFar(index)) state.pages.delete(index);
    },
    [state, read],
  );

  useEffect(() => {
    show(...state.shown);
    return () => {
      for (const { release } of [...state.watched.values()]) release();
    };
  }, [show, state]);

  const retry = useCallback(() => show(...state.shown), [state, show]);
  const refresh = useCallback(() => {
    // The visible rows stay until the new first page has loaded.
    if (state.pages.size > 0) setLast({ key, state });
    const states = statesByClient.get(apollo);
    states?.delete(key);
    // The current row is looked for among the new rows: its index may be that of another one.
    const { id } = state.place;
    if (id !== null) states?.set(key, { ...newState<never>(), place: { scrollTop: 0, current: -1, id } });
    setEpoch((before) => before + 1);
  }, [apollo, state, key]);
  const isRefreshing = state.pages.size === 0 && last?.key === key;
  const shown = isRefreshing ? last.state : state;
  useEffect(() => {
    if (!isRefreshing) setLast(null);
  }, [isRefreshing]);
  const update = useCallback(() => {
    const [first, last] = toPages(state.shown);
    for (const [index, page] of [...state.watched]) {
      if (index >= first && index <= last) page.update();
      // Pages out of sight are reloaded when they become visible.
      else page.release();
    }
  }, [state]);
  return {
    count: shown.count,
    reach: Math.min(shown.count, shown.cursors.length * PAGE),
    row: (index) => shown.pages.get(Math.floor(index / PAGE))?.nodes[index % PAGE],
    loaded: () => [...shown.pages.values()].flatMap(({ nodes }) => nodes),
    first: shown.first,
    show,
    isLoading: shown.pages.size === 0 && state.failure === null,
    isRefreshing,
    failure: state.failure,
    retry,
    refresh,
    update,
    place: shown.place,
  };
}

/** Whether a visible page has no query: it has failed, and its failure is shown until it is retried. */
function isLacking<Row>({ shown, cursors, watched }: ListState<Row>): boolean {
  const [first, last] = toPages(shown);
  return cursors.slice(first, last + 1).some((_, offset) => !watched.has(first + offset));
}

/** Stores a loaded page. Returns true if the next page is loading or loaded already but begins at another cursor now. */
function storePage<Row>(
  state: ListState<Row>,
  index: number,
  after: string | null,
  { nodes, pageInfo, totalCount }: Connection<Row>,
): boolean {
  const reached = index * PAGE + nodes.length;
  state.pages.set(index, { nodes, after });
  if (index === 0) state.first = nodes[0] ?? null;
  if (!pageInfo.hasNextPage) {
    state.cursors.length = index + 1;
    state.count = reached;
    for (const [later, { release }] of [...state.watched]) if (later > index) release();
    for (const later of [...state.pages.keys()]) if (later > index) state.pages.delete(later);
    return false;
  }
  const next = state.watched.get(index + 1) ?? state.pages.get(index + 1);
  state.cursors[index + 1] = pageInfo.endCursor;
  state.count = Math.max(totalCount ?? state.count, reached + 1);
  return next !== undefined && next.after !== pageInfo.endCursor;
}

/** Evicts one page from the cache, and objects that nothing else refers to. */
function evictPage(
  cache: InMemoryCache,
  parent: { readonly __typename: string; readonly id: string },
  field: string,
  after: string | null,
): void {
  const mark = `"after":${JSON.stringify(after)}`;
  cache.modify({
    id: cache.identify({ ...parent }),
    fields: {
      [field]: (value: unknown, { storeFieldName, DELETE }: { storeFieldName: string; DELETE: unknown }) =>
        storeFieldName.includes(mark) ? DELETE : value,
    } as never,
    broadcast: false,
  });
  // The cache's memoized results refer to evicted objects, and would grow with each page ever loaded.
  cache.gc({ resetResultCache: true });
}
