import { useApolloClient } from '@apollo/client/react';
import type { ConnectionState, ConsoleStream } from 'portico-client';
import { useCallback, useEffect, useRef, useState } from 'react';
import { graphql } from '../../graphql/graphql.ts';
import { toFailure } from '../../graphql/link.ts';
import { useDesk } from '../../session/desk.tsx';

const OwnQuery = graphql(`
  query OwnConsoleSessions($id: ID!, $filter: ConsoleSessionFilter!) {
    project(id: $id) {
      id
      consoleSessions(filter: $filter, first: 20) {
        nodes {
          id
          kind
        }
      }
    }
  }
`);

const ViewerQuery = graphql(`
  query ConsoleViewer {
    viewer {
      id
    }
  }
`);

type State =
  | { readonly name: 'connecting' | 'live' }
  | { readonly name: 'waiting'; readonly message: string }
  /** The code is one of docs/consoles.md or docs/errors.md, or `left`. */
  | { readonly name: 'ended'; readonly code: string; readonly message: string };

interface Session {
  readonly id: string;
  readonly kind: 'serial' | 'vnc';
}

interface Opening {
  /** The byte stream of a serial console; closed for a screen. */
  readonly stream: ConsoleStream | null;
  readonly state: State;
  /** Null until it is known. */
  readonly kind: 'serial' | 'vnc' | null;
  readonly sessionId: string | null;
  leave(): void;
}

/**
 * Opens the console of an instance, and closes it when the component unmounts. Only the session's record has the console's kind:
 * until that is read nothing can be typed and nothing is shown. A screen is left to its own protocol, in the same session.
 */
export function useOpening(projectId: string, instanceId: string): Opening {
  const { portico } = useDesk();
  const apollo = useApolloClient();
  const [stream, setStream] = useState<ConsoleStream | null>(null);
  const [state, setState] = useState<State>({ name: 'connecting' });
  const [session, setSession] = useState<Session | null>(null);
  const hasLeft = useRef(false);

  useEffect(() => {
    const controller = new AbortController();
    const { signal } = controller;
    const listOwn = async () => {
      const { data: who } = await apollo.query({ query: ViewerQuery });
      const filter = { instanceId, userId: who?.viewer?.id, running: true };
      const { data } = await apollo.query({ query: OwnQuery, variables: { id: projectId, filter }, fetchPolicy: 'no-cache' });
      return data?.project?.consoleSessions.nodes ?? [];
    };
    const open = async () => {
      const before = await listOwn();
      if (signal.aborted) return;
      const onState = (next: ConnectionState) => {
        if (!signal.aborted && next.name !== 'idle') setState(toState(next, hasLeft.current));
      };
      const opened = portico.console({ instance: instanceId, signal, onState });
      setStream(opened);
      const own = await findNewSession(opened, before, listOwn, signal);
      if (!own || signal.aborted) return;
      setSession(own);
      if (own.kind === 'vnc') controller.abort();
    };
    open().catch((failure: unknown) => {
      if (signal.aborted) return;
      controller.abort();
      setState({ name: 'ended', ...toFailure(failure) });
    });
    return () => controller.abort();
  }, [portico, apollo, projectId, instanceId]);

  const leave = useCallback(() => {
    hasLeft.current = true;
    stream?.close();
  }, [stream]);
  return { stream, state, kind: session?.kind ?? null, sessionId: session?.id ?? null, leave };
}

const [FIRST_DELAY_MS, LONGEST_DELAY_MS] = [50, 2000];

/** The session that opening a console created. Its record appears shortly after the socket opens. Null if the console ends before. */
async function findNewSession(
  opened: ConsoleStream,
  before: readonly Session[],
  listOwn: () => Promise<readonly Session[]>,
  signal: AbortSignal,
): Promise<Session | null> {
  for (let delay = FIRST_DELAY_MS; !signal.aborted && opened.state.name !== 'ended'; ) {
    await new Promise((resolve) => setTimeout(resolve, delay));
    if (opened.state.name !== 'live') continue;
    const found = (await listOwn()).find(({ id }) => before.every((known) => known.id !== id));
    if (found) return found;
    delay = Math.min(2 * delay, LONGEST_DELAY_MS);
  }
  return null;
}

function toState(state: ConnectionState, hasLeft: boolean): State {
  if (state.name === 'waiting') return { name: 'waiting', message: state.error.message };
  if (state.name !== 'ended') return { name: state.name === 'live' ? 'live' : 'connecting' };
  const { code, message } = state.error ?? { code: hasLeft ? 'left' : 'console_closed', message: '' };
  return { name: 'ended', code, message };
}
