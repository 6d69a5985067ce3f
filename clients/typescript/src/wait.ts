/** Milliseconds before the nth retry (from 0): exponential backoff from 0.1 s up to 10 s, with jitter. */
export const backoff = (tries: number): number => Math.min(100 * 2 ** tries, 10_000) * (0.5 + Math.random() / 2);

/** Resolves after `ms` milliseconds; rejects with the signal's reason if it aborts first. */
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
