import { vi } from 'vitest';

/** Advances `Date` by a number of seconds and freezes it there until `vi.useRealTimers()`: things expire without a test waiting. */
export function passSeconds(seconds: number): void {
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + seconds * 1_000 });
}

/** Stops the wall clock and the monotonic clock; the returned function sets both to a number of milliseconds after the stop. */
export function stopClock(): (milliseconds: number) => void {
  const began = Date.now();
  let passed = 0;
  vi.useFakeTimers({ toFake: ['Date', 'performance'], now: began });
  return (milliseconds) => {
    vi.advanceTimersByTime(milliseconds - passed);
    passed = milliseconds;
  };
}
