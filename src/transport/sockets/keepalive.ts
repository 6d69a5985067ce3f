import type { ServerSocket } from './socket.ts';

const PING_INTERVAL_S = 15;
/**
 * A ping waits behind what was sent before it and the peer has not read, which may be megabytes in the kernels of both sides: the peer
 * has another interval to answer for each of this many bytes (four KiB a second), up to five minutes.
 */
const INTERVAL_BYTES = PING_INTERVAL_S * 4 * 1024;
const MAX_INTERVALS = 20;
/** A connection whose peer has ended it without a close frame is dropped after this long: ws does not begin its `closeTimeout` for that. */
const HALF_CLOSED_TIMEOUT_S = 2;

/** The connection that is kept alive. */
interface Pinged {
  readonly socket: ServerSocket;
  readonly isOpen: boolean;
  /** Whether bytes are pending that the kernel has not accepted. */
  readonly hasPendingBytes: boolean;
  /** How many bytes have been sent, pending ones included. */
  readonly bytesWritten: number;
  /** To be called after each write. */
  recordBuffered(): void;
}

/** Pings the peer of a connection, and drops one that does not answer, or does not end the closing. */
export class KeepAlive {
  #secondsSincePing = 0;
  #secondsClosing = 0;
  /** How many more intervals the peer has to answer the ping; null where it has answered. */
  #intervalsLeft: number | null = null;
  /** How many pings the peer has not answered: while input is paused, their pongs wait, and then arrive at once. */
  #unanswered = 0;
  /** How many bytes had been sent before the last ping, and before the last one that was answered. */
  #bytesBeforePing = 0;
  #bytesBeforeAnswered = 0;
  /** Whether bytes were pending in a second since the last ping was due: pings wait behind them. */
  #hadPendingBytes = false;
  /** Whether input was paused in a second since the last ping was due: the pong may wait behind what was not read. */
  #wasPaused = false;

  constructor(private readonly connection: Pinged) {}

  /** Called every second. */
  tick(): void {
    if (this.connection.isOpen) this.#tickOpen();
    else this.#tickClosing();
  }

  /** Returns whether the pong answers a ping: others count towards the rate of messages. */
  recordPong(): boolean {
    this.#intervalsLeft = null;
    this.#bytesBeforeAnswered = this.#bytesBeforePing;
    if (this.#unanswered === 0) return false;
    this.#unanswered -= 1;
    return true;
  }

  /** Pings the peer when it is due, and drops a peer that has not answered. */
  #tickOpen(): void {
    const { socket, hasPendingBytes } = this.connection;
    this.#hadPendingBytes ||= hasPendingBytes;
    this.#wasPaused ||= socket.isPaused;
    this.#secondsSincePing = (this.#secondsSincePing + 1) % PING_INTERVAL_S;
    if (this.#secondsSincePing > 0) return;
    const hadPendingBytes = this.#hadPendingBytes;
    this.#hadPendingBytes = hasPendingBytes;
    const wasPaused = this.#wasPaused;
    this.#wasPaused = socket.isPaused;
    // While input is paused, no pong can arrive, nor is the end of the connection noticed, unless something is written.
    if (socket.isPaused) {
      this.#ping();
      this.#intervalsLeft = null;
    } else if (this.#intervalsLeft === null) this.#ping();
    // The ping has waited behind them; a peer that reads none of them is ended as stalled.
    else if (hadPendingBytes || wasPaused) return;
    else if (this.#intervalsLeft === 0) socket.terminate();
    else this.#intervalsLeft -= 1;
  }

  #ping(): void {
    this.#unanswered += 1;
    this.#bytesBeforePing = this.connection.bytesWritten;
    const unreadBytes = this.#bytesBeforePing - this.#bytesBeforeAnswered;
    this.#intervalsLeft = Math.min(Math.floor(unreadBytes / INTERVAL_BYTES), MAX_INTERVALS);
    this.connection.socket.ping();
    this.connection.recordBuffered();
  }

  /** Waits for the closing handshake, then drops the connection. */
  #tickClosing(): void {
    this.#secondsClosing += 1;
    if (this.#secondsClosing > HALF_CLOSED_TIMEOUT_S) this.connection.socket.terminate();
  }
}
