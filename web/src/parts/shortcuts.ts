import { useSyncExternalStore } from 'react';

const STORAGE_KEY = 'portico:shortcuts';
const watchers = new Set<() => void>();

/** Whether keys of a single character act, as whoever dictates or hits keys by chance may not want; stored in this browser's localStorage. */
export const hasShortcuts = (): boolean => localStorage.getItem(STORAGE_KEY) !== 'off';

export function setShortcuts(isOn: boolean): void {
  if (isOn) localStorage.removeItem(STORAGE_KEY);
  else localStorage.setItem(STORAGE_KEY, 'off');
  for (const watcher of watchers) watcher();
}

export const useShortcuts = (): boolean =>
  useSyncExternalStore((watcher) => {
    watchers.add(watcher);
    return () => watchers.delete(watcher);
  }, hasShortcuts);
