import { setImmediate, setTimeout as sleep } from 'node:timers/promises';
import type { Follower } from './follower.ts';

/** The pause after a broadcast, in multiples of the time that the broadcast took: it is left to other work. */
const PAUSE_FACTOR = 19;
/** The longest pause, however long the broadcast took. */
const MAX_PAUSE_MS = 250;
/** A broadcast yields to the event loop after this time. */
const SLICE_MS = 0.5;
/** Only events that are rendered for one subscriber alone, and are large, take as long. */
const SLOW_SLICE_MS = 2;
/** A pause ends early when no entry has arrived for this long. */
const QUIET_MS = 15;

/**
 * Keeps a burst of entries from occupying the event loop. A single entry is broadcast at once, or shortly after the previous
 * broadcast. Entries of a burst are coalesced: a pause follows each broadcast, and the entries that arrive meanwhile are
 * broadcast together, so that each socket gets them as one write.
 */
export class Throttle {
  #pausedUntil = 0;
  /** When subscribers may be notified again, after one that took long. */
  #restsUntil = 0;
  /** The end of the rest for the broadcast that came last. */
  #lastRest: Promise<void> = Promise.resolve();

  /** Resolves when the next broadcast may begin. `countAnnounced` returns the number of entries that were announced so far. */
  async wait(countAnnounced: () => number): Promise<void> {
    // The pause grows with each broadcast of another project.
    const deadline = performance.now() + MAX_PAUSE_MS;
    let known: number;
    do {
      const pauseMs = Math.min(this.#pausedUntil, deadline) - performance.now();
      if (pauseMs <= 0) return;
      known = countAnnounced();
      await sleep(Math.min(pauseMs, QUIET_MS));
    } while (countAnnounced() > known);
  }

  /**
   * Notifies subscribers; those that keep up read what is new within the call. Other work runs in between: after a subscriber that took
   * long, for as long as that took, also where other hubs, or entries and read states, broadcast at the same time.
   */
  async broadcast(followers: Iterable<Follower>): Promise<void> {
    await this.rest();
    let startedAt = performance.now();
    for (const { subscriber } of followers) {
      subscriber.notify();
      const tookMs = performance.now() - startedAt;
      if (tookMs < SLICE_MS) continue;
      this.recordTime(tookMs);
      if (tookMs < SLOW_SLICE_MS) await setImmediate();
      else this.beginRest(tookMs);
      await this.rest();
      startedAt = performance.now();
    }
    this.recordTime(performance.now() - startedAt);
  }

  /** Begins a rest: after a subscriber that took long, nobody is notified for as long as that took. */
  beginRest(tookMs: number): void {
    this.#restsUntil = Math.max(this.#restsUntil, performance.now() + tookMs);
  }

  /**
   * Resolves at the end of the rest, also where another broadcast extends it meanwhile. Broadcasts go on in the order in which they
   * came, so that each waits for one slow subscriber of every other broadcast at most.
   */
  rest(): Promise<void> {
    this.#lastRest = this.#lastRest.then(() => this.#untilRested());
    return this.#lastRest;
  }

  async #untilRested(): Promise<void> {
    for (let leftMs: number; (leftMs = this.#restsUntil - performance.now()) > 0; ) await sleep(Math.ceil(leftMs));
  }

  /** Extends the pause by the time that a broadcast has taken. */
  recordTime(tookMs: number): void {
    const now = performance.now();
    this.#pausedUntil = Math.min(Math.max(this.#pausedUntil, now) + tookMs * PAUSE_FACTOR, now + MAX_PAUSE_MS);
  }
}
