import { countOf, MessageRate } from './messagerate.ts';
import type { ServerSocket } from './socket.ts';
import type { UserRate, WaitingSocket } from './userrates.ts';

/** The memory that a message which waits takes, besides two bytes for each of its own. */
const WAITING_MESSAGE_BYTES = 256;

/** The connection that receives the messages. */
interface Receiver {
  readonly socket: ServerSocket;
  /** Counts memory that is held for the peer; a negative number releases it. */
  reserve(bytes: number): void;
  /** Handles a message, unless the connection is closing. */
  handle(handle: () => void): void;
}

/** Messages that wait until the sockets of their user may send more. */
interface WaitingMessages {
  readonly since: number;
  readonly messages: Array<{ readonly count: number; readonly bytes: number; readonly handle: () => void }>;
}

/** The messages that a connection receives: their rate, and those that wait for the rate of their user. */
export class Inbox implements WaitingSocket {
  /** The rate of all sockets of the user; null until the client has signed in. */
  userRate: UserRate | null = null;
  readonly #rate = new MessageRate();
  /** Null while no message waits. */
  #waiting: WaitingMessages | null = null;
  /** The bytes that have been counted of a message that is not complete yet. */
  #incompleteBytes = 0;

  constructor(private readonly receiver: Receiver) {}

  /** Counts a message of this many bytes; returns whether it comes within the rate of the connection. */
  countMessage(bytes: number): boolean {
    return this.#rate.countMessage(countOf(bytes, this.userRate !== null));
  }

  /** Counts the memory of a message that is not complete yet: its peer may put off the rest for ever. To be called every second. */
  countIncomplete(): void {
    const { incompleteBytes } = this.receiver.socket;
    if (incompleteBytes === this.#incompleteBytes) return;
    this.receiver.reserve(incompleteBytes - this.#incompleteBytes);
    this.#incompleteBytes = incompleteBytes;
  }

  /** Counts a ping or a pong; returns whether it comes within the rate of the connection. */
  countControl(): boolean {
    return this.#rate.countControl();
  }

  /**
   * Handles a message of this many bytes. While the sockets of its user have sent too many, it waits, and the socket is not read: only
   * what has been read already follows. Clients that have not signed in wait for no others at their address, who may be strangers: each
   * has five seconds to sign in.
   */
  handleInTurn(length: number, handle: () => void): void {
    const rate = this.userRate;
    const count = countOf(length, true);
    if (!rate || (!this.#waiting && rate.spend(count))) return this.receiver.handle(handle);
    const bytes = 2 * length + WAITING_MESSAGE_BYTES;
    this.#waiting ??= this.#beginWait(rate);
    this.#waiting.messages.push({ count, bytes, handle });
    this.receiver.reserve(bytes);
  }

  get isWaiting(): boolean {
    return this.#waiting !== null;
  }

  /** Handles the message that has waited longest; returns how many it counts as. */
  handleNext(): number {
    const next = this.#waiting?.messages.shift();
    if (!next) return 0;
    this.receiver.reserve(-next.bytes);
    this.receiver.handle(next.handle);
    if (this.#waiting?.messages.length === 0) this.endWait();
    return next.count;
  }

  /** Reads the socket again; messages that still wait are dropped. */
  endWait(): void {
    const waiting = this.#waiting;
    if (!waiting) return;
    this.#waiting = null;
    this.userRate?.stopWaiting(this);
    for (const { bytes } of waiting.messages) this.receiver.reserve(-bytes);
    this.#rate.addCredit(performance.now() - waiting.since);
    this.receiver.socket.endThrottle();
  }

  #beginWait(rate: UserRate): WaitingMessages {
    rate.wait(this);
    this.receiver.socket.throttle();
    return { since: performance.now(), messages: [] };
  }
}
