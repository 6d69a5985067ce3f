import { Prisma } from '../generated/prisma/client.ts';
import type { Severity } from '../generated/prisma/enums.ts';
import type { Database } from '../platform/database.ts';

/** A notification, as one user sees it: `read` is that user's. */
export interface Notification {
  readonly id: string;
  readonly sequence: number;
  readonly kind: string;
  readonly severity: Severity;
  readonly title: string;
  readonly body: string;
  readonly resourceType: string | null;
  readonly resourceId: string | null;
  readonly data: unknown;
  readonly created: Date;
  readonly read: boolean;
}

/** A notification's columns under their own names, the same for every reader. */
export const columns = Prisma.sql`notification.id, notification.sequence::int, notification.kind, notification.severity::text,
  notification.title, notification.body, notification.resource_type AS "resourceType",
  notification.resource_id AS "resourceId", notification.data, notification.created`;

/** A notification as the log has it, for every reader alike. */
export type LogEntry = Omit<Notification, 'read'>;

/** The event of a feed that tells a notification. */
export interface NotificationEvent {
  readonly type: 'notification';
  readonly sequence: number;
  readonly notification: Notification;
}

/** What a user has read, as of one moment. */
export interface ReadState {
  /** Counts every change. */
  readonly version: number;
  readonly readThrough: number;
  /** Up to this one, retention has removed what there was. */
  readonly prunedThrough: number;
  /** The last number in the log at that moment. */
  readonly last: number;
  /** Unread among the numbers up to `upTo`, or up to `last`. */
  readonly unread: number;
  /** What was read singly since `sinceVersion`, above the watermark. */
  readonly notificationIds: readonly string[];
}

/** The entries after a number, in order: at most `limit`. */
export function readEntries(database: Database, projectId: string, { after, limit }: { after: number; limit: number }) {
  return database.query<LogEntry>`
    SELECT ${columns} FROM notifications AS notification
    WHERE notification.project_id = ${projectId}::uuid AND notification.sequence > ${after}
    ORDER BY notification.sequence LIMIT ${limit}`;
}

/** The last number in the project's log. */
export async function readLast(database: Database, projectId: string): Promise<number> {
  const [row] = await database.query<{ last: number }>`
    SELECT last_sequence::int AS last FROM notification_logs WHERE project_id = ${projectId}::uuid`;
  return row?.last ?? 0;
}

interface StateRequest {
  readonly projectId: string;
  readonly userId: string;
  readonly sinceVersion: number;
  readonly upTo?: number;
}

/** The user's read state, by one statement, so that its figures agree. */
export async function readState(database: Database, { projectId, userId, sinceVersion, upTo }: StateRequest): Promise<ReadState> {
  const bound = upTo === undefined ? Prisma.sql`log.last_sequence` : Prisma.sql`least(log.last_sequence, ${upTo}::bigint)`;
  const [state] = await database.query<ReadState>`
    SELECT coalesce(state.version, 0)::int AS version, coalesce(state.read_through, 0)::int AS "readThrough",
      log.pruned_through::int AS "prunedThrough", log.last_sequence::int AS last,
      (greatest(mark.up_to - mark.through, 0) - (
        SELECT count(*) FROM notification_reads AS single
        WHERE single.project_id = log.project_id AND single.user_id = ${userId}::uuid
          AND single.sequence > mark.through AND single.sequence <= mark.up_to
      ))::int AS unread,
      ARRAY (
        SELECT notification.id::text FROM notification_reads AS single
        JOIN notifications AS notification
          ON notification.project_id = single.project_id AND notification.sequence = single.sequence
        WHERE single.project_id = log.project_id AND single.user_id = ${userId}::uuid
          AND single.sequence > mark.through AND single.version > ${sinceVersion}
        ORDER BY single.sequence
      ) AS "notificationIds"
    FROM notification_logs AS log
    LEFT JOIN notification_states AS state ON state.project_id = log.project_id AND state.user_id = ${userId}::uuid
    CROSS JOIN LATERAL (SELECT greatest(state.read_through, log.pruned_through) AS through, ${bound} AS up_to) AS mark
    WHERE log.project_id = ${projectId}::uuid`;
  return state ?? { version: 0, readThrough: 0, prunedThrough: 0, last: 0, unread: 0, notificationIds: [] };
}

/** Where a log stands (`userId` null: its last number), or a read state (its version). */
export interface Stand {
  readonly projectId: string;
  readonly userId: string | null;
  readonly stand: number;
  readonly prunedThrough: number;
}

/** Where everything stands that is being streamed, in one statement. */
export function readStands(
  database: Database,
  projectIds: readonly string[],
  readers: ReadonlyArray<{ projectId: string; userId: string }>,
): Promise<Stand[]> {
  return database.query<Stand>`
    SELECT project_id AS "projectId", NULL::uuid AS "userId", last_sequence::int AS stand, pruned_through::int AS "prunedThrough"
    FROM notification_logs WHERE project_id = ANY (${projectIds}::uuid[])
    UNION ALL
    SELECT state.project_id, state.user_id, state.version::int, 0
    FROM unnest(${readers.map(({ projectId }) => projectId)}::uuid[], ${readers.map(({ userId }) => userId)}::uuid[]) AS reader (project_id, user_id)
    JOIN notification_states AS state USING (project_id, user_id)`;
}
