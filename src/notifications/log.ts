import type { Severity } from '../generated/prisma/enums.ts';
import type { Shareable } from '../graph/source.ts';
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

/** The event of a feed that delivers a notification. */
export interface NotificationEvent extends Shareable {
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
  readonly sinceVersion: number;
  /** What was read singly since `sinceVersion`, above the watermark; null where one event may not name them all. */
  readonly notificationIds: readonly string[] | null;
}

/** The most ids of a `read` event: 39 bytes each. */
export const MAX_EVENT_IDS = 1_000;

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
  const [state] = await database.query<Omit<ReadState, 'sinceVersion' | 'notificationIds'> & { ids: string[] }>`
    SELECT coalesce(state.version, 0)::int AS version, coalesce(state.read_through, 0)::int AS "readThrough",
      log.pruned_through::int AS "prunedThrough", log.last_sequence::int AS last, coalesce(unread.length, 0)::int AS unread,
      coalesce(news.ids, '{}') AS ids
    FROM notification_logs AS log
    LEFT JOIN notification_states AS state ON state.project_id = log.project_id AND state.user_id = ${userId}::uuid
    CROSS JOIN LATERAL (
      SELECT greatest(state.read_through, log.pruned_through) AS through, least(log.last_sequence, ${upTo ?? null}::bigint) AS up_to
    ) AS mark
    CROSS JOIN LATERAL (
      SELECT (greatest(mark.up_to - mark.through, 0) - count(*))::bigint AS length FROM notification_reads AS single
      WHERE single.project_id = log.project_id AND single.user_id = ${userId}::uuid
        AND single.sequence > mark.through AND single.sequence <= mark.up_to
    ) AS unread
    CROSS JOIN LATERAL (
      SELECT array_agg(id ORDER BY sequence) AS ids
      FROM (
        SELECT notification.id, notification.sequence FROM notification_reads AS single
        JOIN notifications AS notification
          ON notification.project_id = single.project_id AND notification.sequence = single.sequence
        WHERE single.project_id = log.project_id AND single.user_id = ${userId}::uuid
          AND single.sequence > mark.through AND single.version > ${sinceVersion}
        ORDER BY single.sequence LIMIT ${MAX_EVENT_IDS + 1}
      ) AS new
    ) AS news
    WHERE log.project_id = ${projectId}::uuid`;
  const { ids, ...figures } = state ?? { version: 0, readThrough: 0, prunedThrough: 0, last: 0, unread: 0, ids: [] };
  return { ...figures, sinceVersion, notificationIds: ids.length > MAX_EVENT_IDS ? null : ids };
}

interface LateReads {
  readonly projectId: string;
  readonly userId: string;
  readonly position: number;
  readonly sinceVersion: number;
}

/** The last version before the first of the single reads that are of entries behind a position, or newer than a version; null for none. */
export async function readVersionBefore(
  database: Database,
  { projectId, userId, position, sinceVersion }: LateReads,
): Promise<number | null> {
  const [row] = await database.query<{ version: number | null }>`
    SELECT (min(version) - 1)::int AS version FROM notification_reads
    WHERE project_id = ${projectId}::uuid AND user_id = ${userId}::uuid
      AND (sequence > ${position} OR version > ${sinceVersion})`;
  return row?.version ?? null;
}

/**
 * The version up to which a feed at a position, which began to replay the log at `sinceVersion`, has told what is read. An entry
 * that was read after its replay, or before it is delivered as a new one, was or will be told as unread: the state that comes
 * next brings these reads again.
 */
export async function readToldVersion(database: Database, { version, last, readThrough }: ReadState, late: LateReads): Promise<number> {
  if (last <= late.position && late.sinceVersion === version) return version;
  const before = await readVersionBefore(database, late);
  return Math.min(before ?? version, readThrough > late.position ? version - 1 : version);
}

/** The single reads of a user that came with the versions after one, up to another. */
interface ReadRange {
  readonly projectId: string;
  readonly userId: string;
  readonly sinceVersion: number;
  readonly upToVersion: number;
}

export async function countReads(database: Database, { projectId, userId, sinceVersion, upToVersion }: ReadRange): Promise<number> {
  const [row] = await database.query<{ count: number }>`
    SELECT count(*)::int AS count FROM notification_reads
    WHERE project_id = ${projectId}::uuid AND user_id = ${userId}::uuid
      AND version > ${sinceVersion} AND version <= ${upToVersion}`;
  return row?.count ?? 0;
}

/** The next of them behind a number, in the order of the log: as many as one event may name. */
export function listReads(
  database: Database,
  { projectId, userId, sinceVersion, upToVersion, after }: ReadRange & { readonly after: number },
): Promise<Array<{ id: string; sequence: number }>> {
  return database.query<{ id: string; sequence: number }>`
    SELECT notification.id, notification.sequence FROM notification_reads AS single
    JOIN notifications AS notification
      ON notification.project_id = single.project_id AND notification.sequence = single.sequence
    WHERE single.project_id = ${projectId}::uuid AND single.user_id = ${userId}::uuid AND single.sequence > ${after}
      AND single.version > ${sinceVersion} AND single.version <= ${upToVersion}
    ORDER BY single.sequence LIMIT ${MAX_EVENT_IDS}`;
}

/** The position of a log (`userId` null: its last number), or of a read state (its version). */
export interface Position {
  readonly projectId: string;
  readonly userId: string | null;
  readonly position: number;
  readonly prunedThrough: number;
}

/** The version of a user's read state. */
export async function readVersion(database: Database, reader: { projectId: string; userId: string }): Promise<number> {
  const [state] = await readPositions(database, [], [reader]);
  return state?.position ?? 0;
}

/** The positions of everything that is being streamed, in one statement. */
export function readPositions(
  database: Database,
  projectIds: readonly string[],
  readers: ReadonlyArray<{ projectId: string; userId: string }>,
): Promise<Position[]> {
  const projects = [...projectIds, ...readers.map(({ projectId }) => projectId)];
  const users = [...projectIds.map(() => null), ...readers.map(({ userId }) => userId)];
  return database.query<Position>`
    SELECT log.project_id AS "projectId", state.user_id AS "userId", coalesce(state.version, log.last_sequence)::int AS position,
      log.pruned_through::int AS "prunedThrough"
    FROM unnest(${projects}::uuid[], ${users}::uuid[]) AS wanted (project_id, user_id)
    JOIN notification_logs AS log ON log.project_id = wanted.project_id
    LEFT JOIN notification_states AS state ON state.project_id = wanted.project_id AND state.user_id = wanted.user_id
    WHERE wanted.user_id IS NULL OR state.user_id IS NOT NULL`;
}
