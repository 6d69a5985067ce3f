/** What a figure of the overview's `attention` counts. */
export const instanceAttentions = ['without_hypervisor', 'suspended', 'throttled', 'cancellation_scheduled'] as const;
export const taskAttentions = ['failed_24h', 'stuck'] as const;

/** A filter that names a figure. */
export type Attentive<Filter extends { readonly status?: unknown; readonly attention?: unknown }> = Pick<Filter, 'status'> & {
  readonly attention: NonNullable<Filter['attention']>;
};

const HOUR_MS = 3_600_000;
const QUARTER_MS = HOUR_MS / 4;

/** Where the windows of the figures begin, so that a figure and the list behind it agree. */
export function windows(now: Date) {
  const dayAgo = now.getTime() - 24 * HOUR_MS;
  return {
    dayAgo: new Date(dayAgo),
    /** From here on the tasks of a day are counted by quarters of an hour (`task_counters`). */
    wholeQuarters: new Date(Math.ceil(dayAgo / QUARTER_MS) * QUARTER_MS),
    hourAgo: new Date(now.getTime() - HOUR_MS),
  };
}
