import type { ApolloClient, InMemoryCache, OperationVariables, TypedDocumentNode } from '@apollo/client';
import { useApolloClient } from '@apollo/client/react';
import { useCallback, useEffect, useMemo, useRef, useState } from 'react';
import { type Failure, toFailure } from '../graphql/link.ts';

/** A page of a list, as every connection of the schema has it. */
export interface Connection<Row> {
  readonly nodes: readonly Row[];
  readonly pageInfo: { readonly endCursor: string | null; readonly hasNextPage: boolean };
  readonly totalCount?: number;
}

export interface Endless<Row> {
  /** How many rows there are in all, as far as is known. */
  readonly count: number;
  /** How many of them can be scrolled to: as far as cursors are known. */
  readonly reach: number;
  /** The row at an index; undefined while it is read. */
  row(index: number): Row | undefined;
  /** Reads what is between the two indices and is not there, and forgets what is far from them. */
  show(from: number, to: number): void;
  readonly isLoading: boolean;
  /** What was read before is shown, while it is read anew. */
  readonly isRefreshing: boolean;
  readonly failure: Failure | null;
  /** Reads what failed once more. */
  retry(): void;
  /** Reads anew from the first page. */
  refresh(): void;
  /** Reads what is shown once more, and leaves it where it is. */
  update(): void;
  /** Where the reader is in the list; whoever comes back to it finds the same. */
  readonly place: Place;
}

export interface Place {
  scrollTop: number;
  /** The current row, and which one it was there. */
  current: number;
  id: string | null;
}

interface EndlessOptions<Data, Variables, Row> {
  readonly document: TypedDocumentNode<Data, Variables>;
  /** Without `first` and `after`, which are added. Another value begins a new list. */
  readonly variables: Omit<Variables, 'first' | 'after'>;
  /** The object and the field under which the cache has the list. */
  readonly parent: { readonly __typename: string; readonly id: string };
  readonly field: string;
  /** The page of an answer; `from` is the index of its first row. */
  pick(data: Data, from: number): Connection<Row> | null | undefined;
}

const PAGE = 100;
/** Pages that are kept before and behind those that are shown: a list of any length takes the memory of these. */
const KEPT = 4;
/** Lists that are kept after they have been left. */
const BOOKS = 8;

interface Book<Row> {
  /** The cursor behind which a page begins; the first has null. */
  readonly cursors: (string | null)[];
  readonly pages: Map<number, readonly Row[]>;
  /** How each page that is watched is let go, and read once more. */
  readonly watched: Map<number, { letGo(): void; update(): void }>;
  readonly place: Place;
  /** What is between these indices is shown. */
  shown: readonly [number, number];
  count: number;
  failure: Failure | null;
}

const newBook = <Row>(): Book<Row> => ({
  cursors: [null],
  pages: new Map(),
  watched: new Map(),
  place: { scrollTop: 0, current: 0, id: null },
  shown: [0, 0],
  count: 0,
  failure: null,
});

const toPages = ([from, to]: readonly [number, number]) => [Math.floor(from / PAGE), Math.floor(to / PAGE)] as const;

/** The lists that were left last, of each client: they go with the session. */
const shelves = new WeakMap<ApolloClient, Map<string, Book<never>>>();

function takeBook<Row>(apollo: ApolloClient, key: string): Book<Row> {
  const shelf = shelves.get(apollo) ?? new Map<string, Book<never>>();
  shelves.set(apollo, shelf);
  const book = (shelf.get(key) as Book<Row> | undefined) ?? newBook<Row>();
  shelf.delete(key);
  shelf.set(key, book as Book<never>);
  for (const oldest of shelf.keys()) if (shelf.size > BOOKS) shelf.delete(oldest);
  return book;
}

