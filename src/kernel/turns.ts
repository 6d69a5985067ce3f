import { setImmediate as nextImmediate, setTimeout as sleep } from 'node:timers/promises';

/**
 * Spreads out work that blocks the event loop, by owner. Whoever is about to do such work waits for `take`, and then does it without
 * another wait. The owner's next turn begins after a pause that is as long as the work took. So an owner of many requests blocks the
 * event loop for one piece of work at a time, and leaves half of its time to everybody else.
 */
export class Turns {
  readonly #lastEnds = new Map<string, Promise<void>>();

  /** Resolves when the turn begins: at once, unless the owner has had one just now. */
  take(owner: string): Promise<void> {
    const begin = this.#lastEnds.get(owner) ?? Promise.resolve();
    const end = begin.then(pauseAfterTurn).then(() => {
      if (this.#lastEnds.get(owner) === end) this.#lastEnds.delete(owner);
    });
    this.#lastEnds.set(owner, end);
    return begin;
  }
}

async function pauseAfterTurn(): Promise<void> {
  const startedAt = performance.now();
  await nextImmediate();
  const tookMs = performance.now() - startedAt;
  if (tookMs >= 1) await sleep(tookMs);
}

/** The turns of this process, by user; clients without a credential have them together. */
export const turns = new Turns();
