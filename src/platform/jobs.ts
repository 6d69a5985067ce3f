import type { Logger } from './logger.ts';

/** Runs a job again and again, never twice at once; a run that fails is logged, and the next one tries again. */
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
