/** What a figure of the overview's `attention` counts. */
export const instanceAttentions = ['without_hypervisor', 'suspended', 'throttled', 'cancellation_scheduled'] as const;
export const taskAttentions = ['failed_24h', 'stuck'] as const;

/** A filter that names a figure. */
export type Attentive<Filter extends { readonly status?: unknown; readonly attention?: unknown }> = Pick<Filter, 'status'> & {
  readonly attention: NonNullable<Filter['attention']>;
};

const HOUR_MS = 3_600_000;

/** Where the windows of the figures begin, so that a figure and the list behind it agree. */
export function windows(now: Date) {
  return { dayAgo: new Date(now.getTime() - 24 * HOUR_MS), hourAgo: new Date(now.getTime() - HOUR_MS) };
}
