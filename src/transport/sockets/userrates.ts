import { ArrivalTime } from '../../kernel/arrivaltime.ts';
import { getOrInsert } from '../../kernel/map.ts';

/** The rate limit of the messages of a user's sockets: 500 a second, in bursts of up to 2,000. */
const MESSAGE_INTERVAL_MS = 2;
const MAX_BURST_MS = 4_000;
/** How often messages that wait are handled, as many as have come within the rate meanwhile. */
const RELEASE_INTERVAL_MS = 100;

/** A socket whose messages wait. */
export interface WaitingSocket {
  /** Whether more of its messages wait. */
  readonly isWaiting: boolean;
  /** Handles its next message; returns how many it counts as. */
  handleNext(): number;
}

/**
 * The rate that all sockets of a user share. Each socket has a limit of its own, but a user may have a thousand of them, and
 * most messages are charged to no budget. A socket whose messages exceed the shared rate is not closed, as another of the user's may be
 * the cause: its messages wait, and it is not read meanwhile, so that TCP slows its peer down.
 */
export class UserRate {
  /** The open sockets of the user. */
  sockets = 0;
  readonly #nextArrival = new ArrivalTime();
  /** The sockets whose messages wait, the next one first. */
  readonly #waiting = new Set<WaitingSocket>();
  #timer: NodeJS.Timeout | null = null;

  constructor(readonly userId: string) {}

  /** Counts a message that may be handled now; returns false for one that has to wait, behind those that wait already. */
  spend(count: number): boolean {
    if (this.#waiting.size > 0 || this.#isSpent) return false;
    this.#count(count);
    return true;
  }

  /** Adds a socket whose messages wait. The sockets take turns, with a message each, so that none waits for all messages of another. */
  wait(socket: WaitingSocket): void {
    this.#waiting.add(socket);
    this.#timer ??= setTimeout(() => this.#release(), RELEASE_INTERVAL_MS);
  }

  /** Removes a socket: its messages wait no longer. */
  stopWaiting(socket: WaitingSocket): void {
    this.#waiting.delete(socket);
    if (this.#waiting.size > 0 || !this.#timer) return;
    clearTimeout(this.#timer);
    this.#timer = null;
  }

  /** The milliseconds after which it is as if no message had been sent. */
  get recoveryMs(): number {
    return this.#nextArrival.aheadMs;
  }

  get #isSpent(): boolean {
    return this.#nextArrival.aheadMs + MESSAGE_INTERVAL_MS > MAX_BURST_MS;
  }

  /** A message that counts as several needs only what is left for one: otherwise it would wait behind smaller ones for ever. */
  #count(count: number): void {
    this.#nextArrival.advance(count * MESSAGE_INTERVAL_MS);
  }

  #release(): void {
    this.#timer = null;
    while (!this.#isSpent) {
      const [socket] = this.#waiting;
      if (!socket) return;
      this.#count(socket.handleNext());
      if (this.#waiting.delete(socket) && socket.isWaiting) this.#waiting.add(socket);
    }
    if (this.#waiting.size > 0) this.#timer = setTimeout(() => this.#release(), RELEASE_INTERVAL_MS);
  }
}

/** The rates of all users that have sockets open in this process, or had a few seconds ago. */
export class UserRates {
  readonly #rates = new Map<string, UserRate>();

  /** The number of rates that are kept. */
  get size(): number {
    return this.#rates.size;
  }

  /** Returns the rate of a user, for one more of their sockets, until it leaves. */
  join(userId: string): UserRate {
    const rate = getOrInsert(this.#rates, userId, () => new UserRate(userId));
    rate.sockets += 1;
    return rate;
  }

  /** Removes a socket from its rate. The messages that it sent count on: otherwise new sockets would bring new bursts. */
  leave(rate: UserRate): void {
    rate.sockets -= 1;
    this.#forget(rate);
  }

  #forget(rate: UserRate): void {
    if (rate.sockets > 0 || this.#rates.get(rate.userId) !== rate) return;
    const waitMs = rate.recoveryMs;
    if (waitMs > 0) setTimeout(() => this.#forget(rate), waitMs).unref();
    else this.#rates.delete(rate.userId);
  }
}
