import type { ApolloClient } from '@apollo/client';
import { useApolloClient, useFragment } from '@apollo/client/react';
import { type ConnectionState, type FeedEvent, PorticoError } from 'portico-client';
import { createContext, type ReactNode, useCallback, useContext, useEffect, useMemo, useRef, useState } from 'react';
import { graphql } from '../graphql/graphql.ts';
import { useDesk } from '../session/desk.tsx';
import { inBatches } from './batches.ts';
import { Intake, listUnread, markRead } from './intake.ts';

type Listener = (event: FeedEvent) => void;

/** The feed of the project that is shown: one for all its pages. */
export interface Live {
  readonly state: ConnectionState;
  /** Told each event, after the cache has it. Returns how to stop. */
  listen(listener: Listener): () => void;
  /** Opens the feed anew at once, behind the last event. */
  reconnect(): void;
}

const LiveContext = createContext<Live | null>(null);

export function useLive(): Live {
  const live = useContext(LiveContext);
  if (!live) throw new Error('There is no LiveProvider above.');
  return live;
}

/** Calls the listener with each event, as long as the component is shown. */
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
  const [turn, setTurn] = useState(0);
  const reconnect = useCallback(() => setTurn((before) => before + 1), []);
  const intake = useMemo(() => new Intake(apollo.cache, projectId), [apollo, projectId]);

  // biome-ignore lint/correctness/useExhaustiveDependencies: with each turn the feed is opened anew.
  useEffect(() => {
    const leaving = new AbortController();
    const after = intake.cursor;
    const tell = inBatches<FeedEvent>((events) => {
      intake.take(events);
      for (const event of events) for (const listener of listeners) shield(() => listener(event));
      if (after !== null && events.some(({ type }) => type === 'ready')) askUnread(apollo).catch(() => {});
    });
    const follow = async () => {
      // A feed that was left says that it has ended, when another one has begun.
      const onState = (next: ConnectionState) => leaving.signal.aborted || setState(next);
      try {
        for await (const event of portico.feed({ project: projectId, after, signal: leaving.signal, onState })) {
          if (leaving.signal.aborted) return;
          intake.reach(event);
          tell(event);
        }
      } catch (failure) {
        if (!(failure instanceof PorticoError)) reportError(failure);
        else if (failure.code === 'not_authenticated' && !leaving.signal.aborted) signOut('not_authenticated');
      }
    };
    follow();
    return () => leaving.abort();
  }, [portico, projectId, apollo, intake, listeners, signOut, turn]);

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

/** What one listener does wrong is no end of the feed for the others. */
function shield(work: () => void): void {
  try {
    work();
  } catch (failure) {
    reportError(failure);
  }
}

/** When the network comes or goes, or somebody looks at the tab again, it is tried at once. */
function useNetwork(isWaiting: boolean, reconnect: () => void): void {
  useEffect(() => {
    const look = () => {
      if (isWaiting && document.visibilityState === 'visible') reconnect();
    };
    addEventListener('online', reconnect);
    addEventListener('offline', reconnect);
    document.addEventListener('visibilitychange', look);
    return () => {
      removeEventListener('online', reconnect);
      removeEventListener('offline', reconnect);
      document.removeEventListener('visibilitychange', look);
    };
  }, [isWaiting, reconnect]);
}

const UnreadCount = graphql(`
  fragment UnreadCount on Project {
    id
    unreadNotificationCount
  }
`);

/** Longer than the feed takes to tell what a mutation has changed. */
const SETTLED_MS = 3_000;

/** An answer that was long on its way may bring an older count than the feed has told: the feed has the last word. */
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
const ASKED_AT_ONCE = 100;

/** What was read singly during a break is not told by the feed: those that the cache has as unread are asked for. */
async function askUnread(apollo: ApolloClient): Promise<void> {
  const ids = listUnread(apollo.cache).map(([, { id = '' }]) => id);
  for (let from = 0; from < ids.length; from += ASKED_AT_ONCE) {
    const variables = { ids: ids.slice(from, from + ASKED_AT_ONCE) };
    const { data } = await apollo.query({ query: ReadQuery, variables, fetchPolicy: 'no-cache' });
    const read = data?.nodes?.flatMap((node) => (node?.__typename === 'Notification' && node.read ? [node.id] : [])) ?? [];
    markRead(apollo.cache, { ids: read, through: 0 });
  }
}
