import { type KeyboardEvent, type RefObject, useEffect, useRef } from 'react';
import { hasShortcuts } from './shortcuts.ts';

/** The controls within a grid that act on a key themselves, as the browser has it. A grid has no inputs but checkboxes. */
const controls: Readonly<Record<string, string>> = { Enter: 'a, button', ' ': 'a, button, input' };

/** Runs the action of a key, unless the key is for the control within the grid that has the focus. */
export function runKey(event: KeyboardEvent, actions: Readonly<Record<string, () => void>>): void {
  const taking = controls[event.key];
  if ((taking && (event.target as Element).closest(taking)) || event.metaKey || event.ctrlKey || event.altKey) return;
  const action = actions[event.key];
  const isCharacter = event.key.length === 1 && event.key !== ' ';
  if (!action || (isCharacter && !hasShortcuts())) return;
  event.preventDefault();
  action();
}

const letters = ['j', 'k'];
const others = ['ArrowDown', 'ArrowUp', 'Enter'];

/**
 * Keys that lead into the table while it does not have the focus, where its current row cannot be seen: they focus the table, on
 * this row. Letters do so from anywhere that does not handle letters itself, the others only where nothing has the focus.
 */
export function useEntryKeys(scroller: RefObject<HTMLDivElement | null>, isReady: boolean, enter: () => void) {
  const latest = useRef(enter);
  latest.current = enter;
  useEffect(() => {
    if (!isReady) return;
    const onKey = (event: globalThis.KeyboardEvent) => {
      if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
      const target = event.target as Element | null;
      const isTaken = target?.closest('input, textarea, select, [contenteditable], [role], .terminal, canvas');
      const isFree = !target || target === document.body || target.id === 'main';
      if (!(letters.includes(event.key) && !isTaken && hasShortcuts()) && !(others.includes(event.key) && isFree)) return;
      event.preventDefault();
      scroller.current?.focus({ preventScroll: true });
      latest.current();
    };
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  }, [scroller, isReady]);
}
