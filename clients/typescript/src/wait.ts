/** Milliseconds before the nth try (from 0): 0.1 s, twice as long each time up to 10 s, and not all clients at once. */
export const backoff = (tries: number): number => Math.min(100 * 2 ** tries, 10_000) * (0.5 + Math.random() / 2);

/** Resolves after some milliseconds; rejects with the signal's reason where that comes first. */
export function wait(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const stop = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', stop);
      resolve();
    }, ms);
    signal?.addEventListener('abort', stop, { once: true });
  });
}
