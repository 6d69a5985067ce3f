import { type ComponentType, type LazyExoticComponent, lazy, useSyncExternalStore } from 'react';
import { Loading, Problem } from './states.tsx';

const RETRY_MS = 2000;
/** How many pages wait for a server that does not answer. */
let waiting = 0;
const watchers = new Set<() => void>();

function count(change: 1 | -1): void {
  waiting += change;
  for (const watcher of watchers) watcher();
}

/**
 * A page whose code is loaded when it is asked for. While the server is away it waits for it; where the code is of a build that is
 * gone, the whole page is loaded anew, with the build that is there now.
 */
export function lazyPage<Props extends object>(
  load: () => Promise<{ default: ComponentType<Props> }>,
): LazyExoticComponent<ComponentType<Props>> {
  return lazy(async () => {
    const first = await load().catch(() => null);
    if (first) return first;
    count(1);
    while (!(await answers())) await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
    count(-1);
    return load().catch(() => {
      location.reload();
      return new Promise(() => {});
    });
  });
}

const answers = () =>
  fetch('/icon.svg', { cache: 'no-store' }).then(
    ({ ok }) => ok,
    () => false,
  );

/** What stands in the place of a page that is on its way. */
export function Coming() {
  const isAway = useSyncExternalStore(
    (watcher) => {
      watchers.add(watcher);
      return () => watchers.delete(watcher);
    },
    () => waiting > 0,
  );
  if (!isAway) return <Loading />;
  const failure = { code: 'unreachable', message: 'This page could not be loaded.', fields: {}, context: {}, retryAfterMs: null };
  return <Problem failure={failure} />;
}
