/** The figures of the overview's `attention` that count instances. */
export type InstanceAttention = 'without_hypervisor' | 'suspended' | 'throttled' | 'cancellation_scheduled';

/** The figures of the overview's `attention` that count tasks. */
export type TaskAttention = 'failed_24h' | 'stuck';

const HOUR_MS = 3_600_000;
const QUARTER_MS = HOUR_MS / 4;

/** The start of each time window. A figure and the list behind it use the same start, so that they agree. */
export function windowStarts(now: Date) {
  const dayAgo = now.getTime() - 24 * HOUR_MS;
  return {
    dayAgo: new Date(dayAgo),
    /** The first whole quarter of an hour within the day: `task_counters` counts the tasks from here on. */
    wholeQuarters: new Date(Math.ceil(dayAgo / QUARTER_MS) * QUARTER_MS),
    hourAgo: new Date(now.getTime() - HOUR_MS),
  };
}
