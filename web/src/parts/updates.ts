import { useEffect, useRef, useState } from 'react';
import { useFeed, useLive } from '../live/live.tsx';

/** Events within this time after a reload are coalesced into the next one. */
const COALESCE_MS = 5000;
/** Some of what is shown changes without an event: what is stuck for an hour, or has failed within a day. */
const POLL_INTERVAL_MS = 60_000;

/**
 * Reloads a list or a query when an event has arrived in the project's feed, when the feed has begun again after a break, and once
 * a minute; on a page out of sight once it is visible again.
 */
export function useUpdates({ update }: { update(): void }): void {
  const latest = useRef(update);
  latest.current = update;
  const [{ request, run, stop }] = useState(() => coalesce(() => latest.current()));
  useEffect(() => {
    const timer = setInterval(request, POLL_INTERVAL_MS);
    document.addEventListener('visibilitychange', run);
    return () => {
      clearInterval(timer);
      document.removeEventListener('visibilitychange', run);
      stop();
    };
  }, [request, run, stop]);
  useFeed(({ type }) => {
    if (type === 'notification' || type === 'gap') request();
  });
  const isLive = useLive().state.name === 'live';
  const hasBeenLive = useRef(false);
  useEffect(() => {
    if (isLive && hasBeenLive.current) request();
    hasBeenLive.current ||= isLive;
  }, [isLive, request]);
}

/** `useUpdates` as a component, for what is rendered by a function: the result of a `Query`. */
export function Updates({ update }: { update(): void }) {
  useUpdates({ update });
  return null;
}

/** Updates at the first request, and at most once in COALESCE_MS for those that follow. */
function coalesce(update: () => void) {
  let timer: ReturnType<typeof setTimeout> | null = null;
  let isDue = false;
  const stop = () => {
    if (timer) clearTimeout(timer);
    timer = null;
  };
  const run = () => {
    if (!isDue || timer || document.visibilityState !== 'visible') return;
    isDue = false;
    timer = setTimeout(() => {
      timer = null;
      run();
    }, COALESCE_MS);
    update();
  };
  const request = () => {
    isDue = true;
    run();
  };
  return { request, run, stop };
}
