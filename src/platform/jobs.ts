import { Cooldown } from '../kernel/cooldown.ts';
import type { Logger } from './logger.ts';

/** A job that fails at every run, several times a second in an outage, is logged at most this often. */
const WARNING_INTERVAL_MS = 60_000;

/** How often each job of this process has failed so far. */
const failures = new Map<string, number>();

export function countJobFailures(): Readonly<Record<string, number>> {
  return Object.fromEntries(failures);
}

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
  failures.set(name, failures.get(name) ?? 0);
  let run: Promise<void> | null = null;
  const warnings = new Cooldown(WARNING_INTERVAL_MS);
  const attempt = async () => {
    try {
      await work(stopping.signal);
    } catch (failure) {
      if (stopping.signal.aborted) return;
      failures.set(name, (failures.get(name) ?? 0) + 1);
      log[warnings.begin() ? 'warn' : 'debug']({ err: failure, job: name }, 'a job failed');
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
