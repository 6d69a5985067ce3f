import type { Database } from '../platform/database.ts';
import { MAX_SEQUENCE, type Notification } from './log.ts';

interface BatchLimits {
  readonly limit: number;
  readonly maxBytes: number;
}

/** Consecutive entries of a log, in order. */
export interface Batch {
  readonly entries: readonly LogEntry[];
  readonly bytes: number;
  /** Whether the log may have more entries after the last one. */
  readonly hasMore: boolean;
  /** Whether the entry before the first one is still the one that the reader knows. */
  readonly isContinued: boolean;
}

/** A notification as it was read from the log, with its size in bytes. */
export interface LogEntry extends Notification {
  readonly bytes: number;
  readonly hasNext: boolean;
  /** Whether the entry before the range is still the one that the reader knows. */
  readonly isContinued: boolean;
}

interface LogRange extends BatchLimits {
  readonly after: number;
  readonly upTo?: number;
  /** The user for whom `read` is set; without one, every entry is unread. */
  readonly userId?: string;
  /** The id of the entry `after`, if the reader knows it: in a log that went back its number may be another entry's. */
  readonly afterId?: string | null;
}

/**
 * Reads the first entries of a range of the log: at most `limit`, and as many as fit into `maxBytes`, but always the first one.
 * The statement sums the sizes, so that the database sends only those rows; 400 bytes of each entry account for its small columns.
 */
export async function loadEntries(database: Database, projectId: string, range: LogRange): Promise<Batch> {
  const { after, upTo = MAX_SEQUENCE, userId = null, afterId = null, limit, maxBytes } = range;
  const entries = await database.query<LogEntry>`
    SELECT id, sequence, kind, severity, title, body, resource_type AS "resourceType", resource_id AS "resourceId",
      data, created, read, coalesce(bytes, 0) AS bytes, "hasNext",
      NOT EXISTS (
        SELECT FROM notifications AS known
        WHERE known.project_id = ${projectId}::uuid AND known.sequence = ${after} AND known.id <> ${afterId}::uuid
      ) AS "isContinued"
    FROM (
      SELECT entry.*, sum(bytes) OVER following AS total, lead(sequence) OVER following IS NOT NULL AS "hasNext"
      FROM (
        SELECT notification.*,
          single.sequence IS NOT NULL OR notification.sequence <= coalesce((
            SELECT read_through FROM notification_states WHERE project_id = ${projectId}::uuid AND user_id = ${userId}::uuid), 0) AS read,
          400 + octet_length(notification.title) + octet_length(notification.body) + json_bytes(notification.data) AS bytes
        FROM notifications AS notification
        LEFT JOIN LATERAL (
          SELECT reads.sequence FROM notification_reads AS reads
          WHERE reads.project_id = notification.project_id AND reads.user_id = ${userId}::uuid AND reads.sequence = notification.sequence LIMIT 1
        ) AS single ON true
        WHERE notification.project_id = ${projectId}::uuid AND notification.sequence > ${after} AND notification.sequence <= ${upTo}
        ORDER BY notification.sequence LIMIT ${limit}
      ) AS entry
      WINDOW following AS (ORDER BY sequence ROWS UNBOUNDED PRECEDING)
    ) AS summed
    WHERE total <= ${maxBytes} OR total = bytes
    ORDER BY summed.sequence`;
  const bytes = entries.reduce((sum, entry) => sum + entry.bytes, 0);
  const hasMore = entries.length === limit || entries.at(-1)?.hasNext === true;
  return { entries, bytes, hasMore, isContinued: entries[0]?.isContinued !== false };
}
