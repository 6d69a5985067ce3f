const STORAGE_KEY = 'portico:reloaded';
/** A document that was reloaded this recently is not reloaded again: what it lacked then, it will lack again. */
const MIN_INTERVAL_MS = 30_000;

export const isReachable = (): Promise<boolean> =>
  fetch('/icon.svg', { cache: 'no-store' }).then(
    ({ ok }) => ok,
    () => false,
  );

/**
 * For code that a reachable server does not have, as it belongs to a build that no longer exists: reloads the document, with the
 * current build, and never resolves. Rejects if that was done just now, and has not helped.
 */
export function reloadDocument(): Promise<never> {
  const last = Number(sessionStorage.getItem(STORAGE_KEY));
  if (Math.abs(Date.now() - last) < MIN_INTERVAL_MS) return Promise.reject(new Error('A part of this page cannot be loaded.'));
  sessionStorage.setItem(STORAGE_KEY, String(Date.now()));
  location.reload();
  return new Promise(() => {});
}
