import { setTimeout as sleep } from 'node:timers/promises';

/**
 * The pauses after work whose time its caller has measured, as it has waits within it; work without waits takes a turn (`turns.ts`).
 * An owner's next work waits for the pause, so that no pause begins during another one.
 */
export class Pauses {
  readonly #byOwner = new Map<string, Promise<void>>();

  /** The pause for which the owner's next work waits; null if it may begin at once. */
  find(owner: string): Promise<void> | null {
    return this.#byOwner.get(owner) ?? null;
  }

  begin(owner: string, milliseconds: number): void {
    const pause = sleep(milliseconds).then(() => void this.#byOwner.delete(owner));
    this.#byOwner.set(owner, pause);
  }
}
