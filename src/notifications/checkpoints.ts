import type { LogCheckpoint } from './log.ts';

/**
 * Of the entries that have left the window, a hub remembers one in `CHECKPOINT_INTERVAL`, and at most `MAX_CHECKPOINTS` of them, to find
 * out how far the log went back: they cover some 8,000 entries.
 */
const CHECKPOINT_INTERVAL = 128;
const MAX_CHECKPOINTS = 64;

/** Entries that a hub remembers beyond its window: the first that it knew, and one in `CHECKPOINT_INTERVAL` of the newest. */
export class Checkpoints {
  readonly #entries: LogCheckpoint[] = [];

  /** Remembers an entry that lies far enough after the last one. Entries come in order. */
  add(entry: LogCheckpoint): void {
    if (entry.sequence - (this.#entries.at(-1)?.sequence ?? Number.NEGATIVE_INFINITY) < CHECKPOINT_INTERVAL) return;
    this.#entries.push(entry);
    if (this.#entries.length > MAX_CHECKPOINTS) this.#entries.splice(1, 1);
  }

  /** The remembered entries before the newest ones, and these, in order. */
  followedBy(newest: readonly LogCheckpoint[]): LogCheckpoint[] {
    const first = newest[0]?.sequence ?? Number.POSITIVE_INFINITY;
    return [...this.#entries.filter(({ sequence }) => sequence < first), ...newest];
  }
}
