import type { Logger } from './logger.ts';

/** Runs a job at intervals; runs never overlap, and a failed run is logged. Returns the function that stops it. */
export function scheduleJob(name: string, intervalMs: number, work: () => Promise<unknown>, log: Logger): () => void {
  let isRunning = false;
  const timer = setInterval(async () => {
    if (isRunning) return;
    isRunning = true;
    try {
      await work();
    } catch (failure) {
      log.warn({ err: failure, job: name }, 'a job failed');
    } finally {
      isRunning = false;
    }
  }, intervalMs);
  timer.unref();
  return () => clearInterval(timer);
}
