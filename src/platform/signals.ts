import { constants } from 'node:os';

const signals = ['SIGINT', 'SIGTERM'] as const;

/**
 * Ends the process at once on SIGINT and SIGTERM. The system does that by itself, except for the first process of a container,
 * which would ignore them. Returns a function after which it no longer does.
 */
export function endOnSignals(): () => void {
  const end = (signal: NodeJS.Signals) => process.exit(128 + constants.signals[signal]);
  for (const signal of signals) process.on(signal, end);
  return () => {
    for (const signal of signals) process.off(signal, end);
  };
}

/**
 * Under npm, a signal to the whole group of processes (Ctrl-C, or SIGTERM by a supervisor) reaches the server more than once: npm
 * forwards its own. The same signal within this time does not count as the second one.
 */
const REPEATED_SIGNAL_MS = 1_000;

/**
 * Stops the process on SIGINT or SIGTERM: runs `stop`, then exits with 0. A second signal ends the process at once. Returns a function
 * that says whether a signal has arrived.
 */
export function stopOnSignals(stop: (signal: NodeJS.Signals) => Promise<void>): () => boolean {
  /** When the first signal arrived, by `performance.now()`; null before that. */
  let stoppingSince: number | null = null;
  let first: NodeJS.Signals | null = null;
  const receive = (signal: NodeJS.Signals) => {
    if (stoppingSince === null) {
      stoppingSince = performance.now();
      first = signal;
      void stop(signal).then(() => process.exit(0));
      return;
    }
    if (signal === first && performance.now() - stoppingSince < REPEATED_SIGNAL_MS) return;
    console.error(`${signal}, the second signal: Portico ends at once, without waiting for what is under way.`);
    process.exit(1);
  };
  for (const signal of signals) process.on(signal, receive);
  return () => stoppingSince !== null;
}
