import { FIRST_ID } from '../graph/keyset.ts';
import { pauseAfterBatch } from '../platform/cleanup.ts';
import type { Database } from '../platform/database.ts';

/** The most entries that one statement removes: it blocks publishing to the project while it runs. */
const BATCH_SIZE = 500;
/** A log that is locked by a writer more often than this in a row is left for the next run. */
const MAX_MISSES = 100;
/** The logs that one statement checks. */
const LOGS_AT_ONCE = 1_000;

/**
 * Removes the notifications that are older than `days`, from the beginning of every log, until it is done or told to stop; returns
 * how many. PostgreSQL's clock measures their age: a replica whose own is ahead would remove younger ones. A log that cannot be
 * pruned does not stop the others: its failure is thrown at the end.
 */
export async function pruneNotifications(database: Database, days: number, signal?: AbortSignal): Promise<number> {
  const failures: unknown[] = [];
  let total = 0;
  let after = FIRST_ID;
  while (!signal?.aborted) {
    const startedAt = performance.now();
    const logs = await database.query<{ projectId: string; isDue: boolean | null }>`
      SELECT log.project_id AS "projectId", coalesce((
        SELECT created < now() - ${days}::float8 * interval '24 hours' FROM notifications WHERE project_id = log.project_id AND sequence > log.pruned_through ORDER BY sequence LIMIT 1
      ), false) AS "isDue"
      FROM notification_logs AS log WHERE log.project_id > ${after}::uuid ORDER BY log.project_id LIMIT ${LOGS_AT_ONCE}`;
    const tookMs = performance.now() - startedAt;
    for (const { projectId, isDue } of logs) {
      if (!isDue) continue;
      try {
        total += await pruneLog(database, projectId, days, signal);
        await deletePrunedReads(database, projectId, signal);
      } catch (failure) {
        failures.push(failure);
      }
    }
    const last = logs.at(-1);
    if (!last || logs.length < LOGS_AT_ONCE) break;
    after = last.projectId;
    await pauseAfterBatch(tookMs, signal);
  }
  if (failures.length > 0) throw failures[0];
  return total;
}

/** Pauses after each batch, so that the database has most of its time for other work. */
async function pruneLog(database: Database, projectId: string, days: number, signal?: AbortSignal): Promise<number> {
  let total = 0;
  let misses = 0;
  while (!signal?.aborted) {
    const startedAt = performance.now();
    const [row] = await database.query<{ pruned: number | null }>`
      SELECT prune_notification_log(${projectId}::uuid, now() - ${days}::float8 * interval '24 hours', ${BATCH_SIZE}::int)::int AS pruned`;
    const pruned = row?.pruned ?? null;
    total += pruned ?? 0;
    misses = pruned === null ? misses + 1 : 0;
    if (misses > MAX_MISSES || (pruned !== null && pruned < BATCH_SIZE)) break;
    await pauseAfterBatch(performance.now() - startedAt, signal);
  }
  return total;
}

/**
 * Deletes the single reads of what was removed from a log, of some users at a time. They are not counted anywhere; one that is locked,
 * because its user is marking others, is left for the next run, or deleted by that mark.
 */
async function deletePrunedReads(database: Database, projectId: string, signal?: AbortSignal): Promise<void> {
  let after = FIRST_ID;
  while (!signal?.aborted) {
    const startedAt = performance.now();
    const [batch] = await database.query<{ count: number | null; lastUserId: string | null }>`
      WITH reader AS (
        SELECT user_id FROM notification_states WHERE project_id = ${projectId}::uuid AND user_id > ${after}::uuid
        ORDER BY user_id LIMIT ${BATCH_SIZE}
      ), pruned AS (
        SELECT single.user_id, single.sequence
        FROM reader
        CROSS JOIN LATERAL (
          SELECT user_id, sequence FROM notification_reads
          WHERE project_id = ${projectId}::uuid AND user_id = reader.user_id
            AND sequence <= (SELECT pruned_through FROM notification_logs WHERE project_id = ${projectId}::uuid)
          ORDER BY sequence LIMIT ${BATCH_SIZE} FOR UPDATE SKIP LOCKED
        ) AS single
        LIMIT ${BATCH_SIZE}
      ), deleted AS (
        DELETE FROM notification_reads AS single USING pruned
        WHERE single.project_id = ${projectId}::uuid AND single.user_id = pruned.user_id AND single.sequence = pruned.sequence
        RETURNING 1
      )
      SELECT (SELECT count(*) FROM deleted)::int AS count, (SELECT user_id FROM reader ORDER BY user_id DESC LIMIT 1) AS "lastUserId"`;
    if (!batch?.lastUserId) return;
    // A full batch may have left some of its users.
    if ((batch.count ?? 0) < BATCH_SIZE) after = batch.lastUserId;
    await pauseAfterBatch(performance.now() - startedAt, signal);
  }
}
