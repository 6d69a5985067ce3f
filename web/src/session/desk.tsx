import { ApolloClient } from '@apollo/client';
import { ApolloProvider } from '@apollo/client/react';
import { connect, type Portico } from 'portico-client';
import { createContext, type ReactNode, useCallback, useContext, useEffect, useMemo, useState } from 'react';
import { createCache } from '../graphql/cache.ts';
import { exactFetch } from '../graphql/exact.ts';
import { porticoLink } from '../graphql/link.ts';
import { SessionKeeper } from './keeper.ts';
import { readSession, type Session, writeSession } from './session.ts';

/** All that a page may use of who is signed in. */
export interface Desk {
  readonly portico: Portico;
  readonly session: Session;
  /** Forgets the session; with a reason where it was not the person who wished so. */
  signOut(reason?: string): void;
}

interface Doorway {
  readonly desk: Desk | null;
  /** Why the last session ended; null where somebody signed out. */
  readonly reason: string | null;
  signIn(session: Session): void;
}

const DoorwayContext = createContext<Doorway | null>(null);

export function useDoorway(): Doorway {
  const doorway = useContext(DoorwayContext);
  if (!doorway) throw new Error('There is no DeskProvider above.');
  return doorway;
}

/** For whatever is shown to those who are signed in alone. */
export function useDesk(): Desk {
  const { desk } = useDoorway();
  if (!desk) throw new Error('Nobody is signed in.');
  return desk;
}

export function DeskProvider({ children }: { children: ReactNode }) {
  const [session, setSession] = useState(readSession);
  const [reason, setReason] = useState<string | null>(null);

  const signOut = useCallback((why: string | null = null) => {
    writeSession(null);
    setReason(why);
    setSession(null);
  }, []);
  const signIn = useCallback((next: Session) => {
    writeSession(next);
    setReason(null);
    setSession(next);
  }, []);

  const parts = useMemo(() => (session ? open(session, signOut) : null), [session, signOut]);
  useEffect(() => () => parts?.keeper.close(), [parts]);
  const doorway = useMemo(() => ({ desk: parts?.desk ?? null, reason, signIn }), [parts, reason, signIn]);
  return (
    <DoorwayContext value={doorway}>{parts ? <ApolloProvider client={parts.apollo}>{children}</ApolloProvider> : children}</DoorwayContext>
  );
}

function open(session: Session, signOut: (reason?: string) => void) {
  const keeper = new SessionKeeper(session);
  const portico = connect({ url: location.origin, credential: keeper.credential, maxWaitMs: 5_000, fetch: exactFetch });
  const apollo = new ApolloClient({
    link: porticoLink(portico),
    cache: createCache(),
    defaultOptions: { watchQuery: { fetchPolicy: 'cache-and-network' } },
  });
  const desk: Desk = {
    portico,
    signOut,
    get session() {
      return keeper.session;
    },
  };
  return { keeper, apollo, desk };
}
