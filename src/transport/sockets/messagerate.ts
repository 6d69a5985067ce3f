import { ArrivalTime } from '../../kernel/arrivaltime.ts';

/** The rate limit of messages: 50 a second, in bursts of up to 200. */
const MESSAGE_INTERVAL_MS = 20;
const MAX_BURST_MS = 4_000;
/** A larger message counts as several, one for each of this many bytes, as the time that it takes to parse grows with its size. */
const MESSAGE_BYTES = 4 * 1024;
/** The same for a client that has not signed in. */
const ANONYMOUS_MESSAGE_BYTES = 1024;
/**
 * A ping or a pong counts as ten messages: while a fragmented message is incomplete, ws keeps the network chunks of its fragments in
 * memory, and with them all control frames that arrived in the same chunks.
 */
const CONTROL_COUNT = 10;

/** How many messages one of this many bytes counts as. */
export function countOf(bytes: number, isSignedIn: boolean): number {
  return Math.max(1, Math.ceil(bytes / (isSignedIn ? MESSAGE_BYTES : ANONYMOUS_MESSAGE_BYTES)));
}

/** The state of the rate limit of a connection. */
export class MessageRate {
  readonly #nextArrival = new ArrivalTime();
  /** The time for which messages are not counted, in milliseconds. */
  #creditMs = 0;

  /** Counts a message; returns whether it comes within the rate. */
  countMessage(count: number): boolean {
    const ms = count * MESSAGE_INTERVAL_MS;
    const credited = Math.min(this.#creditMs, ms);
    this.#creditMs -= credited;
    return this.#count(ms - credited);
  }

  /** Counts a ping or a pong, which no credit pays: the memory that they can take is bounded by their rate alone. */
  countControl(): boolean {
    return this.#count(CONTROL_COUNT * MESSAGE_INTERVAL_MS);
  }

  /** Adds a time in which the connection was not read: the messages that its peer has sent meanwhile arrive at once. */
  addCredit(milliseconds: number): void {
    this.#creditMs += Math.round(milliseconds);
  }

  #count(milliseconds: number): boolean {
    this.#nextArrival.advance(milliseconds);
    return this.#nextArrival.aheadMs <= MAX_BURST_MS;
  }
}
