import { type RefObject, useLayoutEffect, useState } from 'react';
import { isFocusFree } from './focus.ts';
import type { Endless, Place } from './pages.ts';

/** How many rows away the current row is searched for after others were inserted above it. */
const MAX_DISTANCE = 300;

/** Once the table has had the focus, the current row keeps its identity when rows are inserted above it; the list stores it. */
export function useCurrentRow<Row extends { readonly id: string }>(list: Endless<Row>): readonly [number, (index: number) => void] {
  const { place, reach } = list;
  const [, setRenders] = useState(0);
  const found = place.id === null ? null : findNear(list, place.current, place.id);
  const current = Math.min(found ?? place.current, Math.max(0, reach - 1));
  const id = list.row(current)?.id ?? null;
  // A passive effect could run after the next key press and undo its move.
  useLayoutEffect(() => {
    if (place.id !== null && id !== null) Object.assign(place, { current, id });
  }, [place, current, id]);
  const set = (index: number) => {
    Object.assign(place, { current: index, id: list.row(index)?.id ?? null });
    setRenders((before) => before + 1);
  };
  return [current, set];
}

function findNear<Row extends { readonly id: string }>(list: Endless<Row>, index: number, id: string): number | null {
  for (let distance = 0; distance <= MAX_DISTANCE; distance += 1) {
    for (const place of [index + distance, index - distance]) if (place >= 0 && list.row(place)?.id === id) return place;
  }
  return null;
}

/** Restores the scroll position and the keyboard focus when somebody comes back to a list. */
export function useRestoredPlace(scroller: RefObject<HTMLDivElement | null>, place: Place, isReady: boolean) {
  useLayoutEffect(() => {
    const element = scroller.current;
    if (!element || !isReady) return;
    element.scrollTop = place.scrollTop;
    if (place.id !== null && isFocusFree()) element.focus({ preventScroll: true });
    const keep = () => {
      place.scrollTop = element.scrollTop;
    };
    element.addEventListener('scroll', keep, { passive: true });
    return () => element.removeEventListener('scroll', keep);
  }, [scroller, place, isReady]);
}
