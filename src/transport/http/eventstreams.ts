import type { ServerResponse } from 'node:http';
import { setImmediate as nextIteration } from 'node:timers/promises';

/** The responses that may stream events. */
export class EventStreams {
  readonly #responses = new Set<ServerResponse>();
  #isClosed = false;

  /** Whether the streams have ended, so that none may begin. */
  get isClosed(): boolean {
    return this.#isClosed;
  }

  add(response: ServerResponse): void {
    this.#responses.add(response);
    response.once('close', () => this.#responses.delete(response));
  }

  /** Ends the streams without their last event `complete`: it would say that nothing follows, and clients would not reconnect. */
  async close(): Promise<void> {
    this.#isClosed = true;
    // A stream that was about to begin has its headers by then.
    await nextIteration();
    for (const response of this.#responses) {
      if (response.getHeader('Content-Type') !== 'text/event-stream') continue;
      // An event that is written before Yoga notices the end is dropped.
      response.on('error', () => {});
      response.end();
    }
  }
}
