import { vi } from 'vitest';

/** Advances `Date` by a number of seconds and freezes it there until `vi.useRealTimers()`: things expire without a test waiting. */
export function passSeconds(seconds: number): void {
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + seconds * 1_000 });
}
