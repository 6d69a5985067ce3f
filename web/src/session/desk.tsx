import { ApolloClient } from '@apollo/client';
import { ApolloProvider } from '@apollo/client/react';
import { connect, type Portico } from 'portico-client';
import { createContext, type ReactNode, useCallback, useContext, useEffect, useMemo, useRef, useState } from 'react';
import { createCache } from '../graphql/cache.ts';
import { exactFetch } from '../graphql/exact.ts';
import { porticoLink } from '../graphql/link.ts';
import { SessionKeeper } from './keeper.ts';
import { readSession, type Session, writeSession } from './session.ts';

/** The signed-in session, as pages may use it. */
interface Desk {
  readonly portico: Portico;
  readonly session: Session;
  /** Drops the session; a reason is given if the person did not ask for it. */
  signOut(reason?: string): void;
}

interface Doorway {
  readonly desk: Desk | null;
  /** Why the last session ended; null if the person signed out. */
  readonly reason: string | null;
  signIn(session: Session): void;
}

const DoorwayContext = createContext<Doorway | null>(null);

export function useDoorway(): Doorway {
  const doorway = useContext(DoorwayContext);
  if (!doorway) throw new Error('There is no DeskProvider above.');
  return doorway;
}

/** For components that are shown only while somebody is signed in. */
export function useDesk(): Desk {
  const { desk } = useDoorway();
  if (!desk) throw new Error('Nobody is signed in.');
  return desk;
}

export function DeskProvider({ children }: { children: ReactNode }) {
  const [session, setSession] = useState(readSession);
  const [reason, setReason] = useState<string | null>(null);

  // The keeper is closed at once, not only with the next rendering: its renewal would write over the session.
  const keeper = useRef<SessionKeeper | null>(null);
  const replace = useCallback((next: Session | null, why: string | null) => {
    keeper.current?.close();
    writeSession(next);
    setReason(why);
    setSession(next);
  }, []);
  const signOut = useCallback((why: string | null = null) => replace(null, why), [replace]);
  const signIn = useCallback((next: Session) => replace(next, null), [replace]);

  const opened = useMemo(() => (session ? openDesk(session, signOut) : null), [session, signOut]);
  useEffect(() => {
    if (!opened) return;
    keeper.current = opened.keeper;
    opened.keeper.start();
    return () => opened.keeper.close();
  }, [opened]);
  const doorway = useMemo(() => ({ desk: opened?.desk ?? null, reason, signIn }), [opened, reason, signIn]);
  return (
    <DoorwayContext value={doorway}>
      {opened ? <ApolloProvider client={opened.apollo}>{children}</ApolloProvider> : children}
    </DoorwayContext>
  );
}

function openDesk(session: Session, signOut: (reason?: string) => void) {
  const keeper = new SessionKeeper(session);
  // Where the page has come without TLS, its requests are no more exposed than itself.
  const portico = connect({ url: location.origin, plainHttp: true, credential: keeper.credential, maxWaitMs: 5_000, fetch: exactFetch });
  const apollo = new ApolloClient({
    link: porticoLink(portico),
    cache: createCache(),
    defaultOptions: { watchQuery: { fetchPolicy: 'cache-and-network' } },
  });
  const desk: Desk = {
    portico,
    // A late response to an ended session does not end the one after it.
    signOut: (reason) => !keeper.isClosed && signOut(reason),
    get session() {
      return keeper.session;
    },
  };
  return { keeper, apollo, desk };
}
