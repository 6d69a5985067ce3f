import { useQuery } from '@apollo/client/react';
import { Suspense, useState } from 'react';
import { Link } from 'wouter';
import { graphql, type ResultOf } from '../../graphql/graphql.ts';
import { toFailure } from '../../graphql/link.ts';
import { Coming, lazyPage } from '../../parts/lazy.tsx';
import { Empty, Loading, Problem } from '../../parts/states.tsx';
import { Time } from '../../parts/time.tsx';
import { useDesk } from '../../session/desk.tsx';
import { toInstance } from './address.ts';
import { useOpening } from './opening.ts';
import type { TabProps } from './query.ts';
import { describeClosing } from './reasons.ts';
import './console.css';

// A serial console does not load the code of the screen, nor the other way round.
const Serial = lazyPage(() => import('./serial.tsx'));
const Screen = lazyPage(() => import('./screen.tsx'));

const OccupiedQuery = graphql(`
  query ConsoleOccupied($id: ID!, $instanceId: ID!, $filter: ConsoleSessionFilter!) {
    project(id: $id) {
      id
      instance(id: $instanceId) {
        id
        consoleOccupied
      }
      consoleSessions(filter: $filter, first: 100) {
        nodes {
          id
          kind
          state
          created
          userEmail
          user {
            id
            name
          }
        }
      }
    }
  }
`);

type Session = NonNullable<ResultOf<typeof OccupiedQuery>['project']>['consoleSessions']['nodes'][number];

/** The instance's console, for users who may open one. */
export default function Console({ project, instance }: TabProps) {
  const { session } = useDesk();
  if (session.kind === 'key') {
    return (
      <Empty title="An API key opens no console in a page">
        <p>{describeClosing('session_required', '')} Sign out, and sign in with a token or an account.</p>
        <p>A program can use the key: the guide to consoles among the pages for developers shows how.</p>
      </Empty>
    );
  }
  if (project.role === 'viewer') {
    return (
      <Empty title="Your role opens no console">
        <p>{describeClosing('permission_denied', '')}</p>
      </Empty>
    );
  }
  return <Attempts project={project} instance={instance} />;
}

/** Each attempt to connect is a new session, and asks anew. */
function Attempts(props: TabProps) {
  const [{ attempt, previousId }, setAttempt] = useState<{ attempt: number; previousId: string | null }>({ attempt: 0, previousId: null });
  return (
    <TakeoverCheck
      key={attempt}
      {...props}
      previousId={previousId}
      onAgain={(sessionId) => setAttempt({ attempt: attempt + 1, previousId: sessionId })}
    />
  );
}

interface AttemptProps extends TabProps {
  /** Begins another attempt, after one with this session. */
  onAgain(sessionId: string | null): void;
}

interface TakeoverCheckProps extends AttemptProps {
  /** The session of the attempt before: the server may not know yet that it was left. */
  readonly previousId: string | null;
}

/** Asks for confirmation if opening the console would end an attached session. */
function TakeoverCheck({ project, instance, previousId, onAgain }: TakeoverCheckProps) {
  const [isSure, setSure] = useState(false);
  const { data, error, refetch } = useQuery(OccupiedQuery, {
    variables: { id: project.id, instanceId: instance.id, filter: { instanceId: instance.id, running: true } },
    fetchPolicy: 'no-cache',
  });
  const attached = data?.project?.consoleSessions.nodes.find(({ kind, state }) => kind === 'serial' && state === 'attached');
  const isFree = data?.project?.instance?.consoleOccupied === false || (attached && attached.id === previousId);
  if (isSure || isFree) return <OpenConsole project={project} instance={instance} onAgain={onAgain} />;
  if (error) return <Problem failure={toFailure(error)} retry={() => void refetch().catch(() => {})} />;
  if (!data) return <Loading />;
  return <Occupied session={attached ?? null} onSure={() => setSure(true)} />;
}

/** Without a session where the viewer may not see whose it is. */
function Occupied({ session, onSure }: { session: Session | null; onSure(): void }) {
  return (
    <Empty title="Somebody is at this console">
      <p>
        {session ? (
          <>
            <bdi>{session.user?.name || session.userEmail}</bdi> opened it <Time value={session.created} />.
          </>
        ) : (
          'Only admins of the project see who it is.'
        )}{' '}
        A serial console is one wire: whoever opens it ends the session before.
      </p>
      <button type="button" className="button" onClick={onSure}>
        Take it over
      </button>
    </Empty>
  );
}

function OpenConsole({ project, instance, onAgain }: AttemptProps) {
  const { stream, state, kind, sessionId, leave } = useOpening(project.id, instance.id);
  const again = () => onAgain(sessionId);
  if (kind === 'vnc') return <Screen project={project} instance={instance} sessionId={sessionId} onAgain={again} />;
  const hasEnded = state.name === 'ended';
  const closing = state.name === 'ended' && describeClosing(state.code, state.message);
  const waiting = state.name === 'waiting' && `${state.message} It is tried again.`;
  return (
    <section className="console" aria-label="Serial console">
      <div className="actions">
        <span className="connection" data-state={hasEnded ? 'offline' : state.name} role="status">
          <i aria-hidden="true" />
          {hasEnded ? 'ended' : state.name}
        </span>
        {hasEnded ? (
          <button type="button" className="button small" onClick={again}>
            Connect again
          </button>
        ) : (
          <button type="button" className="button small" onClick={leave}>
            Disconnect
          </button>
        )}
        <Link className="end" href={toInstance(project.id, instance.id, 'sessions')}>
          Who was here
        </Link>
      </div>
      {(closing || waiting) && (
        <p role="alert" className="console-note">
          {closing || waiting}
        </p>
      )}
      {kind === 'serial' && stream && (
        <Suspense fallback={<Coming />}>
          <Serial stream={stream} hasEnded={hasEnded} />
        </Suspense>
      )}
      {!kind && !hasEnded && <Loading lines={8} />}
    </section>
  );
}
