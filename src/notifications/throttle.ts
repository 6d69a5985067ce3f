import { setTimeout as sleep } from 'node:timers/promises';

/** The length of the rest after a broadcast, in multiples of the broadcast: other work has that time while more entries arrive. */
const REST = 19;
/** The longest rest, however long the broadcast took. */
const MAX_REST_MS = 250;
/** A rest ends early when no entry has arrived for so long. */
const QUIET_MS = 15;

/**
 * Keeps a burst of entries from taking the whole time of a process. A single entry is broadcast at once, or a moment after
 * the broadcast before it. Entries of a burst are coalesced: they are broadcast together, in rests between other work, so
 * that each socket gets them as one write.
 */
export class Throttle {
  #restsUntil = 0;

  /** Resolves when the next broadcast may begin. `countPending` says how many entries have been announced so far. */
  async wait(countPending: () => number): Promise<void> {
    let known: number;
    do {
      const restMs = this.#restsUntil - performance.now();
      if (restMs <= 0) return;
      known = countPending();
      await sleep(Math.min(restMs, QUIET_MS));
    } while (countPending() > known);
  }

  /** Counts the time that a broadcast has taken. */
  spend(tookMs: number): void {
    const now = performance.now();
    this.#restsUntil = Math.min(Math.max(this.#restsUntil, now) + tookMs * REST, now + MAX_REST_MS);
  }
}
