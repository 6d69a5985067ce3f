import { vi } from 'vitest';

/** Sets the time of day so many seconds on, where it stands until `vi.useRealTimers()`: what expires has, and nobody has waited. */
export function passSeconds(seconds: number): void {
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + seconds * 1_000 });
}
