import { type ComponentType, type LazyExoticComponent, lazy, useSyncExternalStore } from 'react';
import { isReachable, reloadDocument } from './chunk.ts';
import { Loading, Problem } from './states.tsx';

const RETRY_MS = 2000;
/** The number of pages that wait for an unreachable server. */
let waiting = 0;
/** Those who show that a page is loading. */
const watchers = new Set<() => void>();
/** Those who wait for that. */
const onShown: Array<() => void> = [];

function changeWaiting(change: 1 | -1): void {
  waiting += change;
  for (const watcher of watchers) watcher();
}

function watch(watcher: () => void): () => void {
  watchers.add(watcher);
  for (const resolve of onShown.splice(0)) resolve();
  return () => watchers.delete(watcher);
}

/**
 * A page whose code is loaded on demand. While the server is unreachable it polls; if the chunk belongs to a build that no longer
 * exists, the whole document is reloaded, with the current build, but not under a user who has gone to another page and may be writing
 * there. If that does not help, the page throws when it is rendered.
 */
export function lazyPage<Props extends object>(
  load: () => Promise<{ default: ComponentType<Props> }>,
): LazyExoticComponent<ComponentType<Props>> {
  return lazy(async () => {
    const first = await load().catch(() => null);
    if (first) return first;
    for (;;) {
      changeWaiting(1);
      while (!(await isReachable())) await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
      changeWaiting(-1);
      // A connection may break once more while the server comes back: only what fails again is missing.
      const late = await load()
        .catch(load)
        .catch(() => null);
      if (late) return late;
      if (watchers.size > 0) return reloadDocument();
      await new Promise<void>((resolve) => void onShown.push(resolve));
    }
  });
}

/** The fallback while a page's code is loading. */
export function Coming() {
  const isAway = useSyncExternalStore(watch, () => waiting > 0);
  if (!isAway) return <Loading />;
  const failure = { code: 'unreachable', message: 'This page could not be loaded.', fields: {}, context: {}, retryAfterMs: null };
  return <Problem failure={failure} />;
}
