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
    CROSS JOIN LATERAL (
      SELECT notifications.id, notifications.project_id FROM notifications
      WHERE notifications.project_id = checkpoint.project_id AND notifications.sequence = checkpoint.sequence LIMIT 1
    ) AS entry
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
    CROSS JOIN LATERAL (
      SELECT notifications.id, notifications.sequence FROM notifications
      WHERE notifications.project_id = ${projectId}::uuid AND notifications.sequence = checkpoint.sequence LIMIT 1
    ) AS entry
    WHERE entry.id = checkpoint.id`;
  if (row && row.kept !== null) return row.kept;
  const last = await loadLastSequence(database, projectId);
  return Math.min(last, Math.max(0, (checkpoints[0]?.sequence ?? last + 1) - 1));
}
