import { setImmediate as nextImmediate, setTimeout as sleep } from 'node:timers/promises';

/**
 * Work that blocks the event loop for long, in turns: what an owner begins in a turn runs to its first wait for anything outside
 * of the process, and the owner's next turn comes after a pause as long as that took. An owner of many requests thus blocks the
 * event loop for one step at a time, and leaves half of it to everybody else.
 */
export class Turns {
  readonly #lastEnds = new Map<string, Promise<void>>();

  /** Resolves when the turn begins: at once, unless the owner has had one just now. */
  take(owner: string): Promise<void> {
    const begin = this.#lastEnds.get(owner) ?? Promise.resolve();
    const end = begin.then(pauseAfterStep).then(() => {
      if (this.#lastEnds.get(owner) === end) this.#lastEnds.delete(owner);
    });
    this.#lastEnds.set(owner, end);
    return begin;
  }
}

async function pauseAfterStep(): Promise<void> {
  const startedAt = performance.now();
  await nextImmediate();
  const tookMs = performance.now() - startedAt;
  if (tookMs >= 1) await sleep(tookMs);
}

/** The turns of this process, by user, or by client address without one. */
export const turns = new Turns();
