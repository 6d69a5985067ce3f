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
