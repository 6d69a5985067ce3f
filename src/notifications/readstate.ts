import type { Database } from '../platform/database.ts';

/** Later than every version: a read state since then has no single reads. */
export const AFTER_ALL_VERSIONS = Number.MAX_SAFE_INTEGER;

/** A user's read state at one moment. */
export interface ReadState {
  /** Incremented by every change. */
  readonly version: number;
  readonly readThrough: number;
  /** The last sequence that retention has removed. */
  readonly prunedThrough: number;
  /** The last sequence of the log at that moment. */
  readonly last: number;
  /** The number of unread entries up to `upTo`, or up to `last`. */
  readonly unread: number;
  readonly sinceVersion: number;
  /** The single reads after `sinceVersion`, above the watermark; null where they are too many for one event. */
  readonly notificationIds: readonly string[] | null;
}

/** The most ids in one `read` event: 39 bytes each. */
export const MAX_EVENT_IDS = 1_000;

/** The memory that an id takes. */
export const ID_BYTES = 64;

/** The read state of one user in one project. */
export interface ReadStateKey {
  readonly projectId: string;
  readonly userId: string;
}

interface StateRequest extends ReadStateKey {
  readonly sinceVersion: number;
  readonly upTo?: number;
}

/** The user's read state, by one statement, so that its figures are consistent. */
export async function loadReadState(database: Database, { projectId, userId, sinceVersion, upTo }: StateRequest): Promise<ReadState> {
  const [state] = await database.query<Omit<ReadState, 'sinceVersion' | 'notificationIds'> & { ids: string[] }>`
    SELECT coalesce(state.version, 0)::bigint AS version, coalesce(state.read_through, 0)::bigint AS "readThrough",
      log.pruned_through AS "prunedThrough", log.last_sequence AS last, coalesce(unread.length, 0)::bigint AS unread,
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
        CROSS JOIN LATERAL (
          SELECT entry.id, entry.sequence FROM notifications AS entry
          WHERE entry.project_id = single.project_id AND entry.sequence = single.sequence LIMIT 1
        ) AS notification
        WHERE single.project_id = log.project_id AND single.user_id = ${userId}::uuid
          AND single.sequence > mark.through AND single.version > ${sinceVersion}
        ORDER BY single.sequence LIMIT ${MAX_EVENT_IDS + 1}
      ) AS new
    ) AS news
    WHERE log.project_id = ${projectId}::uuid`;
  const { ids, ...figures } = state ?? { version: 0, readThrough: 0, prunedThrough: 0, last: 0, unread: 0, ids: [] };
  return { ...figures, sinceVersion, notificationIds: ids.length > MAX_EVENT_IDS ? null : ids };
}

interface LateSingleReads extends ReadStateKey {
  readonly position: number;
  readonly sinceVersion: number;
}

/** The version before the first single read that is of an entry after `position`, or newer than `sinceVersion`; null without such a read. */
export async function loadVersionBefore(
  database: Database,
  { projectId, userId, position, sinceVersion }: LateSingleReads,
): Promise<number | null> {
  const [row] = await database.query<{ version: number | null }>`
    SELECT (min(version) - 1)::bigint AS version FROM notification_reads
    WHERE project_id = ${projectId}::uuid AND user_id = ${userId}::uuid
      AND (sequence > ${position} OR version > ${sinceVersion})`;
  return row?.version ?? null;
}

/**
 * The version of the read state that a feed at `late.position` has delivered, if its replay began at version
 * `late.sinceVersion`. An entry that was read after its replay, or before its delivery as a live entry, is delivered as unread:
 * the version is one before such reads, so that the next state delivers them again.
 */
export async function loadDeliveredVersion(
  database: Database,
  { version, last, readThrough }: ReadState,
  late: LateSingleReads,
): Promise<number> {
  if (last <= late.position && late.sinceVersion === version) return version;
  const before = await loadVersionBefore(database, late);
  return Math.min(before ?? version, readThrough > late.position ? version - 1 : version);
}

/** The single reads of a user, from the versions after `sinceVersion` up to `upToVersion`. */
interface SingleReadRange extends ReadStateKey {
  readonly sinceVersion: number;
  readonly upToVersion: number;
}

/** The number of single reads in a range, of entries that the log still has. */
export async function countSingleReads(
  database: Database,
  { projectId, userId, sinceVersion, upToVersion }: SingleReadRange,
): Promise<number> {
  const [row] = await database.query<{ count: number }>`
    SELECT count(*)::int AS count FROM notification_reads
    WHERE project_id = ${projectId}::uuid AND user_id = ${userId}::uuid
      AND version > ${sinceVersion} AND version <= ${upToVersion}
      AND sequence > (SELECT pruned_through FROM notification_logs WHERE project_id = ${projectId}::uuid)`;
  return row?.count ?? 0;
}

/** The next single reads of entries after a sequence, in the order of the log: at most `MAX_EVENT_IDS`. */
export function listSingleReads(
  database: Database,
  { projectId, userId, sinceVersion, upToVersion, after }: SingleReadRange & { readonly after: number },
): Promise<Array<{ id: string; sequence: number }>> {
  return database.query<{ id: string; sequence: number }>`
    SELECT notification.id, notification.sequence FROM notification_reads AS single
    JOIN notifications AS notification
      ON notification.project_id = single.project_id AND notification.sequence = single.sequence
    WHERE single.project_id = ${projectId}::uuid AND single.user_id = ${userId}::uuid AND single.sequence > ${after}
      AND single.version > ${sinceVersion} AND single.version <= ${upToVersion}
    ORDER BY single.sequence LIMIT ${MAX_EVENT_IDS}`;
}
