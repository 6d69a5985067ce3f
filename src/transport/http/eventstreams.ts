import type { ServerResponse } from 'node:http';
import { setImmediate as nextIteration } from 'node:timers/promises';
import { ConcurrencyLimit } from '../../kernel/concurrencylimit.ts';
import { Fault } from '../../kernel/fault.ts';

const emptyBuffer = Buffer.alloc(0);

/** Resolves when the kernel has taken what was written of a response, also in this iteration, or when its connection is closed. */
export async function whenTaken({ socket }: ServerResponse): Promise<void> {
  await nextIteration();
  if (!socket?.writableLength) return;
  await new Promise<void>((resolve) => socket.write(emptyBuffer, () => resolve()));
}

/** One connection in this number may be an event stream: each takes several times the memory of a WebSocket. */
const CONNECTIONS_PER_STREAM = 8;
/** A user may have one in this number of all event streams. */
const STREAMS_PER_SHARE = 4;

/** The responses that stream events. */
export class EventStreams {
  readonly #responses = new Set<ServerResponse>();
  readonly #max: number;
  /** The open streams of each user, without their WebSockets. */
  readonly #ofUsers: ConcurrencyLimit;
  #isClosed = false;

  constructor(
    /** The open streams and WebSockets of each user. */
    private readonly socketLimit: ConcurrencyLimit,
    /** The TCP connections that may be open at once, of all clients. */
    maxConnections: number,
  ) {
    this.#max = Math.ceil(maxConnections / CONNECTIONS_PER_STREAM);
    this.#ofUsers = new ConcurrencyLimit(Math.ceil(this.#max / STREAMS_PER_SHARE));
  }

  /** Whether the streams have ended, so that none may begin. */
  get isClosed(): boolean {
    return this.#isClosed;
  }

  /**
   * Counts a response until it is closed. Throws `conflict` beyond a quota of its user, and `service_unavailable` where there are
   * too many.
   */
  add(response: ServerResponse, userId: string): void {
    // A client may have gone while its request waited.
    if (response.closed) return;
    if (this.#ofUsers.isFull(userId)) throw tooManyStreams(this.#ofUsers);
    if (this.socketLimit.isFull(userId)) throw tooManySockets(this.socketLimit);
    if (this.#responses.size >= this.#max) throw Fault.unavailable(new Error('there are too many event streams'));
    this.#ofUsers.add(userId);
    this.socketLimit.add(userId);
    this.#responses.add(response);
    // The unread rest of the request, such as the body of a GET request, would stay in memory.
    response.req.resume();
    response.once('close', () => {
      this.#responses.delete(response);
      this.#ofUsers.delete(userId);
      this.socketLimit.delete(userId);
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

/** The fault of a user who has as many WebSockets and event streams open as they may. */
export function tooManySockets({ max }: ConcurrencyLimit): Fault {
  return Fault.quotaReached(`A user may have ${max} WebSockets and event streams open at once.`, { quota: 'sockets_per_user', limit: max });
}

/** The fault of a user who has as many event streams open as they may. */
function tooManyStreams({ max }: ConcurrencyLimit): Fault {
  return Fault.quotaReached(`A user may have ${max} event streams open at once.`, { quota: 'event_streams_per_user', limit: max });
}
