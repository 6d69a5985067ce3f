import type { ProjectScope } from '../access/scope.ts';
import type { ReadWeighed, Weighed } from '../graph/answer.ts';
import type { Slice } from '../graph/connection.ts';
import { groupRows, pickCounts } from '../graph/level.ts';
import { type InProject, pickInProject } from '../graph/node.ts';
import type { Database, Statements } from '../platform/database.ts';
import { LAST } from './list.ts';
import type { Notification } from './log.ts';
import type { NotificationFilter } from './service.ts';

/** A notification, with the project in whose log it stands. */
export type FoundNotification = Notification & { readonly projectId: string };

/** Notifications by their ids, as their viewer has read them; null for one of another project. */
export async function findNotifications(
  database: Database,
  asked: readonly InProject[],
  read: ReadWeighed,
): Promise<Array<FoundNotification | null>> {
  return pickInProject(asked, await read((bytesLeft) => select(database, asked, bytesLeft)));
}

/** The heavy columns are read as far as the bytes that are left allow; without any, they are left out. */
function select(database: Database, asked: readonly InProject[], bytesLeft: number | null): Promise<Array<FoundNotification & Weighed>> {
  const ids = asked.map(({ id }) => id);
  const projectIds = asked.map(({ scope }) => scope.projectId);
  const userIds = asked.map(({ scope }) => scope.viewer.userId);
  return database.query<FoundNotification & Weighed>`
    SELECT id, "projectId", sequence, kind, severity, title, CASE WHEN fits THEN body ELSE '' END AS body,
      "resourceType", "resourceId", CASE WHEN fits THEN data ELSE '{}'::json END AS data, created, read,
      size AS bytes
    FROM (
      SELECT found.*, sum(size) OVER (ORDER BY id) <= ${bytesLeft}::bigint AS fits
      FROM (
        SELECT notification.id, notification.project_id AS "projectId", notification.sequence::int AS sequence, notification.kind,
          notification.severity, notification.title, notification.body, notification.resource_type AS "resourceType",
          notification.resource_id AS "resourceId", notification.data, notification.created,
          single.sequence IS NOT NULL OR notification.sequence <= coalesce(state.read_through, 0) AS read,
          CASE WHEN ${bytesLeft}::bigint IS NULL THEN 0 ELSE octet_length(notification.body) + octet_length(notification.data::text) END AS size
        FROM unnest(${ids}::uuid[], ${projectIds}::uuid[], ${userIds}::uuid[]) AS wanted (id, project_id, user_id)
        CROSS JOIN LATERAL (
          SELECT * FROM notifications WHERE notifications.id = wanted.id AND notifications.project_id = wanted.project_id LIMIT 1
        ) AS notification
        LEFT JOIN notification_states AS state
          ON state.project_id = notification.project_id AND state.user_id = wanted.user_id
        LEFT JOIN LATERAL (
          SELECT reads.sequence FROM notification_reads AS reads
          WHERE reads.project_id = notification.project_id AND reads.user_id = wanted.user_id
            AND reads.sequence = notification.sequence
          LIMIT 1
        ) AS single ON true
      ) AS found
    ) AS weighed`;
}

/** Which of the named notifications of the project the viewer has not read. */
export async function findUnread({ database, projectId, viewer }: ProjectScope<Statements>, ids: readonly string[]): Promise<string[]> {
  const rows = await database.query<{ id: string }>`
    SELECT notification.id FROM notifications AS notification
    LEFT JOIN notification_states AS state ON state.project_id = notification.project_id AND state.user_id = ${viewer.userId}::uuid
    LEFT JOIN LATERAL (
      SELECT reads.sequence FROM notification_reads AS reads
      WHERE reads.project_id = notification.project_id AND reads.user_id = ${viewer.userId}::uuid
        AND reads.sequence = notification.sequence
      LIMIT 1
    ) AS single ON true
    WHERE notification.id = ANY (${ids}::uuid[]) AND notification.project_id = ${projectId}::uuid
      AND single.sequence IS NULL AND notification.sequence > coalesce(state.read_through, 0)
    ORDER BY notification.sequence`;
  return rows.map(({ id }) => id);
}

