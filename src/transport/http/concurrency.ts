/** How many of something each client address, or each user, has open at once in this process, and how many it may have. */
export class ConcurrencyLimit {
  readonly #open = new Map<string, number>();

  constructor(readonly max: number) {}

  /** Counts one more, also beyond the limit; returns whether it is within. */
  add(key: string): boolean {
    const count = this.count(key) + 1;
    this.#open.set(key, count);
    return count <= this.max;
  }

  delete(key: string): void {
    const count = this.count(key) - 1;
    if (count > 0) this.#open.set(key, count);
    else this.#open.delete(key);
  }

  count(key: string): number {
    return this.#open.get(key) ?? 0;
  }

  isFull(key: string): boolean {
    return this.count(key) >= this.max;
  }
}
