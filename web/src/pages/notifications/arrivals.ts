import type { InMemoryCache } from '@apollo/client';
import { useApolloClient, useFragment } from '@apollo/client/react';
import { useCallback, useEffect, useMemo, useRef, useSyncExternalStore } from 'react';
import { useFeed, useLive } from '../../live/live.tsx';
import type { Endless } from '../../parts/pages.ts';
import { Arrivals, countUnseen, type State } from './arrived.ts';
import { type Filter, isWithin, NotificationRow, type Row } from './row.ts';

export interface News extends State {
  /** The list with the new notifications above it. */
  readonly list: Endless<Row>;
  /** How many have arrived that are unread and not shown. */
  readonly unseen: number;
  /** The highest sequence number that is shown. */
  readonly shownThrough: number;
  /** Reloads the list, with everything that has arrived. */
  readAnew(): void;
  forgetGap(): void;
}

/** A list of notifications that grows at its top while it is scrolled there. */
export function useArrivals(projectId: string, list: Endless<Row>, filter: Filter, isAtTop: () => boolean): News {
  const { cache } = useApolloClient();
  const arrivals = useMemo(() => new Arrivals(cache as InMemoryCache, projectId), [cache, projectId]);
  const state = useSyncExternalStore(arrivals.watch, arrivals.read);
  const top = list.first?.sequence ?? 0;
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
  const { show, row, loaded } = list;
  const above = rows.length;
  return {
    ...state,
    list: {
      ...list,
      count: list.count + above,
      reach: list.reach + above,
      row: (index) => (index < above ? rows[index] : row(index - above)),
      loaded: () => [...rows, ...loaded()],
      first: rows[0] ?? list.first,
      show: useCallback((from: number, to: number) => show(Math.max(0, from - above), Math.max(0, to - above)), [show, above]),
    },
    unseen: countUnseen(state),
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
