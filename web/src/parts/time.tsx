import { useSyncExternalStore } from 'react';
import { formatExact, formatRelative } from './format.ts';

const TICK_MS = 15_000;
let now = Date.now();
const watchers = new Set<() => void>();
setInterval(() => {
  now = Date.now();
  for (const watcher of watchers) watcher();
}, TICK_MS);

function subscribe(watcher: () => void) {
  watchers.add(watcher);
  return () => watchers.delete(watcher);
}

/** The present, to a quarter of a minute: one clock for the whole page. */
export const useNow = () => useSyncExternalStore(subscribe, () => now);

/** A moment relative to now, with the exact one, in the reader's zone, on hover. */
export function Time({ value }: { value: string }) {
  // What has happened since the last tick is no future.
  const present = Math.max(useNow(), Math.min(Date.parse(value), Date.now()));
  return (
    <time dateTime={value} title={formatExact(value)}>
      {formatRelative(value, present)}
    </time>
  );
}
