import type { ServerResponse } from 'node:http';

/** The responses that may stream events. */
export class EventStreams {
  readonly #responses = new Set<ServerResponse>();

  add(response: ServerResponse): void {
    this.#responses.add(response);
    response.once('close', () => this.#responses.delete(response));
  }

  /** Ends the streams without their last event `complete`: it would say that nothing follows, and clients would not reconnect. */
  close(): void {
    for (const response of this.#responses) {
      if (response.getHeader('Content-Type') !== 'text/event-stream') continue;
      // An event that is written before Yoga notices the end is dropped.
      response.on('error', () => {});
      response.end();
    }
  }
}