/** A list by cursors, without an end: pages are read as they are scrolled to, follow the cache, and are let go when they are far away. */
export function useEndless<Data, Variables extends OperationVariables, Row extends { readonly id: string }>(
  options: EndlessOptions<Data, Variables, Row>,
): Endless<Row> {
  const apollo = useApolloClient();
  const latest = useRef(options);
  latest.current = options;
  const key = JSON.stringify([options.parent.id, options.field, options.variables]);
  const [, setTurn] = useState(0);
  const [epoch, setEpoch] = useState(0);
  const [last, setLast] = useState<{ readonly key: string; readonly book: Book<Row> } | null>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the same list read anew has another book.
  const book = useMemo(() => takeBook<Row>(apollo, key), [apollo, key, epoch]);

  const read = useCallback(
    (index: number) => {
      const after = book.cursors[index];
      if (after === undefined || book.watched.has(index)) return;
      const { document, variables, pick, parent, field } = latest.current;
      const page = apollo.watchQuery<Data, Variables>({
        query: document,
        variables: { ...variables, first: PAGE, after } as unknown as Variables,
        fetchPolicy: 'network-only',
        nextFetchPolicy: 'cache-first',
      } as never);
      const turn = () => setTurn((before) => before + 1);
      const subscription = page.subscribe(({ data, error, dataState }) => {
        if (error) {
          book.failure = toFailure(error);
          letGo();
          return turn();
        }
        const connection = dataState === 'complete' ? pick(data as Data, index * PAGE) : null;
        if (!connection) return;
        book.failure = null;
        if (enter(book, index, connection)) {
          book.watched.get(index + 1)?.letGo();
          if (index + 1 <= toPages(book.shown)[1]) read(index + 1);
        }
        turn();
      });
      const letGo = () => {
        subscription.unsubscribe();
        book.watched.delete(index);
        forget(apollo.cache as InMemoryCache, parent, field, after);
      };
      const update = () => {
        // A failure comes to the subscriber as well.
        page.refetch().catch(() => {});
      };
      book.watched.set(index, { letGo, update });
    },
    [apollo, book],
  );

  const show = useCallback(
    (from: number, to: number) => {
      book.shown = [Math.max(0, from), Math.max(0, to)];
      const [first, last] = toPages(book.shown);
      for (let index = first; index <= last; index += 1) read(index);
      const isFar = (index: number) => index < first - KEPT || index > last + KEPT;
      for (const [index, { letGo }] of [...book.watched]) if (isFar(index)) letGo();
      for (const index of [...book.pages.keys()]) if (isFar(index)) book.pages.delete(index);
    },
    [book, read],
  );

  useEffect(() => {
    show(...book.shown);
    return () => {
      for (const { letGo } of [...book.watched.values()]) letGo();
    };
  }, [show, book]);

  const retry = useCallback(() => show(...book.shown), [book, show]);
  const refresh = useCallback(() => {
    // What is shown stays until the new first page is there.
    if (book.pages.size > 0) setLast({ key, book });
    shelves.get(apollo)?.delete(key);
    setEpoch((before) => before + 1);
  }, [apollo, book, key]);
  const isRefreshing = book.pages.size === 0 && last?.key === key;
  const shown = isRefreshing ? last.book : book;
  useEffect(() => {
    if (!isRefreshing) setLast(null);
  }, [isRefreshing]);
  const update = useCallback(() => {
    const [first, last] = toPages(book.shown);
    for (const [index, page] of [...book.watched]) {
      if (index >= first && index <= last) page.update();
      // What is not shown is read once more when it is.
      else page.letGo();
    }
  }, [book]);
  return {
    count: shown.count,
    reach: Math.min(shown.count, shown.cursors.length * PAGE),
    row: (index) => shown.pages.get(Math.floor(index / PAGE))?.[index % PAGE],
    show,
    isLoading: shown.pages.size === 0 && book.failure === null,
    isRefreshing,
    failure: book.failure,
    retry,
    refresh,
    update,
    place: shown.place,
  };
}

/** Enters a page that has come. True where the next page, which was read already, begins elsewhere now. */
function enter<Row>(book: Book<Row>, index: number, { nodes, pageInfo, totalCount }: Connection<Row>): boolean {
  const reached = index * PAGE + nodes.length;
  book.pages.set(index, nodes);
  if (!pageInfo.hasNextPage) {
    book.cursors.length = index + 1;
    book.count = reached;
    for (const [behind, { letGo }] of [...book.watched]) if (behind > index) letGo();
    for (const behind of [...book.pages.keys()]) if (behind > index) book.pages.delete(behind);
    return false;
  }
  const isMoved = book.pages.has(index + 1) && book.cursors[index + 1] !== pageInfo.endCursor;
  book.cursors[index + 1] = pageInfo.endCursor;
  book.count = Math.max(totalCount ?? book.count, reached + 1);
  return isMoved;
}

/** Takes one page out of the cache, and what nothing else refers to. */
function forget(
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
  // The results that the cache remembers name what is gone, and would grow with each page that was ever read.
  cache.gc({ resetResultCache: true });
}
