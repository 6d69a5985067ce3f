import type { InMemoryCache } from '@apollo/client';
import { useApolloClient, useFragment } from '@apollo/client/react';
import type { FeedEvent } from 'portico-client';
import { useCallback, useEffect, useMemo, useRef, useSyncExternalStore } from 'react';
import { useFeed, useLive } from '../../live/live.tsx';
import type { Endless } from '../../parts/pages.ts';
import { type Filter, isWithin, NotificationRow, type Row } from './row.ts';

/** So many new ones stand above what was read; with more the list is read anew. */
const MAX_ARRIVED = 50;
const FRESH_MS = 3_000;

type Added = Extract<FeedEvent, { type: 'notification' }>;

interface State {
  /** Those that stand above the list, the newest first. */
  readonly ids: readonly string[];
  /** Those of them that have only just come. */
  readonly fresh: ReadonlySet<string>;
  /** How many came while somebody read further down, and the number of the last one. */
  readonly missed: number;
  readonly lastMissed: number;
  /** Whether they were only too many for those above the list. */
  readonly isFull: boolean;
  /** How many came that the filter hides. */
  readonly hidden: number;
  /** The newest number that was told. */
  readonly newest: number;
  /** Numbers that the feed could not tell. */
  readonly gap: { readonly from: number; readonly to: number } | null;
}

const nothing: State = { ids: [], fresh: new Set(), missed: 0, lastMissed: 0, isFull: false, hidden: 0, newest: 0, gap: null };

/** What has come since a list was read: of some the rows, which the cache keeps, of all others only how many. */
class Arrivals {
  #state = nothing;
  readonly #cache: InMemoryCache;
  readonly #sequences = new Map<string, number>();
  readonly #watchers = new Set<() => void>();
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(cache: InMemoryCache) {
    this.#cache = cache;
  }

  readonly watch = (watcher: () => void) => {
    this.#watchers.add(watcher);
    return () => {
      this.#watchers.delete(watcher);
      if (this.#watchers.size === 0) this.clear();
    };
  };
  readonly read = () => this.#state;

  /** Takes a new one in. */
  add({ sequence, notification }: Added, { isShown, isAtTop }: { readonly isShown: boolean; readonly isAtTop: boolean }): void {
    const { ids, fresh, missed, hidden } = this.#state;
    const newest = Math.max(sequence, this.#state.newest);
    if (!isShown) return this.#set({ newest, hidden: hidden + 1 });
    // Above one that is not shown none can stand.
    const isFull = isAtTop && (this.#state.isFull || ids.length >= MAX_ARRIVED);
    if (!isAtTop || missed > 0 || isFull) return this.#set({ newest, missed: missed + 1, lastMissed: sequence, isFull });
    const { id, kind, severity, title, created, read } = notification;
    const data = { __typename: 'Notification', id, sequence, kind, severity, title, created, read } as never;
    // What is written so the cache retains, until it is released.
    this.#cache.writeFragment({ fragment: NotificationRow, data });
    this.#sequences.set(id, sequence);
    this.#set({ newest, ids: [id, ...ids], fresh: new Set([...fresh, id]) });
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#set({ fresh: new Set() }), FRESH_MS);
  }

  /** The list itself has all up to this number now. */
  reach(sequence: number): void {
    const { ids, missed, lastMissed } = this.#state;
    const left = ids.filter((id) => (this.#sequences.get(id) ?? 0) > sequence);
    const isMissing = missed > 0 && lastMissed > sequence;
    if (left.length === ids.length && (missed === 0 || isMissing)) return;
    this.#letGo(ids.filter((id) => !left.includes(id)));
    this.#set({ ids: left, missed: isMissing ? missed : 0, isFull: isMissing && this.#state.isFull });
  }

  tellGap(gap: State['gap']): void {
    this.#set({ gap });
  }

  clear(): void {
    clearTimeout(this.#timer);
    this.#letGo(this.#state.ids);
    this.#set(nothing);
  }

  #letGo(ids: readonly string[]): void {
    for (const id of ids) {
      this.#cache.release(toCacheId(id));
      this.#sequences.delete(id);
    }
  }

  #set(changes: Partial<State>): void {
    this.#state = { ...this.#state, ...changes };
    for (const watcher of this.#watchers) watcher();
  }
}

const toCacheId = (id: string) => `Notification:${id}`;

export interface News extends State {
  /** The list, with those above it that have come. */
  readonly list: Endless<Row>;
  /** How many unread ones have come that are not shown. */
  readonly unseen: number;
  /** The newest number that is shown. */
  readonly shownThrough: number;
  /** Reads the list anew, with all that has come. */
  readAnew(): void;
  forgetGap(): void;
}

/** A list of notifications that goes on at its top, as long as one is there. */
export function useArrivals(list: Endless<Row>, filter: Filter, isAtTop: () => boolean): News {
  const { cache } = useApolloClient();
  const arrivals = useMemo(() => new Arrivals(cache as InMemoryCache), [cache]);
  const state = useSyncExternalStore(arrivals.watch, arrivals.read);
  const top = list.row(0)?.sequence ?? 0;
  const { refresh } = list;
  const readThrough = useRef(0);
  const readAnew = useCallback(() => {
    readThrough.current = arrivals.read().newest;
    refresh();
  }, [arrivals, refresh]);
  const hasBegun = useRef(useLive().state.name === 'live');

  useFeed((event) => {
    if (event.type === 'notification') {
      arrivals.add(event, { isShown: isWithin(filter, event.notification), isAtTop: isAtTop() });
    } else if (event.type === 'gap') {
      arrivals.tellGap(event);
      readAnew();
    } else if (event.type === 'ready') {
      // What came between the list's answer and the beginning of the feed is told by neither.
      if (!hasBegun.current && event.sequence !== top) readAnew();
      hasBegun.current = true;
    }
  });
  useEffect(() => arrivals.reach(top), [arrivals, top]);
  const wasRefreshing = useRef(false);
  useEffect(() => {
    // A new answer has all that had come before it was asked for, or it has no place in the list any more.
    if (wasRefreshing.current && !list.isRefreshing) arrivals.reach(readThrough.current);
    wasRefreshing.current = list.isRefreshing;
  }, [arrivals, list.isRefreshing]);
  const isBehind = state.isFull && !list.isRefreshing;
  useEffect(() => {
    if (isBehind) readAnew();
  }, [isBehind, readAnew]);

  const rows = useRows(state.ids).filter(({ sequence }) => sequence > top);
  const { show, row } = list;
  const above = rows.length;
  return {
    ...state,
    list: {
      ...list,
      count: list.count + above,
      reach: list.reach + above,
      row: (index) => (index < above ? rows[index] : row(index - above)),
      show: useCallback((from: number, to: number) => show(Math.max(0, from - above), Math.max(0, to - above)), [show, above]),
    },
    unseen: state.missed + state.hidden,
    shownThrough: rows[0]?.sequence ?? top,
    readAnew,
    forgetGap: () => arrivals.tellGap(null),
  };
}

/** As the cache has them: what is read elsewhere is read here. */
function useRows(ids: readonly string[]): Row[] {
  const from = useMemo(() => ids.map((id) => ({ __typename: 'Notification' as const, id })), [ids]);
  const { data } = useFragment({ fragment: NotificationRow, from });
  return (data as (Row | null)[]).filter((row): row is Row => row !== null && 'sequence' in row);
}
