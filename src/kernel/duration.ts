/** Waits for a promise; `record` gets the milliseconds, however the wait ends. */
export function recordDuration(waiting: Promise<void>, record: (milliseconds: number) => void): Promise<void> {
  const startedAt = performance.now();
  return waiting.finally(() => record(performance.now() - startedAt));
}
