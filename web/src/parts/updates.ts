import { useEffect, useRef } from 'react';
import { useFeed } from '../live/live.tsx';
import type { Endless } from './pages.ts';

/** Events within this time are coalesced into one reload. */
const COALESCE_MS = 5000;

/** Reloads the visible part of a list when an event has arrived in the project's feed. */
export function useUpdates({ update }: Pick<Endless<never>, 'update'>): void {
  const timer = useRef<ReturnType<typeof setTimeout> | null>(null);
  const latest = useRef(update);
  latest.current = update;
  useEffect(
    () => () => {
      if (timer.current) clearTimeout(timer.current);
    },
    [],
  );
  useFeed(({ type }) => {
    if (timer.current || (type !== 'notification' && type !== 'gap')) return;
    timer.current = setTimeout(() => {
      timer.current = null;
      latest.current();
    }, COALESCE_MS);
  });
}