/** The list of each of several projects, the newest first: two statements, however many projects. */
export async function listOfProjects(
  database: Database,
  scopes: readonly ProjectScope[],
  { filter, slice }: { filter: NotificationFilter; slice: Slice<number> },
  read: ReadWeighed,
): Promise<FoundNotification[][]> {
  const { unread = null, severity = null, kind = null } = filter;
  const { before: above = 0, after: below = LAST, limit } = slice;
  const projectIds = scopes.map(({ projectId }) => projectId);
  const userIds = scopes.map(({ viewer }) => viewer.userId);
  const rows = slice.backwards
    ? await database.query<Place>`
        SELECT listed.id, wanted.project_id AS "projectId"
        FROM unnest(${projectIds}::uuid[], ${userIds}::uuid[]) AS wanted (project_id, user_id)
        LEFT JOIN notification_states AS state ON state.project_id = wanted.project_id AND state.user_id = wanted.user_id
        CROSS JOIN LATERAL (
          SELECT least(${below}::bigint, CASE WHEN NOT ${unread}::boolean THEN greatest(coalesce(state.read_through, 0), max(sequence)) + 1 END) AS below
          FROM notification_reads WHERE project_id = wanted.project_id AND user_id = wanted.user_id
        ) AS mark
        CROSS JOIN LATERAL (
          SELECT either.id, either.sequence FROM (
            (SELECT notification.id, notification.sequence FROM notifications AS notification
            LEFT JOIN notification_reads AS single
              ON single.project_id = notification.project_id AND single.user_id = wanted.user_id AND single.sequence = notification.sequence
            WHERE ${kind}::text IS NULL AND ${severity}::severity IS NULL AND notification.project_id = wanted.project_id
              AND notification.sequence > greatest(${above}::bigint, CASE WHEN ${unread}::boolean THEN state.read_through END) AND notification.sequence < mark.below
              AND (${unread}::boolean IS NULL
                OR ${unread}::boolean <> (single.sequence IS NOT NULL OR notification.sequence <= coalesce(state.read_through, 0)))
            ORDER BY notification.sequence LIMIT ${limit})
            UNION ALL
            (SELECT notification.id, notification.sequence FROM notifications AS notification
            LEFT JOIN notification_reads AS single
              ON single.project_id = notification.project_id AND single.user_id = wanted.user_id AND single.sequence = notification.sequence
            WHERE ${kind}::text IS NOT NULL AND notification.project_id = wanted.project_id AND notification.kind = ${kind}::text
              AND (${severity}::severity IS NULL OR ${severity}::severity = notification.severity)
              AND notification.sequence > greatest(${above}::bigint, CASE WHEN ${unread}::boolean THEN state.read_through END) AND notification.sequence < mark.below
              AND (${unread}::boolean IS NULL
                OR ${unread}::boolean <> (single.sequence IS NOT NULL OR notification.sequence <= coalesce(state.read_through, 0)))
            ORDER BY notification.sequence LIMIT ${limit})
            UNION ALL
            (SELECT notification.id, notification.sequence FROM notifications AS notification
            LEFT JOIN notification_reads AS single
              ON single.project_id = notification.project_id AND single.user_id = wanted.user_id AND single.sequence = notification.sequence
            WHERE ${kind}::text IS NULL AND ${severity}::severity IS NOT NULL AND notification.project_id = wanted.project_id AND ${severity}::severity = notification.severity
              AND notification.sequence > greatest(${above}::bigint, CASE WHEN ${unread}::boolean THEN state.read_through END) AND notification.sequence < mark.below
              AND (${unread}::boolean IS NULL
                OR ${unread}::boolean <> (single.sequence IS NOT NULL OR notification.sequence <= coalesce(state.read_through, 0)))
            ORDER BY notification.sequence LIMIT ${limit})
          ) AS either
        ) AS listed
        ORDER BY listed.sequence`
    : await database.query<Place>`
        SELECT listed.id, wanted.project_id AS "projectId"
        FROM unnest(${projectIds}::uuid[], ${userIds}::uuid[]) AS wanted (project_id, user_id)
        LEFT JOIN notification_states AS state ON state.project_id = wanted.project_id AND state.user_id = wanted.user_id
        CROSS JOIN LATERAL (
          SELECT least(${below}::bigint, CASE WHEN NOT ${unread}::boolean THEN greatest(coalesce(state.read_through, 0), max(sequence)) + 1 END) AS below
          FROM notification_reads WHERE project_id = wanted.project_id AND user_id = wanted.user_id
        ) AS mark
        CROSS JOIN LATERAL (
          SELECT either.id, either.sequence FROM (
            (SELECT notification.id, notification.sequence FROM notifications AS notification
            LEFT JOIN notification_reads AS single
              ON single.project_id = notification.project_id AND single.user_id = wanted.user_id AND single.sequence = notification.sequence
            WHERE ${kind}::text IS NULL AND ${severity}::severity IS NULL AND notification.project_id = wanted.project_id
              AND notification.sequence > greatest(${above}::bigint, CASE WHEN ${unread}::boolean THEN state.read_through END) AND notification.sequence < mark.below
              AND (${unread}::boolean IS NULL
                OR ${unread}::boolean <> (single.sequence IS NOT NULL OR notification.sequence <= coalesce(state.read_through, 0)))
            ORDER BY notification.sequence DESC LIMIT ${limit})
            UNION ALL
            (SELECT notification.id, notification.sequence FROM notifications AS notification
            LEFT JOIN notification_reads AS single
              ON single.project_id = notification.project_id AND single.user_id = wanted.user_id AND single.sequence = notification.sequence
            WHERE ${kind}::text IS NOT NULL AND notification.project_id = wanted.project_id AND notification.kind = ${kind}::text
              AND (${severity}::severity IS NULL OR ${severity}::severity = notification.severity)
              AND notification.sequence > greatest(${above}::bigint, CASE WHEN ${unread}::boolean THEN state.read_through END) AND notification.sequence < mark.below
              AND (${unread}::boolean IS NULL
                OR ${unread}::boolean <> (single.sequence IS NOT NULL OR notification.sequence <= coalesce(state.read_through, 0)))
            ORDER BY notification.sequence DESC LIMIT ${limit})
            UNION ALL
            (SELECT notification.id, notification.sequence FROM notifications AS notification
            LEFT JOIN notification_reads AS single
              ON single.project_id = notification.project_id AND single.user_id = wanted.user_id AND single.sequence = notification.sequence
            WHERE ${kind}::text IS NULL AND ${severity}::severity IS NOT NULL AND notification.project_id = wanted.project_id AND ${severity}::severity = notification.severity
              AND notification.sequence > greatest(${above}::bigint, CASE WHEN ${unread}::boolean THEN state.read_through END) AND notification.sequence < mark.below
              AND (${unread}::boolean IS NULL
                OR ${unread}::boolean <> (single.sequence IS NOT NULL OR notification.sequence <= coalesce(state.read_through, 0)))
            ORDER BY notification.sequence DESC LIMIT ${limit})
          ) AS either
        ) AS listed
        ORDER BY listed.sequence DESC`;
  const scopeOf = new Map(scopes.map((scope) => [scope.projectId, scope]));
  const asked = rows.flatMap(({ id, projectId }) => {
    const scope = scopeOf.get(projectId);
    return scope && id !== null ? [{ scope, id }] : [];
  });
  const found = asked.length > 0 ? await findNotifications(database, asked, read) : [];
  return groupRows(
    projectIds,
    found.filter((notification) => notification !== null),
    ({ projectId }) => projectId,
  );
}

