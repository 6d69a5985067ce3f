import { useQuery } from '@apollo/client/react';
import { useEffect, useRef } from 'react';
import { Link } from 'wouter';
import { graphql } from '../../graphql/graphql.ts';
import { toFailure } from '../../graphql/link.ts';
import { useFeed } from '../../live/live.tsx';
import { toPage } from '../../parts/address.ts';
import { Badge } from '../../parts/badge.tsx';
import { Empty, Loading, Problem } from '../../parts/states.tsx';
import { Time } from '../../parts/time.tsx';

const NewestQuery = graphql(`
  query Newest($id: ID!) {
    project(id: $id) {
      id
      notifications(first: 8) {
        nodes {
          id
          sequence
          severity
          title
          created
          read
          project {
            id
          }
        }
      }
    }
  }
`);

/** The newest notifications, updated live. */
export function Newest({ projectId }: { projectId: string }) {
  const { data, loading, error, client, refetch } = useQuery(NewestQuery, { variables: { id: projectId } });
  const nodes = data?.project?.notifications.nodes;
  const first = nodes?.[0]?.sequence ?? 0;
  const delivered = useRef(0);
  useEffect(() => {
    if (loading || first >= delivered.current) return;
    // The response was under way when the notification came.
    delivered.current = 0;
    refetch().catch(() => {});
  }, [loading, first, refetch]);
  useFeed((event) => {
    // Notifications between the query's response and the start of the feed are in neither.
    const isBehind = event.type === 'ready' && event.sequence !== first;
    if (event.type === 'gap' || isBehind) refetch().catch(() => {});
    if (event.type !== 'notification') return;
    delivered.current = event.sequence;
    client.cache.updateQuery({ query: NewestQuery, variables: { id: projectId } }, (before) => {
      if (!before?.project || before.project.notifications.nodes.some(({ id }) => id === event.notification.id)) return before;
      const { id, severity, title, created, read } = event.notification;
      const project = { __typename: 'Project', id: projectId };
      const node = { __typename: 'Notification', id, sequence: event.sequence, severity, title, created, read, project } as never;
      const { notifications } = before.project;
      return {
        ...before,
        project: { ...before.project, notifications: { ...notifications, nodes: [node, ...notifications.nodes].slice(0, 8) } },
      };
    });
  });
  return (
    <section aria-labelledby="newest">
      <h2 id="newest">Newest notifications</h2>
      {!nodes && (error ? <Problem failure={toFailure(error)} retry={() => refetch()} /> : <Loading lines={4} />)}
      {nodes?.length === 0 && <Empty title="Nothing has happened yet" />}
      <ul className="newest">
        {nodes?.map(({ id, severity, title, created, read }) => (
          <li key={id} className={read ? undefined : 'unread'}>
            <Badge value={severity} />
            <Link href={toPage(projectId, 'notifications', { open: id })}>
              <bdi>{title}</bdi>
            </Link>
            <Time value={created} />
          </li>
        ))}
      </ul>
      <p>
        <Link href={toPage(projectId, 'notifications')}>All notifications</Link>
      </p>
    </section>
  );
}
