import { useEffect, useRef } from 'react';
import { useFeed } from '../live/live.tsx';
import type { Endless } from './pages.ts';

/** Whatever happens within this time is one reason to read. */
const REST_MS = 5000;

/** Reads what a list shows once more when something has happened in the project. */
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
    }, REST_MS);
  });
}
