import type { ServerResponse } from 'node:http';
import { setImmediate as nextIteration } from 'node:timers/promises';
import { Fault } from '../../kernel/fault.ts';
import { type ConcurrencyLimit, tooManySockets } from './concurrencylimit.ts';

const emptyBuffer = Buffer.alloc(0);

/** Resolves when the kernel has taken what was written of a response, also in this iteration, or when its connection is closed. */
export async function whenTaken({ socket }: ServerResponse): Promise<void> {
  await nextIteration();
  if (!socket?.writableLength) return;
  await new Promise<void>((resolve) => socket.write(emptyBuffer, () => resolve()));
}

/** The responses that may stream events. */
export class EventStreams {
  readonly #responses = new Set<ServerResponse>();
  #isClosed = false;

  constructor(
    /** The open streams of each user; WebSockets count too. */
    private readonly socketLimit: ConcurrencyLimit,
    /** How many there may be: each takes several times the memory of a WebSocket. */
    private readonly max: number,
  ) {}

  /** Whether the streams have ended, so that none may begin. */
  get isClosed(): boolean {
    return this.#isClosed;
  }

  /**
   * Counts a response until it is closed. Throws `conflict` beyond the quota of its user, and `service_unavailable` where there are
   * too many. Without a user there is nothing to stream.
   */
  add(response: ServerResponse, userId: string | null): void {
    // A client may have gone while its request waited.
    if (response.closed) return;
    if (this.#responses.size >= this.max) throw Fault.tryLater('there are too many event streams');
    if (userId !== null) {
      if (this.socketLimit.isFull(userId)) throw tooManySockets(this.socketLimit);
      this.socketLimit.add(userId);
    }
    this.#responses.add(response);
    // What has not been read of the request, such as the body of a GET request, would stay in memory.
    response.req.resume();
    response.once('close', () => {
      this.#responses.delete(response);
      if (userId !== null) this.socketLimit.delete(userId);
    });
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
