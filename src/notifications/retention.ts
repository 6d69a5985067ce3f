import type { Database } from '../platform/database.ts';

/** The most entries that one statement removes, so that its lock is short. */
const BATCH_SIZE = 5_000;

/** Removes the notifications that are older than so many days, from the beginning of every log. Returns how many. */
export async function pruneNotifications(database: Database, days: number): Promise<number> {
  const before = new Date(Date.now() - days * 86_400_000);
  let total = 0;
  for (;;) {
    const [row] = await database.query<{ pruned: number | null }>`
      SELECT prune_notifications(${before}, ${BATCH_SIZE}::int)::int AS pruned`;
    const pruned = row?.pruned ?? 0;
    total += pruned;
    if (pruned === 0) return total;
  }
}
