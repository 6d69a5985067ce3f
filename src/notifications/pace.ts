import { setTimeout as sleep } from 'node:timers/promises';

/** For each part of the time that telling takes, so many parts are left to other work while more keeps coming. */
const REST = 19;
/** However long the telling took: news wait no longer than that. */
const MAX_REST_MS = 250;
/** When nothing more has come for so long, no more is waited for. */
const QUIET_MS = 15;

/**
 * Keeps a burst of news from taking a process's whole time. What comes singly is told at once, or a moment after what was
 * told before; what comes in a burst is told together, in rests between other work, so that each socket gets it as one
 * write.
 */
export class Pace {
  #restsUntil = 0;

  /** Resolves when it may be told again. `countNews` says how much has come so far. */
  async takeTurn(countNews: () => number): Promise<void> {
    let known: number;
    do {
      const restMs = this.#restsUntil - performance.now();
      if (restMs <= 0) return;
      known = countNews();
      await sleep(Math.min(restMs, QUIET_MS));
    } while (countNews() > known);
  }

  /** Counts what telling has taken. */
  spend(tookMs: number): void {
    const now = performance.now();
    this.#restsUntil = Math.min(Math.max(this.#restsUntil, now) + tookMs * REST, now + MAX_REST_MS);
  }
}
