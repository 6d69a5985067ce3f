import { Dialog, DialogDismiss, DialogHeading } from '@ariakit/react';
import { type MouseEvent, type RefObject, useEffect } from 'react';
import { Link } from 'wouter';
import { readExact, toJsonText, toPretty } from '../../graphql/exact.ts';
import { graphql, type ResultOf } from '../../graphql/graphql.ts';
import { toPage } from '../../parts/address.ts';
import { Badge } from '../../parts/badge.tsx';
import { CopyButton } from '../../parts/copy.tsx';
import { formatNumber, toWords } from '../../parts/format.ts';
import { Id } from '../../parts/id.tsx';
import { Query } from '../../parts/query.tsx';
import { Empty } from '../../parts/states.tsx';
import { ExactTime } from '../../parts/time.tsx';
import type { Marking } from './marking.ts';

const NotificationQuery = graphql(`
  query Notification($id: ID!) {
    node(id: $id) {
      id
      ... on Notification {
        sequence
        kind
        severity
        title
        body
        jsonText: data
        created
        read
        resourceType
        resourceId
        project {
          id
        }
        resource {
          id
          ... on Instance {
            name
            status
          }
        }
      }
    }
  }
`);

type Whole = Extract<NonNullable<ResultOf<typeof NotificationQuery>['node']>, { sequence: number }>;

interface OpenedProps {
  readonly projectId: string;
  /** Null if none is open. */
  readonly id: string | null;
  readonly marking: Marking;
  /** The element that gets the focus when the dialog is closed. */
  readonly back: RefObject<HTMLDivElement | null>;
  onClose(): void;
}

/** One notification in full, beside the list. */
export function Opened({ projectId, id, marking, back, onClose }: OpenedProps) {
  const { forgetFailure } = marking;
  useEffect(() => {
    // An error from before is about another notification.
    if (id !== null) forgetFailure();
  }, [id, forgetFailure]);
  return (
    <Dialog
      className="dialog notification"
      aria-label="Notification"
      open={id !== null}
      onClose={onClose}
      finalFocus={back}
      unmountOnHide
      backdrop={<div className="backdrop" />}
    >
      <DialogDismiss className="button icon notification-close" aria-label="Close">
        ×
      </DialogDismiss>
      {id !== null && (
        <Query key={id} document={NotificationQuery} variables={{ id }}>
          {({ node }) =>
            node?.__typename === 'Notification' && node.project?.id === projectId ? (
              <Content projectId={projectId} notification={node} marking={marking} />
            ) : (
              <Empty title="This notification is not here">
                <p>It may be older than what is kept, or belong to another project. The list has all that there is.</p>
              </Empty>
            )
          }
        </Query>
      )}
    </Dialog>
  );
}

function Content({ projectId, notification, marking }: { projectId: string; notification: Whole; marking: Marking }) {
  const { id, severity, title, kind, body, jsonText, created, read, sequence } = notification;
  const json = toPretty(readExact(toJsonText(jsonText)));
  const mark = ({ currentTarget }: MouseEvent<HTMLElement>) => {
    // The button goes, and the focus would be lost with it.
    currentTarget.closest<HTMLElement>('[role="dialog"]')?.focus();
    marking.markThese([id]);
  };
  return (
    <article>
      <Badge value={severity} />
      <DialogHeading render={(props) => <h2 {...props} />} className="notification-title">
        <bdi>{title}</bdi>
      </DialogHeading>
      {body && (
        <p className="notification-body">
          <bdi>{body}</bdi>
        </p>
      )}
      <p className="actions">
        {read ? (
          <span className="notification-read">Read</span>
        ) : (
          <button type="button" className="button primary" onClick={mark}>
            Mark as read
          </button>
        )}
      </p>
      {marking.failure && (
        <p className="field-error" role="alert">
          {marking.failure.message}
        </p>
      )}
      <dl className="facts">
        <dt>About</dt>
        <dd>
          <About projectId={projectId} notification={notification} />
        </dd>
        <dt>Kind</dt>
        <dd>
          <bdi>{kind}</bdi>
        </dd>
        <dt>Time</dt>
        <dd>
          <ExactTime value={created} />
        </dd>
        <dt>Number</dt>
        <dd>{formatNumber(sequence)}</dd>
        <dt>Id</dt>
        <dd>
          <Id value={id} />
        </dd>
      </dl>
      {json !== '{}' && (
        <section aria-labelledby="notification-data">
          <h3 id="notification-data">
            Data <CopyButton text={json} />
          </h3>
          {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it must scroll with the keyboard too. */}
          <pre className="notification-data" tabIndex={0}>
            {json}
          </pre>
        </section>
      )}
    </article>
  );
}

/** The resource that the notification is about, with a link. */
function About({ projectId, notification }: { projectId: string; notification: Whole }) {
  const { resource, resourceType, resourceId } = notification;
  if (resource?.__typename === 'Instance') {
    return (
      <>
        <Link href={toPage(projectId, `instances/${resource.id}`)}>
          <bdi>{resource.name}</bdi>
        </Link>{' '}
        <Badge value={resource.status} />
      </>
    );
  }
  if (!resourceType && !resourceId) return <>The project</>;
  return (
    <>
      <bdi>{toWords(resourceType ?? '')}</bdi> <bdi>{resourceId}</bdi>
      {resourceType === 'instance' && !resource && ' (gone)'}
    </>
  );
}
