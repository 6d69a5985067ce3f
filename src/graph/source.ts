/** Hears that there may be something new. */
export interface Listener {
  hear(): void;
}

/**
 * The events of a subscription, for a door that takes them as it can send them: `take` has the next one or null, and
 * the listener hears when to ask again. So nothing waits between an event and the sockets of those who keep pace, and
 * one that does not keeps nothing but its place. As an iterator it is for doors that wait for each event.
 */
export abstract class Source<Event extends object = object> implements AsyncIterableIterator<Event, undefined>, Listener {
  /** Hears when there may be something to take, and of the end. */
  listener: Listener | null = null;
  #isEnded = false;
  #failure: unknown = null;

  /** The next event; null while there is none, and after the end. */
  abstract take(): Event | null;

  get isEnded(): boolean {
    return this.#isEnded;
  }

  /** What has ended it; null for an end in order. */
  get failure(): unknown {
    return this.#failure;
  }

  hear(): void {
    this.listener?.hear();
  }

  /** Ends it now: nothing is taken after that. */
  end(failure: unknown = null): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.#failure = failure;
    this.hear();
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<IteratorResult<Event, undefined>> {
    for (;;) {
      const value = this.take();
      if (value) return { done: false, value };
      if (this.#failure) throw this.#failure;
      if (this.#isEnded) return { done: true, value: undefined };
      await new Promise<void>((resolve) => {
        this.listener = { hear: resolve };
      });
    }
  }

  async return(): Promise<IteratorResult<Event, undefined>> {
    this.end();
    return { done: true, value: undefined };
  }
}
