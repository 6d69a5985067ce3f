import type { InMemoryCache } from '@apollo/client';
import { useApolloClient, useFragment } from '@apollo/client/react';
import type { FeedEvent } from 'portico-client';
import { useCallback, useEffect, useMemo, useRef, useSyncExternalStore } from 'react';
import { useFeed, useLive } from '../../live/live.tsx';
import type { Endless } from '../../parts/pages.ts';
import { type Filter, isWithin, NotificationRow, type Row } from './row.ts';

/** At most this many new notifications are shown above the loaded list; with more the list is reloaded. */
const MAX_ARRIVED = 50;
const FRESH_MS = 3_000;

type Added = Extract<FeedEvent, { type: 'notification' }>;

interface State {
  /** The new notifications above the list, the newest first. */
  readonly ids: readonly string[];
  /** Those among them that have just arrived, which are highlighted. */
  readonly fresh: ReadonlySet<string>;
  /** How many arrived but are not shown, and the sequence number of the last: the list was scrolled down, or full. */
  readonly missed: number;
  readonly lastMissed: number;
  /** Whether they are missed only because of MAX_ARRIVED. */
  readonly isFull: boolean;
  /** How many arrived that the filter hides. */
  readonly hidden: number;
  /** The highest sequence number that the feed has delivered. */
  readonly newest: number;
  /** The sequence numbers that the feed could not deliver. */
  readonly gap: { readonly from: number; readonly to: number } | null;
}

const emptyState: State = { ids: [], fresh: new Set(), missed: 0, lastMissed: 0, isFull: false, hidden: 0, newest: 0, gap: null };

/** The notifications since a list was loaded: the shown ones as rows in the cache, all others only counted. */
class Arrivals {
  #state = emptyState;
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

  /** Adds a new notification. */
  add({ sequence, notification }: Added, { isShown, isAtTop }: { readonly isShown: boolean; readonly isAtTop: boolean }): void {
    const { ids, fresh, missed, hidden } = this.#state;
    const newest = Math.max(sequence, this.#state.newest);
    if (!isShown) return this.#set({ newest, hidden: hidden + 1 });
    // A row cannot be shown above one that is missed.
    const isFull = isAtTop && (this.#state.isFull || ids.length >= MAX_ARRIVED);
    if (!isAtTop || missed > 0 || isFull) return this.#set({ newest, missed: missed + 1, lastMissed: sequence, isFull });
    const { id, kind, severity, title, created, read } = notification;
    const data = { __typename: 'Notification', id, sequence, kind, severity, title, created, read } as never;
    // `writeFragment` makes the cache retain the object until it is released.
    this.#cache.writeFragment({ fragment: NotificationRow, data });
    this.#sequences.set(id, sequence);
    this.#set({ newest, ids: [id, ...ids], fresh: new Set([...fresh, id]) });
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#set({ fresh: new Set() }), FRESH_MS);
  }

  /** The list itself contains everything up to this sequence number now. */
  reach(sequence: number): void {
    const { ids, missed, lastMissed } = this.#state;
    const left = ids.filter((id) => (this.#sequences.get(id) ?? 0) > sequence);
    const isMissing = missed > 0 && lastMissed > sequence;
    if (left.length === ids.length && (missed === 0 || isMissing)) return;
    this.#release(ids.filter((id) => !left.includes(id)));
    this.#set({ ids: left, missed: isMissing ? missed : 0, isFull: isMissing && this.#state.isFull });
  }

  setGap(gap: State['gap']): void {
    this.#set({ gap });
  }

  clear(): void {
    clearTimeout(this.#timer);
    this.#release(this.#state.ids);
    this.#set(emptyState);
  }

  #release(ids: readonly string[]): void {
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
  /** The list with the new notifications above it. */
  readonly list: Endless<Row>;
  /** How many have arrived that are not shown. */
  readonly unseen: number;
  /** The highest sequence number that is shown. */
  readonly shownThrough: number;
  /** Reloads the list, with everything that has arrived. */
  readAnew(): void;
  forgetGap(): void;
}

/** A list of notifications that grows at its top while it is scrolled there. */
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
  const hasFeedStarted = useRef(useLive().state.name === 'live');

  useFeed((event) => {
    if (event.type === 'notification') {
      arrivals.add(event, { isShown: isWithin(filter, event.notification), isAtTop: isAtTop() });
    } else if (event.type === 'gap') {
      arrivals.setGap(event);
      readAnew();
    } else if (event.type === 'ready') {
      // Notifications between the list's response and the start of the feed are in neither.
      if (!hasFeedStarted.current && event.sequence !== top) readAnew();
      hasFeedStarted.current = true;
    }
  });
  useEffect(() => arrivals.reach(top), [arrivals, top]);
  const wasRefreshing = useRef(false);
  useEffect(() => {
    // A reloaded list contains all that had arrived before the request, unless the filter no longer matches.
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
    forgetGap: () => arrivals.setGap(null),
  };
}

/** The rows from the cache, so that one marked read elsewhere is read here too. */
function useRows(ids: readonly string[]): Row[] {
  const from = useMemo(() => ids.map((id) => ({ __typename: 'Notification' as const, id })), [ids]);
  const { data } = useFragment({ fragment: NotificationRow, from });
  return (data as (Row | null)[]).filter((row): row is Row => row !== null && 'sequence' in row);
}
