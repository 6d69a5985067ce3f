/** Milliseconds before the nth retry (from 0): exponential backoff from 0.1 s up to 10 s, with jitter. */
export const backoff = (tries: number): number => Math.min(100 * 2 ** tries, 10_000) * (0.5 + Math.random() / 2);

/** The longest delay of a timer: a longer one would fire at once. */
const MAX_DELAY_MS = 2 ** 31 - 1;

/** Resolves as the promise does; rejects with the signal's reason if it aborts first. */
export function abortable<Value>(promise: Promise<Value>, signal: AbortSignal): Promise<Value> {
  return new Promise((resolve, reject) => {
    const stop = () => reject(signal.reason);
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', stop));
    signal.addEventListener('abort', stop, { once: true });
    if (signal.aborted) stop();
  });
}

/** Resolves after `ms` milliseconds, or 24 days if that is less; rejects with the signal's reason if it aborts first. */
export function wait(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const stop = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(
      () => {
        signal?.removeEventListener('abort', stop);
        resolve();
      },
      Math.min(ms, MAX_DELAY_MS),
    );
    signal?.addEventListener('abort', stop, { once: true });
  });
}
