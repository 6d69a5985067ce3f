import pLimit, { type LimitFunction } from 'p-limit';
import { getOrInsert } from './map.ts';

/** The tasks of one owner. */
interface Own {
  readonly limit: LimitFunction;
  count: number;
}

/**
 * Runs at most `max` tasks at once, in the order in which they came; of each owner at most as many have a place in that order, so
 * that an owner of many tasks waits for themselves, and everybody else for `max` tasks of each other owner.
 */
export class FairLimit {
  readonly #max: number;
  readonly #limit: LimitFunction;
  readonly #owners = new Map<string, Own>();
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
    const own = getOrInsert(this.#owners, owner, () => ({ limit: pLimit(this.#max), count: 0 }));
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
