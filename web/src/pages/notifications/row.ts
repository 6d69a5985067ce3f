import { graphql, type ResultOf, type VariablesOf } from '../../graphql/graphql.ts';

/** The fields of a notification that the list shows. */
export const NotificationRow = graphql(`
  fragment NotificationRow on Notification {
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
`);

export const NotificationsQuery = graphql(
  `
    query Notifications($id: ID!, $filter: NotificationFilter, $first: Int!, $after: String) {
      project(id: $id) {
        id
        notifications(filter: $filter, first: $first, after: $after) {
          totalCount
          nodes {
            ...NotificationRow
          }
          pageInfo {
            endCursor
            hasNextPage
          }
        }
      }
    }
  `,
  [NotificationRow],
);

export type Row = ResultOf<typeof NotificationRow>;
export type Severity = Row['severity'];
export type Filter = NonNullable<VariablesOf<typeof NotificationsQuery>['filter']>;

export const severities: readonly Severity[] = ['critical', 'warning', 'info'];

/** Whether a notification matches the filter, by the server's rules. */
export const isWithin = ({ unread, severity, kind }: Filter, row: Pick<Row, 'read' | 'severity' | 'kind'>) =>
  (!unread || !row.read) && (!severity || row.severity === severity) && (!kind || row.kind === kind);
