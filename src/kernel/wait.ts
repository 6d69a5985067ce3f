/** Waits for a promise; `note` gets the milliseconds, however the wait ends. */
export function noteDuration(waiting: Promise<void>, note: (milliseconds: number) => void): Promise<void> {
  const startedAt = performance.now();
  return waiting.finally(() => note(performance.now() - startedAt));
}
