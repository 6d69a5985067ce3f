import { useEffect, useRef } from 'react';

const POLL_INTERVAL_MS = 30_000;

/** Reloads whenever the page gets the focus, and every 30 s while it is visible. */
export function useFollowing(read: () => void): void {
  const latest = useRef(read);
  latest.current = read;
  useEffect(() => {
    const readIfVisible = () => {
      if (document.visibilityState === 'visible') latest.current();
    };
    const timer = setInterval(readIfVisible, POLL_INTERVAL_MS);
    addEventListener('focus', readIfVisible);
    document.addEventListener('visibilitychange', readIfVisible);
    return () => {
      clearInterval(timer);
      removeEventListener('focus', readIfVisible);
      document.removeEventListener('visibilitychange', readIfVisible);
    };
  }, []);
}
