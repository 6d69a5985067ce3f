import { setTimeout as sleep } from 'node:timers/promises';

/** The most rows that one statement deletes: one that takes longer than the pool allows is rolled back, and would be every time. */
const BATCH_SIZE = 500;
/** The pause after a batch, in multiples of the time that it took, so that the database has most of its time for other work. */
const PAUSE_FACTOR = 3;

/**
 * Deletes rows batch by batch, until one is short or the signal is aborted. `deleteBatch` deletes at most `limit` rows, and
 * returns something for each.
 */
export async function deleteInBatches(deleteBatch: (limit: number) => Promise<readonly unknown[]>, signal?: AbortSignal): Promise<void> {
  while (!signal?.aborted) {
    const startedAt = performance.now();
    const rows = await deleteBatch(BATCH_SIZE);
    if (rows.length < BATCH_SIZE) return;
    await pauseAfterBatch(performance.now() - startedAt, signal);
  }
}

/** Resolves after the pause that follows a batch, or when the signal is aborted. */
export async function pauseAfterBatch(tookMs: number, signal?: AbortSignal): Promise<void> {
  await sleep(PAUSE_FACTOR * tookMs, undefined, { signal }).catch(() => {});
}
