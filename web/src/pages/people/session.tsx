import { useQuery } from '@apollo/client/react';
import { Dialog, DialogDismiss, DialogHeading } from '@ariakit/react';
import { useEffect, useRef, useState } from 'react';
import { Link } from 'wouter';
import { graphql, type ResultOf } from '../../graphql/graphql.ts';
import { toFailure } from '../../graphql/link.ts';
import { toPage } from '../../parts/address.ts';
import { Badge } from '../../parts/badge.tsx';
import { endings, kinds, states, useEndSession } from '../../parts/consoles.ts';
import { isFocusFree } from '../../parts/focus.ts';
import { formatBytes, formatDuration, formatExact } from '../../parts/format.ts';
import { Id } from '../../parts/id.tsx';
import { Empty, Loading, Problem } from '../../parts/states.tsx';
import { ExactTime } from '../../parts/time.tsx';

export const ConsoleSessionFields = graphql(`
  fragment ConsoleSessionFields on ConsoleSession {
    id
    userId
    userEmail
    instanceId
    instanceName
    instance {
      id
      name
    }
    kind
    state
    clientAddresses
    created
    ended
    endReason
    durationSeconds
    bytesIn
    bytesOut
  }
`);

const ConsoleSessionQuery = graphql(
  `
    query ConsoleSession($id: ID!, $projectId: ID!) {
      node(id: $id) {
        __typename
        id
        ... on ConsoleSession {
          project {
            id
          }
          ...ConsoleSessionFields
        }
      }
      project(id: $projectId) {
        id
        role
        organization {
          id
        }
      }
    }
  `,
  [ConsoleSessionFields],
);

export type ConsoleSession = ResultOf<typeof ConsoleSessionFields>;

interface SessionDialogProps {
  readonly projectId: string;
  readonly id: string;
  onClose(): void;
  onEnded(): void;
}

/** The full record of one session; a running one can be ended. */
export function SessionDialog({ projectId, id, onClose, onEnded }: SessionDialogProps) {
  const { data, error, refetch } = useQuery(ConsoleSessionQuery, { variables: { id, projectId } });
  const session = data?.node?.__typename === 'ConsoleSession' && data.node.project.id === projectId ? data.node : null;
  return (
    <Dialog className="dialog" open onClose={onClose} backdrop={<div className="backdrop" />}>
      <DialogHeading>Console session</DialogHeading>
      {!data && (error ? <Problem failure={toFailure(error)} retry={() => refetch()} /> : <Loading lines={4} />)}
      {data && !session && (
        <Empty title="There is no such session, or none that you may see">
          <p>Only the project’s admins see the sessions of others.</p>
        </Empty>
      )}
      {session && <Facts projectId={projectId} session={session} />}
      <div className="actions session-actions">
        {session && data?.project && session.state !== 'over' && (
          <End projectId={projectId} organizationId={data.project.organization.id} session={session} onEnded={onEnded} />
        )}
        <DialogDismiss className="button end">Close</DialogDismiss>
      </div>
    </Dialog>
  );
}

function Facts({ projectId, session }: { projectId: string; session: ConsoleSession }) {
  const { id, userId, userEmail, instanceId, instanceName, instance, kind, state, clientAddresses } = session;
  const only = (search: Readonly<Record<string, string>>) => toPage(projectId, 'people/sessions', search);
  return (
    <dl className="facts session-facts">
      <dt>Who</dt>
      <dd>
        <bdi>{userEmail}</bdi> · <Link href={only({ person: userId })}>all sessions of this person</Link>
      </dd>
      <dt>Instance</dt>
      <dd>
        {instance ? (
          <Link href={toPage(projectId, `instances/${instanceId}`)}>
            <bdi>{instance.name}</bdi>
          </Link>
        ) : (
          <>
            <bdi>{instanceName}</bdi>, which is gone
          </>
        )}
        {' · '}
        <Link href={only({ instance: instanceId })}>all sessions of this instance</Link>
      </dd>
      <dt>Kind</dt>
      <dd>{kinds[kind]}</dd>
      <dt>From</dt>
      <dd>
        {clientAddresses.map((address) => (
          <code key={address} className="line">
            {address}
          </code>
        ))}
      </dd>
      <dt>Began</dt>
      <dd>
        <ExactTime value={session.created} />
      </dd>
      <dt>Ended</dt>
      <dd>{session.ended ? formatExact(session.ended) : 'it runs'}</dd>
      <dt>For</dt>
      <dd>{formatDuration(session.durationSeconds)}</dd>
      <dt>To the console</dt>
      <dd>{formatBytes(session.bytesIn)}</dd>
      <dt>From the console</dt>
      <dd>{formatBytes(session.bytesOut)}</dd>
      <dt>State</dt>
      <dd>
        <Badge value={state} /> {session.endReason ? `because ${endings[session.endReason]}` : states[state]}
      </dd>
      <dt>Id</dt>
      <dd>
        <Id value={id} />
      </dd>
    </dl>
  );
}

interface EndProps {
  readonly projectId: string;
  readonly organizationId: string;
  readonly session: ConsoleSession;
  onEnded(): void;
}

/** Asks for confirmation, with the user's name. */
function End({ projectId, organizationId, session, onEnded }: EndProps) {
  /** Null until it has been asked. */
  const [isAsked, setAsked] = useState<boolean | null>(null);
  const { end, loading, error } = useEndSession();
  const button = useRef<HTMLButtonElement>(null);
  const question = useRef<HTMLElement>(null);
  useEffect(() => {
    if (isAsked !== null) (isAsked ? question : button).current?.focus();
  }, [isAsked]);
  if (!isAsked) {
    return (
      <button ref={button} type="button" className="button danger" onClick={() => setAsked(true)}>
        End this session …
      </button>
    );
  }
  const confirm = async () => {
    if (loading) return;
    // What has the focus goes with the question.
    const dialog = question.current?.closest<HTMLElement>('[role="dialog"]');
    if (!(await end({ projectId, organizationId, session }))) return;
    if (isFocusFree()) dialog?.focus();
    onEnded();
  };
  return (
    <section ref={question} tabIndex={-1} className="session-end" aria-label="End this session">
      <p>
        End the session of <bdi>{session.userEmail}</bdi> at <bdi>{session.instanceName}</bdi>? Whoever is at it is cut off at once.
      </p>
      {error && <Problem failure={toFailure(error)} />}
      <div className="actions">
        <button type="button" className="button danger" aria-disabled={loading} onClick={confirm}>
          End it
        </button>
        <button type="button" className="button" onClick={() => setAsked(false)}>
          Let it run
        </button>
      </div>
    </section>
  );
}
