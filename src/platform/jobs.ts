import type { Logger } from './logger.ts';

/**
 * Runs a job at intervals; runs never overlap, and a failed run is logged. Returns the function that stops it: the signal
 * tells a run that is under way to end, and the promise resolves when it has.
 */
export function scheduleJob(
  name: string,
  intervalMs: number,
  work: (signal: AbortSignal) => Promise<unknown>,
  log: Logger,
): () => Promise<void> {
  const stopping = new AbortController();
  let run: Promise<void> | null = null;
  const attempt = async () => {
    try {
      await work(stopping.signal);
    } catch (failure) {
      if (!stopping.signal.aborted) log.warn({ err: failure, job: name }, 'a job failed');
    } finally {
      run = null;
    }
  };
  const timer = setInterval(() => {
    run ??= attempt();
  }, intervalMs);
  timer.unref();
  return async () => {
    clearInterval(timer);
    stopping.abort();
    await run;
  };
}
