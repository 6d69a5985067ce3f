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

/** An upper bound of every sequence. */
export const MAX_SEQUENCE = Number.MAX_SAFE_INTEGER;

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

/** The last sequence of the project's log. */
export async function loadLastSequence(database: Database, projectId: string): Promise<number> {
  const [row] = await database.query<{ last: number }>`
    SELECT last_sequence AS last FROM notification_logs WHERE project_id = ${projectId}::uuid`;
  return row?.last ?? 0;
}

/** An entry of a project's log, as far as it tells whether the log is still the same up to there. */
export interface LogCheckpoint {
  readonly projectId: string;
  readonly sequence: number;
  readonly id: string;
}

/** The end of a project's log. */
interface LogEnd {
  readonly last: number;
  /** The id of the last entry; null where retention has deleted it. */
  readonly id: string | null;
  readonly prunedThrough: number;
}

/** Reads the end of a project's log. */
export async function loadEnd(database: Database, projectId: string): Promise<LogEnd> {
  const [row] = await database.query<LogEnd>`
    SELECT log.last_sequence AS last, entry.id, log.pruned_through AS "prunedThrough"
    FROM notification_logs AS log
    LEFT JOIN notifications AS entry ON entry.project_id = log.project_id AND entry.sequence = log.last_sequence
    WHERE log.project_id = ${projectId}::uuid`;
  return row ?? { last: 0, id: null, prunedThrough: 0 };
}

/** The projects in which the number of a checkpoint is another entry's. */
export async function findReplaced(database: Database, checkpoints: readonly LogCheckpoint[]): Promise<string[]> {
  const rows = await database.query<{ projectId: string }>`
    SELECT entry.project_id AS "projectId"
    FROM unnest(${checkpoints.map(({ projectId }) => projectId)}::uuid[], ${checkpoints.map(({ sequence }) => sequence)}::bigint[],
      ${checkpoints.map(({ id }) => id)}::uuid[]) AS checkpoint (project_id, sequence, id)
    JOIN notifications AS entry ON entry.project_id = checkpoint.project_id AND entry.sequence = checkpoint.sequence
    WHERE entry.id <> checkpoint.id`;
  return rows.map(({ projectId }) => projectId);
}

/**
 * The sequence up to which the log of a project still agrees with its checkpoints, known entries in order. If none is left,
 * it is the one before the first, or the last of a log that is shorter.
 */
export async function findFork(database: Database, projectId: string, checkpoints: readonly LogCheckpoint[]): Promise<number> {
  const [row] = await database.query<{ kept: number | null }>`
    SELECT max(entry.sequence) AS kept
    FROM unnest(${checkpoints.map(({ sequence }) => sequence)}::bigint[], ${checkpoints.map(({ id }) => id)}::uuid[]) AS checkpoint (sequence, id)
    JOIN notifications AS entry
      ON entry.project_id = ${projectId}::uuid AND entry.sequence = checkpoint.sequence AND entry.id = checkpoint.id`;
  if (row && row.kept !== null) return row.kept;
  const last = await loadLastSequence(database, projectId);
  return Math.min(last, Math.max(0, (checkpoints[0]?.sequence ?? last + 1) - 1));
}

/** A user as a reader of one project's log. */
export interface ReaderKey {
  readonly projectId: string;
  readonly userId: string;
}

interface StateRequest extends ReaderKey {
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

interface LateSingleReads extends ReaderKey {
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
interface SingleReadRange extends ReaderKey {
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

/** How far a project's log reaches. */
export interface LogPosition {
  readonly projectId: string;
  readonly last: number;
  /** The last sequence that retention has removed. */
  readonly prunedThrough: number;
}

/** The version of a user's read state. */
interface ReadStateVersion extends ReaderKey {
  readonly version: number;
}

interface Positions {
  readonly logs: LogPosition[];
  readonly readStates: ReadStateVersion[];
}

/** The positions of logs and the versions of read states, as far as they exist, in one statement. */
export async function loadPositions(database: Database, projectIds: readonly string[], readers: readonly ReaderKey[]): Promise<Positions> {
  const projects = [...projectIds, ...readers.map(({ projectId }) => projectId)];
  const users = [...projectIds.map(() => null), ...readers.map(({ userId }) => userId)];
  const rows = await database.query<LogPosition & { userId: string | null; version: number | null }>`
    SELECT log.project_id AS "projectId", log.last_sequence AS last, log.pruned_through AS "prunedThrough",
      state.user_id AS "userId", state.version
    FROM unnest(${projects}::uuid[], ${users}::uuid[]) AS wanted (project_id, user_id)
    JOIN notification_logs AS log ON log.project_id = wanted.project_id
    LEFT JOIN notification_states AS state ON state.project_id = wanted.project_id AND state.user_id = wanted.user_id
    WHERE wanted.user_id IS NULL OR state.user_id IS NOT NULL`;
  return {
    logs: rows.filter(({ userId }) => userId === null),
    readStates: rows.flatMap(({ projectId, userId, version }) =>
      userId === null || version === null ? [] : [{ projectId, userId, version }],
    ),
  };
}

/** The version of a user's read state; 0 before its first change. */
export async function loadVersion(database: Database, reader: ReaderKey): Promise<number> {
  const { readStates } = await loadPositions(database, [], [reader]);
  return readStates[0]?.version ?? 0;
}
