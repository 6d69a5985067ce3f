/** What a queue hands out when there is no item: it overflowed, or it was closed. */
export const OVERFLOWED = Symbol('overflowed');
export const CLOSED = Symbol('closed');

/**
 * The bounded queue between a hub and one subscriber. One that overflows forgets what it held: the subscriber goes back
 * to the log, so a slow reader costs neither memory nor events. For a single consumer.
 */
export class Queue<Item> {
  #items: Item[] = [];
  #end: typeof OVERFLOWED | typeof CLOSED | null = null;
  #wake: (() => void) | null = null;
  readonly #capacity: number;

  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  push(item: Item): void {
    if (this.#end) return;
    if (this.#items.length < this.#capacity) this.#items.push(item);
    else this.#finish(OVERFLOWED);
    this.#wake?.();
  }

  close(): void {
    this.#finish(CLOSED);
    this.#wake?.();
  }

  async take(): Promise<Item | typeof OVERFLOWED | typeof CLOSED> {
    while (this.#items.length === 0 && !this.#end) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
      this.#wake = null;
    }
    return this.#end ?? (this.#items.shift() as Item);
  }

  #finish(end: typeof OVERFLOWED | typeof CLOSED): void {
    this.#end = end;
    this.#items = [];
  }
}
