import { type ProjectScope, projectIdsOf } from '../access/scope.ts';
import { pickCounts } from '../kernel/rows.ts';
import type { Database, SqlClient } from '../platform/database.ts';
import type { Hubs } from './hubs.ts';

/** The number of unread notifications in each project. */
export async function countUnread(database: Database, scopes: readonly ProjectScope[]): Promise<number[]> {
  const projectIds = projectIdsOf(scopes);
  const userIds = scopes.map(({ viewer }) => viewer.userId);
  const rows = await database.query<{ projectId: string | null; count: number | null }>`
    SELECT wanted.project_id AS "projectId", unread_notifications(wanted.project_id, wanted.user_id)::bigint AS count
    FROM unnest(${projectIds}::uuid[], ${userIds}::uuid[]) AS wanted (project_id, user_id)`;
  return pickCounts(projectIds, rows, ({ projectId }) => projectId);
}

/** The ids of the named notifications of the project that the viewer has not read. */
export async function findUnread({ database, projectId, viewer }: ProjectScope<SqlClient>, ids: readonly string[]): Promise<string[]> {
  const rows = await database.query<{ id: string }>`
    SELECT notification.id FROM unnest(${ids}::uuid[]) AS wanted (id)
    CROSS JOIN LATERAL (SELECT * FROM notifications WHERE notifications.id = wanted.id LIMIT 1) AS notification
    LEFT JOIN notification_states AS state ON state.project_id = notification.project_id AND state.user_id = ${viewer.userId}::uuid
    LEFT JOIN LATERAL (
      SELECT reads.sequence FROM notification_reads AS reads
      WHERE reads.project_id = notification.project_id AND reads.user_id = ${viewer.userId}::uuid
        AND reads.sequence = notification.sequence
      LIMIT 1
    ) AS single ON true
    WHERE notification.project_id = ${projectId}::uuid
      AND single.sequence IS NULL AND notification.sequence > coalesce(state.read_through, 0)
    ORDER BY notification.sequence`;
  return [...new Set(rows.map(({ id }) => id))];
}

interface MarkRequest {
  readonly notificationIds?: readonly string[] | null;
  readonly throughSequence?: number | null;
}

export interface MarkResult {
  readonly marked: number;
  readonly unreadCount: number;
}

/**
 * Marks notifications as read by the viewer (§4.5): the named ones, or all up to a sequence, or (neither given, or no ids)
 * all that exist now. Ids that are unknown, repeated or of another project are ignored. One statement, whose cost does not
 * grow with the number of unread notifications. Throws `conflict` for too many that are read one by one above an unread one.
 */
export async function markRead(
  { database, projectId, viewer }: ProjectScope<SqlClient>,
  hubs: Hubs,
  request: MarkRequest,
): Promise<MarkResult> {
  const ids = request.notificationIds?.length ? request.notificationIds : null;
  const [result] = await database.query<{ marked: number | null; unreadCount: number | null }>`
    SELECT marked, unread_count AS "unreadCount"
    FROM mark_notifications_read(
      ${projectId}::uuid, ${viewer.userId}::uuid, ${ids}::uuid[], ${request.throughSequence ?? null}::bigint)`;
  if (!result) throw new Error('marking always returns one row');
  const { marked, unreadCount } = result;
  if (marked) database.afterCommit(() => hubs.wake({ projectId, userId: viewer.userId }));
  return { marked: marked ?? 0, unreadCount: unreadCount ?? 0 };
}
