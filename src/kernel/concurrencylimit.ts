/** Counts what each key, a client address or a user, has open at the same time in this process, against a limit for each. */
export class ConcurrencyLimit {
  readonly #open = new Map<string, number>();

  constructor(readonly max: number) {}

  /** Counts one more, even beyond the limit; returns whether the count is within it. */
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
