import type { ApolloClient } from '@apollo/client';
import { useApolloClient, useFragment } from '@apollo/client/react';
import { type ConnectionState, type FeedEvent, PorticoError } from 'portico-client';
import { createContext, type ReactNode, useCallback, useContext, useEffect, useMemo, useRef, useState } from 'react';
import { graphql } from '../graphql/graphql.ts';
import { useDesk } from '../session/desk.tsx';
import { inBatches } from './batches.ts';
import { Intake, listUnread, markRead } from './intake.ts';

type Listener = (event: FeedEvent) => void;

/** The feed of the current project, shared by all its pages. */
export interface Live {
  readonly state: ConnectionState;
  /** The listener is called with each event, in order, after its effect on the cache. Returns the function that unsubscribes. */
  listen(listener: Listener): () => void;
  /** Reopens the feed at once, after the last event. */
  reconnect(): void;
}

const LiveContext = createContext<Live | null>(null);

export function useLive(): Live {
  const live = useContext(LiveContext);
  if (!live) throw new Error('There is no LiveProvider above.');
  return live;
}

/** Calls the listener with each event while the component is mounted. */
export function useFeed(listener: Listener): void {
  const { listen } = useLive();
  const latest = useRef(listener);
  latest.current = listener;
  useEffect(() => listen((event) => latest.current(event)), [listen]);
}

export function LiveProvider({ projectId, children }: { projectId: string; children: ReactNode }) {
  const { portico, signOut } = useDesk();
  const apollo = useApolloClient();
  const [state, setState] = useState<ConnectionState>({ name: 'idle' });
  const [listeners] = useState(() => new Set<Listener>());
  const [attempt, setAttempt] = useState(0);
  const reconnect = useCallback(() => {
    setState({ name: 'connecting' });
    setAttempt((before) => before + 1);
  }, []);
  const intake = useMemo(() => new Intake(apollo.cache, projectId), [apollo, projectId]);

  // biome-ignore lint/correctness/useExhaustiveDependencies: each attempt opens the feed anew.
  useEffect(() => {
    const controller = new AbortController();
    const after = intake.cursor;
    let isComingBack = after !== null;
    const deliver = inBatches<FeedEvent>((events) => {
      intake.take(events, (event) => {
        for (const listener of listeners) callSafely(() => listener(event));
      });
      // The client package comes back by itself, and then there is another `ready`.
      for (const { type } of events) {
        if (type !== 'ready') continue;
        if (isComingBack) queryReadStates(apollo).catch(() => {});
        isComingBack = true;
      }
    });
    const readFeed = async () => {
      // An aborted feed reports its end after the next one has begun.
      const onState = (next: ConnectionState) => controller.signal.aborted || setState((before) => settle(before, next));
      try {
        for await (const event of portico.feed({ project: projectId, after, signal: controller.signal, onState })) {
          if (controller.signal.aborted) return;
          intake.reach(event);
          deliver(event);
        }
      } catch (failure) {
        if (!(failure instanceof PorticoError)) reportError(failure);
        else if (failure.code === 'not_authenticated' && !controller.signal.aborted) signOut('not_authenticated');
      }
    };
    readFeed();
    return () => controller.abort();
  }, [portico, projectId, apollo, intake, listeners, signOut, attempt]);

  useNetwork(state.name === 'waiting', reconnect);
  useSettledCount(projectId, intake, state.name === 'live');
  const listen = useCallback(
    (listener: Listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    [listeners],
  );
  const live = useMemo<Live>(() => ({ state, listen, reconnect }), [state, listen, reconnect]);
  return <LiveContext value={live}>{children}</LiveContext>;
}

/** A feed that waits does so until it is live or has ended: its attempts, which come and go, would be told and read out one by one. */
const settle = (before: ConnectionState, next: ConnectionState): ConnectionState =>
  before.name === 'waiting' && next.name === 'connecting' ? before : next;

/** An exception in one listener does not end the feed for the others. */
function callSafely(work: () => void): void {
  try {
    work();
  } catch (failure) {
    reportError(failure);
  }
}

/** Reconnects at once when the network changes, or when a waiting tab becomes visible. */
function useNetwork(isWaiting: boolean, reconnect: () => void): void {
  useEffect(() => {
    const onVisibilityChange = () => {
      if (isWaiting && document.visibilityState === 'visible') reconnect();
    };
    addEventListener('online', reconnect);
    addEventListener('offline', reconnect);
    document.addEventListener('visibilitychange', onVisibilityChange);
    return () => {
      removeEventListener('online', reconnect);
      removeEventListener('offline', reconnect);
      document.removeEventListener('visibilitychange', onVisibilityChange);
    };
  }, [isWaiting, reconnect]);
}

const UnreadCount = graphql(`
  fragment UnreadCount on Project {
    id
    unreadNotificationCount
  }
`);

/** Longer than the feed takes to deliver the effect of a mutation. */
const SETTLED_MS = 3_000;

/** A slow response may carry an older count than the feed has delivered: the feed's count replaces it. */
function useSettledCount(projectId: string, intake: Intake, isLive: boolean): void {
  const { data } = useFragment({ fragment: UnreadCount, from: { __typename: 'Project', id: projectId } });
  const count = data?.unreadNotificationCount;
  useEffect(() => {
    if (!isLive || count === undefined) return;
    const timer = setTimeout(() => intake.settle(), SETTLED_MS);
    return () => clearTimeout(timer);
  }, [intake, isLive, count]);
}

const ReadQuery = graphql(`
  query ReadStates($ids: [ID!]!) {
    nodes(ids: $ids) {
      id
      ... on Notification {
        read
      }
    }
  }
`);
const MAX_IDS_PER_QUERY = 100;

/** After a break the feed does not replay notifications that were read singly, so those cached as unread are queried. */
async function queryReadStates(apollo: ApolloClient): Promise<void> {
  const ids = listUnread(apollo.cache).map(([, { id = '' }]) => id);
  for (let from = 0; from < ids.length; from += MAX_IDS_PER_QUERY) {
    const variables = { ids: ids.slice(from, from + MAX_IDS_PER_QUERY) };
    const { data } = await apollo.query({ query: ReadQuery, variables, fetchPolicy: 'no-cache' });
    const read = data?.nodes?.flatMap((node) => (node?.__typename === 'Notification' && node.read ? [node.id] : [])) ?? [];
    markRead(apollo.cache, read);
  }
}
