import pLimit, { type LimitFunction } from 'p-limit';
import { getOrInsert } from './map.ts';

/** The tasks of one owner, running or waiting. */
interface OwnedTasks {
  readonly limit: LimitFunction;
  count: number;
}

/**
 * Runs at most `max` tasks at once, first in, first out. At most half of `max`, rounded up, of one owner's tasks run or are in this
 * shared queue; the owner's other tasks wait in a queue of their own, so an owner of many tasks delays mostly their own.
 */
export class FairLimit {
  readonly #max: number;
  readonly #limit: LimitFunction;
  readonly #owners = new Map<string, OwnedTasks>();
  #count = 0;

  constructor(max: number) {
    this.#max = max;
    this.#limit = pLimit(max);
  }

  /** The number of tasks that have not begun. */
  get waiting(): number {
    return this.#count - this.#limit.activeCount;
  }

  async run<Result>(owner: string, task: () => Promise<Result>): Promise<Result> {
    const own = getOrInsert(this.#owners, owner, () => ({ limit: pLimit(Math.ceil(this.#max / 2)), count: 0 }));
    own.count += 1;
    this.#count += 1;
    try {
      return await own.limit(() => this.#limit(task));
    } finally {
      own.count -= 1;
      this.#count -= 1;
      if (own.count === 0) this.#owners.delete(owner);
    }
  }
}
