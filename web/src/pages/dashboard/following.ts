import { useEffect, useRef } from 'react';

const EVERY_MS = 30_000;

/** Reads again whenever the page gets the focus, and every half a minute while it is seen. */
export function useFollowing(read: () => void): void {
  const latest = useRef(read);
  latest.current = read;
  useEffect(() => {
    const look = () => {
      if (document.visibilityState === 'visible') latest.current();
    };
    const timer = setInterval(look, EVERY_MS);
    addEventListener('focus', look);
    document.addEventListener('visibilitychange', look);
    return () => {
      clearInterval(timer);
      removeEventListener('focus', look);
      document.removeEventListener('visibilitychange', look);
    };
  }, []);
}
