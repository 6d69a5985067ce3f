import { turns } from '../kernel/turns.ts';

/** The reader of a source. */
export interface Consumer {
  /** Runs when there may be an event to read, and when the source has ended. */
  onReadable(): void;
}

/** An event that many subscribers read as the same object, so that its rendered text is worth caching. */
export interface Shareable {
  readonly isShared?: boolean;
}

/**
 * The events of a subscription as a pull stream. A consumer calls `read` until it returns null, and again after
 * `onReadable`; where `needsFetch` is true, it calls `fetch` first. A consumer that stops reading holds no events but what
 * it has fetched, and `release` drops that. As an async iterator the source serves consumers that wait for each event.
 */
export abstract class Source<Event extends object = object> implements AsyncIterableIterator<Event, undefined> {
  consumer: Consumer | null = null;
  #isEnded = false;
  #onEnd: (() => void) | null = null;
  #failure: unknown = null;
  #hasThrown = false;

  /** The key of the turns in which work on the events blocks the event loop: the user. */
  abstract readonly turnKey: string;

  /** The next event in memory; null while there is none, and after the end. */
  abstract read(): Event | null;

  /** Whether the next event has to be fetched before it can be read. */
  get needsFetch(): boolean {
    return false;
  }

  /** Fetches the next events into memory. Never rejects: a failure ends the source. */
  async fetch(): Promise<void> {}

  /** Drops the events that were fetched and not read; they can be fetched again. */
  release(): void {}

  get isEnded(): boolean {
    return this.#isEnded;
  }

  /** The reason for the end; null for a regular end. */
  get failure(): unknown {
    return this.#failure;
  }

  /** Registers the one callback that runs at the end. */
  runOnEnd(release: () => void): void {
    this.#onEnd = release;
  }

  /** Tells the consumer that there may be an event to read, or that the source has ended. */
  notify(): void {
    this.consumer?.onReadable();
  }

  /** Ends the source at once: no event is read after that. */
  end(failure: unknown = null): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.#failure = failure;
    this.#onEnd?.();
    this.notify();
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  /** Rejects once with the failure. After that it is done: Yoga would otherwise keep reading after a failure, without a pause. */
  async next(): Promise<IteratorResult<Event, undefined>> {
    for (;;) {
      const value = this.read();
      if (value) {
        // The consumer renders the event as soon as it gets it, so the events of one user's many streams are handed out in turns.
        await turns.take(this.turnKey);
        if (!this.#isEnded) return { done: false, value };
      }
      if (this.#failure && !this.#hasThrown) {
        this.#hasThrown = true;
        throw this.#failure;
      }
      if (this.#isEnded) return { done: true, value: undefined };
      await new Promise<void>((resolve, reject) => {
        this.consumer = { onReadable: resolve };
        // The end of the source does not wait for a pending fetch.
        if (this.needsFetch) this.fetch().then(resolve, reject);
      });
    }
  }

  async return(): Promise<IteratorResult<Event, undefined>> {
    this.end();
    return { done: true, value: undefined };
  }
}
