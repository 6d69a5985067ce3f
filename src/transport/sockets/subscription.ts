import type { ExecutionResult } from 'graphql';
import type { Delivery } from '../delivery/delivery.ts';

/**
 * A subscription for graphql-ws: an iterator that yields nothing, and ends or fails when the feed does. Its events bypass
 * graphql-ws: a Delivery renders and frames them once for all subscribers with the same renderer.
 */
export class Subscription implements AsyncIterableIterator<ExecutionResult, undefined> {
  delivery: Delivery | null = null;
  #isEnded = false;
  #failure: unknown = null;
  #settle: (() => void) | null = null;

  /** Ends the subscription as its delivery has ended. */
  readonly end = (failure: unknown): void => {
    this.#failure = failure;
    this.#end();
  };

  async next(): Promise<IteratorResult<ExecutionResult, undefined>> {
    if (!this.#isEnded) await new Promise<void>((resolve) => (this.#settle = resolve));
    if (this.#failure) throw this.#failure;
    return { done: true, value: undefined };
  }

  async return(): Promise<IteratorResult<ExecutionResult, undefined>> {
    this.delivery?.stop();
    this.#end();
    return { done: true, value: undefined };
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  #end(): void {
    this.#isEnded = true;
    this.#settle?.();
  }
}
