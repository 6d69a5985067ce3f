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

/** The current time, updated every 15 s: one clock for the whole page. */
export const useNow = () => useSyncExternalStore(subscribe, () => now);

/** A relative time; the tooltip has the exact time in the reader's time zone. */
export function Time({ value }: { value: string }) {
  // An event since the last tick must not appear to be in the future.
  const present = Math.max(useNow(), Math.min(Date.parse(value), Date.now()));
  return (
    <time dateTime={value} title={formatExact(value)}>
      {formatRelative(value, present)}
    </time>
  );
}

/** The exact time and the relative one, where there is room for both: a tooltip needs a mouse. */
export function ExactTime({ value }: { value: string }) {
  return (
    <>
      {formatExact(value)} (<Time value={value} />)
    </>
  );
}
