/** The startup and shutdown of a process: closers are registered beside the line that opens, and run in reverse order. */
export class Lifecycle {
  readonly #closers: Array<() => unknown> = [];
  #isClosing = false;
  #isStarting = false;

  /** Whether the work of `runStartup` is under way, which should precede the first requests. */
  get isStarting(): boolean {
    return this.#isStarting;
  }

  async runStartup(work: Promise<void>): Promise<void> {
    this.#isStarting = true;
    await work.finally(() => {
      this.#isStarting = false;
    });
  }

  get isClosing(): boolean {
    return this.#isClosing;
  }

  onClose(closer: () => unknown): void {
    this.#closers.push(closer);
  }

  /** Runs every closer, the last registered first, also after one has failed. Throws an AggregateError of all failures. */
  async close(): Promise<void> {
    this.#isClosing = true;
    const failures: unknown[] = [];
    for (let closer = this.#closers.pop(); closer; closer = this.#closers.pop()) {
      try {
        await closer();
      } catch (failure) {
        failures.push(failure);
      }
    }
    if (failures.length > 0) throw new AggregateError(failures, 'not everything could be closed');
  }
}