interface Place {
  readonly id: string | null;
  readonly projectId: string;
}

/** How many there are in each of the lists: arithmetic, unless a severity or a kind is asked for. */
export async function countNotifications(
  database: Database,
  scopes: readonly ProjectScope[],
  { unread = null, severity = null, kind = null }: NotificationFilter,
): Promise<number[]> {
  const projectIds = scopes.map(({ projectId }) => projectId);
  const userIds = scopes.map(({ viewer }) => viewer.userId);
  const rows = await database.query<{ projectId: string; count: number | null }>`
    SELECT wanted.project_id AS "projectId", (CASE
        WHEN ${kind}::text IS NOT NULL THEN (
          SELECT count(*) FROM notifications AS notification
          LEFT JOIN notification_reads AS single
            ON single.project_id = notification.project_id AND single.user_id = wanted.user_id AND single.sequence = notification.sequence
          WHERE notification.project_id = wanted.project_id AND notification.kind = ${kind}::text
            AND (${severity}::severity IS NULL OR ${severity}::severity = notification.severity)
            AND (${unread}::boolean IS NULL
              OR ${unread}::boolean <> (single.sequence IS NOT NULL OR notification.sequence <= coalesce(state.read_through, 0))))
        WHEN ${severity}::severity IS NOT NULL THEN (
          SELECT count(*) FROM notifications AS notification
          LEFT JOIN notification_reads AS single
            ON single.project_id = notification.project_id AND single.user_id = wanted.user_id AND single.sequence = notification.sequence
          WHERE notification.project_id = wanted.project_id AND ${severity}::severity = notification.severity
            AND (${unread}::boolean IS NULL
              OR ${unread}::boolean <> (single.sequence IS NOT NULL OR notification.sequence <= coalesce(state.read_through, 0))))
        WHEN ${unread}::boolean IS NULL THEN log.last_sequence - log.pruned_through
        WHEN ${unread}::boolean THEN unread_notifications(wanted.project_id, wanted.user_id)
        ELSE log.last_sequence - log.pruned_through - unread_notifications(wanted.project_id, wanted.user_id)
      END)::int AS count
    FROM unnest(${projectIds}::uuid[], ${userIds}::uuid[]) AS wanted (project_id, user_id)
    JOIN notification_logs AS log ON log.project_id = wanted.project_id
    LEFT JOIN notification_states AS state ON state.project_id = wanted.project_id AND state.user_id = wanted.user_id`;
  return pickCounts(projectIds, rows, ({ projectId }) => projectId);
}
