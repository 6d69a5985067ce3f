import { type KeyboardEvent, type RefObject, useEffect, useRef } from 'react';

/** Runs the action of a key, unless it is for a control within the grid. */
export function runKey(event: KeyboardEvent, actions: Readonly<Record<string, () => void>>): void {
  if ((event.target as Element).closest('a, button, input') || event.metaKey || event.ctrlKey || event.altKey) return;
  const action = actions[event.key];
  if (!action) return;
  event.preventDefault();
  action();
}

/** `j` and `k` focus the table from anywhere that does not handle letters itself. */
export function useLetterKeys(scroller: RefObject<HTMLDivElement | null>, isReady: boolean, move: (step: number) => void) {
  const latest = useRef(move);
  latest.current = move;
  useEffect(() => {
    if (!isReady) return;
    const onKey = (event: globalThis.KeyboardEvent) => {
      const isTaken = (event.target as Element | null)?.closest('input, textarea, select, [contenteditable], [role], .terminal, canvas');
      if ((event.key !== 'j' && event.key !== 'k') || isTaken || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      scroller.current?.focus({ preventScroll: true });
      latest.current(event.key === 'j' ? 1 : -1);
    };
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  }, [scroller, isReady]);
}
