/** The rate limit of messages: 50 a second, in bursts of up to 200. */
const MESSAGE_INTERVAL_MS = 20;
const MAX_BURST_MS = 4_000;
/**
 * A larger message counts as several, one for each of this many bytes, as the time that it takes to parse grows with its size: the second
 * is for those of a client that has not signed in.
 */
const MESSAGE_BYTES = 4 * 1024;
const ANONYMOUS_MESSAGE_BYTES = 1024;
/**
 * A ping or a pong counts as ten messages: while a fragmented message is incomplete, ws keeps the network chunks of its fragments in
 * memory, and with them all control frames that arrived in the same chunks.
 */
export const CONTROL_COUNT = 10;

/** How many messages one of this many bytes counts as. */
export function countOf(bytes: number, isSignedIn: boolean): number {
  return Math.max(1, Math.ceil(bytes / (isSignedIn ? MESSAGE_BYTES : ANONYMOUS_MESSAGE_BYTES)));
}

/** The state of the rate limit of a connection (GCRA). */
export class MessageRate {
  /** The theoretical arrival time of the next message, in whole milliseconds. */
  #nextArrivalMs = 0;
  #burstMs = MAX_BURST_MS;

  /** Counts a message; returns whether it comes within the rate. */
  count(messages: number): boolean {
    const now = Math.round(performance.now());
    this.#nextArrivalMs = Math.max(this.#nextArrivalMs, now) + messages * MESSAGE_INTERVAL_MS;
    return this.#nextArrivalMs <= now + this.#burstMs;
  }

  /** Extends the bursts by a time in which the connection was not read: what its peer has sent meanwhile arrives at once. */
  extendBurst(milliseconds: number): void {
    this.#burstMs += Math.round(milliseconds);
  }
}
