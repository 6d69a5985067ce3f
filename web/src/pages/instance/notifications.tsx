import { Link, useLocation } from 'wouter';
import { graphql, type ResultOf } from '../../graphql/graphql.ts';
import { toPage } from '../../parts/address.ts';
import { Badge } from '../../parts/badge.tsx';
import type { Column } from '../../parts/column.ts';
import { useEndless } from '../../parts/pages.ts';
import { Empty } from '../../parts/states.tsx';
import { DataTable } from '../../parts/table.tsx';
import { Time } from '../../parts/time.tsx';
import { useUpdates } from '../../parts/updates.ts';
import type { TabProps } from './query.ts';

const NotificationsQuery = graphql(`
  query InstanceNotifications($projectId: ID!, $id: ID!, $first: Int, $after: String) {
    project(id: $projectId) {
      id
      instance(id: $id) {
        id
        notifications(first: $first, after: $after) {
          totalCount
          pageInfo {
            endCursor
            hasNextPage
          }
          nodes {
            id
            sequence
            kind
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
  }
`);

type Row = NonNullable<NonNullable<ResultOf<typeof NotificationsQuery>['project']>['instance']>['notifications']['nodes'][number];

const toAddress = (projectId: string, id: string) => toPage(projectId, 'notifications', { open: id });

const toColumns = (projectId: string): readonly Column<Row>[] => [
  { name: 'severity', title: 'Severity', width: '84px', cell: ({ severity }) => <Badge value={severity} /> },
  {
    name: 'title',
    title: 'Title',
    width: 'minmax(120px, 3fr)',
    cell: ({ id, title, read }) => (
      <Link href={toAddress(projectId, id)} tabIndex={-1} className={read ? undefined : 'unread-title'}>
        <bdi>{title}</bdi>
      </Link>
    ),
  },
  { name: 'kind', title: 'Kind', width: 'minmax(120px, 1fr)', isMinor: true, cell: ({ kind }) => kind },
  { name: 'created', title: 'When', width: '84px', cell: ({ created }) => <Time value={created} /> },
];

/** The notifications about the instance, the newest first. */
export function InstanceNotifications({ project, instance }: TabProps) {
  const [, navigate] = useLocation();
  const list = useEndless({
    document: NotificationsQuery,
    variables: { projectId: project.id, id: instance.id },
    parent: { __typename: 'Instance', id: instance.id },
    field: 'notifications',
    pick: ({ project }) => project?.instance?.notifications,
  });
  useUpdates(list);
  return (
    <DataTable
      label="Notifications about the instance"
      list={list}
      columns={toColumns(project.id)}
      onOpen={({ id }) => navigate(toAddress(project.id, id))}
      empty={<Empty title="Nothing has been told about it yet" />}
    />
  );
}
