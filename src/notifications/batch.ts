import type { Database } from '../platform/database.ts';
import type { Notification } from './log.ts';

export interface BatchLimits {
  readonly limit: number;
  readonly maxBytes: number;
}

/** Consecutive entries of a log, in order. */
export interface Batch {
  readonly entries: readonly LogEntry[];
  readonly bytes: number;
  /** Whether the log may have more entries after the last one. */
  readonly hasMore: boolean;
}

/** A notification as it was read from the log, with its size in bytes. */
export interface LogEntry extends Notification {
  readonly bytes: number;
  readonly hasNext: boolean;
}

interface Range extends BatchLimits {
  readonly after: number;
  readonly upTo?: number;
  /** The user for whom `read` is set; without one, every entry is unread. */
  readonly userId?: string;
}

/**
 * Reads the first entries of a range of the log: at most `limit`, and as many as fit into `maxBytes`, but always the first one.
 * The statement sums the sizes, so that the database sends only those rows; 400 bytes of each entry account for its small columns.
 */
export async function readEntries(database: Database, projectId: string, range: Range): Promise<Batch> {
  const { after, upTo = Number.MAX_SAFE_INTEGER, userId = null, limit, maxBytes } = range;
  const entries = await database.query<LogEntry>`
    SELECT id, sequence, kind, severity, title, body, resource_type AS "resourceType", resource_id AS "resourceId",
      data, created, read, coalesce(bytes, 0) AS bytes, "hasNext"
    FROM (
      SELECT entry.*, sum(bytes) OVER following AS total, lead(sequence) OVER following IS NOT NULL AS "hasNext"
      FROM (
        SELECT notification.*,
          single.sequence IS NOT NULL OR notification.sequence <= coalesce((
            SELECT read_through FROM notification_states WHERE project_id = ${projectId}::uuid AND user_id = ${userId}::uuid), 0) AS read,
          400 + octet_length(notification.title) + octet_length(notification.body) + octet_length(notification.data::text) AS bytes
        FROM notifications AS notification
        LEFT JOIN notification_reads AS single
          ON single.project_id = notification.project_id AND single.user_id = ${userId}::uuid AND single.sequence = notification.sequence
        WHERE notification.project_id = ${projectId}::uuid AND notification.sequence > ${after} AND notification.sequence <= ${upTo}
        ORDER BY notification.sequence LIMIT ${limit}
      ) AS entry
      WINDOW following AS (ORDER BY sequence ROWS UNBOUNDED PRECEDING)
    ) AS summed
    WHERE total <= ${maxBytes} OR total = bytes
    ORDER BY summed.sequence`;
  const bytes = entries.reduce((sum, entry) => sum + entry.bytes, 0);
  return { entries, bytes, hasMore: entries.length === limit || entries.at(-1)?.hasNext === true };
}

/** The limit of the next batch: smaller for larger entries, as the database computes the size of each row within the limit. */
export function nextLimit({ entries, bytes }: Batch, { limit, maxBytes }: BatchLimits): number {
  if (entries.length === 0) return limit;
  return Math.max(1, Math.min(limit, Math.ceil((2 * maxBytes * entries.length) / bytes)));
}
