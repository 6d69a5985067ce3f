import type { Socket } from 'node:net';
import type { ConsoleEnd } from '../generated/prisma/enums.ts';
import { BufferPool } from './buffers.ts';
import { connectEndpoint, type Endpoint } from './endpoint.ts';
import { Scrollback } from './scrollback.ts';

/** The output of a serial console that is kept for a client that comes back. */
const SCROLLBACK_BYTES = 256 * 1024;
/** Backpressure on a console: it is paused above the first number of bytes that wait for its client, and resumed at the second. */
const MAX_WAITING_BYTES = 512 * 1024;
const MIN_WAITING_BYTES = 128 * 1024;
/** Backpressure on a client: it is paused above this number of bytes that wait for its console. */
const MAX_TYPED_BYTES = 64 * 1024;
/** How long a console may still send while its line is being closed. */
const HANG_UP_MS = 500;
/** How long the output of a console is paused for a client that is about to be attached. */
const MAX_PAUSE_MS = 5_000;

/** Why a client's socket is closed: its session has ended, or goes on without the client. */
export type Closing = ConsoleEnd | 'credential_expired' | 'restart';

/** The socket that is attached to a session, as the session needs it. */
export interface ConsoleClient {
  /** The bytes that have not gone out yet. */
  readonly waiting: number;
  send(bytes: Buffer, onSent: () => void): void;
  /** Stops and resumes the reading of input. */
  pause(): void;
  resume(): void;
  close(closing: Closing): void;
}

export interface SessionFacts {
  readonly id: string;
  readonly projectId: string;
  readonly instanceId: string;
  readonly userId: string;
  readonly endpoint: Endpoint;
}

/** The state of a session that has run in another process before. */
export interface Continuation {
  /** The position at the end of its output. */
  readonly position: number;
  readonly scrollback: Uint8Array;
  readonly bytesIn: number;
  readonly bytesOut: number;
}

/**
 * A running session: one line to a console, and one client that is attached to it, or none. Bytes pass unchanged, with
 * backpressure both ways.
 */
export class LiveSession {
  readonly scrollback: Scrollback;
  bytesIn: number;
  bytesOut: number;
  /** The moment at which the last client left, by the process's clock; null while a client is attached. */
  detachedAt: number | null = performance.now();
  readonly #buffers = new BufferPool();
  #client: ConsoleClient | null = null;
  #line: Socket | null = null;
  #isLineClosed = false;
  #isLinePaused = false;
  #pauseTimer: NodeJS.Timeout | null = null;
  #hasMoved = true;
  #movedAt = 0;

  /** `onLineClosed` runs when the console closes the line, or cannot be reached. */
  constructor(
    readonly facts: SessionFacts,
    private readonly onLineClosed: (failure: Error | null) => void,
    before?: Continuation,
  ) {
    const { position = 0, scrollback = new Uint8Array(), bytesIn = 0, bytesOut = 0 } = before ?? {};
    this.scrollback = new Scrollback(this.isSerial ? SCROLLBACK_BYTES : 0, position - scrollback.length);
    this.scrollback.append(scrollback);
    this.bytesIn = bytesIn;
    this.bytesOut = bytesOut;
  }

  get isSerial(): boolean {
    return this.facts.endpoint.kind === 'serial';
  }

  get client(): ConsoleClient | null {
    return this.#client;
  }

  /** Whether the line is closed: a client that comes back gets the rest of the output. */
  get isLineClosed(): boolean {
    return this.#isLineClosed;
  }

  /** The milliseconds in which nothing has passed, to the accuracy of a poll. */
  countIdle(): number {
    const now = performance.now();
    if (this.#hasMoved) this.#movedAt = now;
    this.#hasMoved = false;
    return now - this.#movedAt;
  }

  /** Pauses the output, so that the scrollback stays as it is until a client is attached. */
  pauseUntilAttached(): void {
    if (this.#pauseTimer) clearTimeout(this.#pauseTimer);
    this.#pauseTimer = setTimeout(() => this.#endPause(), MAX_PAUSE_MS);
    this.#pauseTimer.unref();
    this.#line?.pause();
  }

  /** Sends the client the output from a position on, and then live output; a client that was attached before is closed. */
  attach(client: ConsoleClient, from: number): void {
    const before = this.#client;
    this.#client = client;
    this.detachedAt = null;
    this.#hasMoved = true;
    before?.close('taken_over');
    // A screen is drawn for one viewer from the beginning: a second viewer cannot continue the stream of the first.
    if (!this.isSerial) this.#destroyLine();
    const missed = this.scrollback.readFrom(from);
    if (missed.length > 0) client.send(missed, this.#onSent);
    this.#endPause();
    if (!this.#isLineClosed) this.#line ??= this.#connect();
    client.resume();
  }

  /** Input from a client. Input from a client that is not attached any more is ignored. */
  receive(client: ConsoleClient, bytes: Buffer): void {
    if (this.#client !== client || !this.#line) return;
    this.bytesIn += bytes.length;
    this.#hasMoved = true;
    if (!this.#line.write(bytes)) client.pause();
  }

  /** Detaches a client; returns whether it was attached. The line of a serial console stays open as long as the session lives. */
  detach(client: ConsoleClient): boolean {
    if (this.#client !== client) return false;
    this.#client = null;
    this.detachedAt = performance.now();
    if (this.isSerial) this.#resumeLine();
    else this.#destroyLine();
    return true;
  }

  /** Ends the session here: closes its client and its line. */
  stop(closing: Closing): void {
    const client = this.#client;
    this.#client = null;
    if (this.#pauseTimer) clearTimeout(this.#pauseTimer);
    this.#destroyLine();
    client?.close(closing);
  }

  /** Closes the client, and half-closes the line: what the console still sends comes into the scrollback. */
  async hangUp(closing: Closing): Promise<void> {
    const client = this.#client;
    this.#client = null;
    this.#endPause();
    client?.close(closing);
    const line = this.#line;
    if (!line || line.destroyed) return;
    this.#line = null;
    line.removeAllListeners('close');
    await new Promise<void>((resolve) => {
      const timer = setTimeout(() => line.destroy(), HANG_UP_MS);
      line.once('close', () => {
        clearTimeout(timer);
        resolve();
      });
      line.end();
    });
  }

  #connect(): Socket {
    const reader = {
      buffer: () => this.#buffers.acquire(),
      callback: (length: number, buffer: Uint8Array) => line.destroyed || this.#onOutput(length, buffer),
    };
    const line: Socket = connectEndpoint(this.facts.endpoint, reader, MAX_TYPED_BYTES);
    let failure: Error | null = null;
    line.on('error', (error) => {
      failure = error;
    });
    line.on('drain', () => this.#client?.resume());
    line.on('close', () => {
      if (this.#line !== line) return;
      this.#line = null;
      this.#isLineClosed = true;
      this.onLineClosed(failure);
    });
    return line;
  }

  /** Takes output; returns whether the console may go on sending. */
  #onOutput(length: number, buffer: Uint8Array): boolean {
    this.bytesOut += length;
    this.#hasMoved = true;
    const bytes = Buffer.from(buffer.buffer, buffer.byteOffset, length);
    this.scrollback.append(bytes);
    const client = this.#client;
    if (!client) {
      this.#buffers.release(buffer, length);
      return !this.#pauseTimer;
    }
    client.send(bytes, () => {
      this.#buffers.release(buffer, length);
      this.#onSent();
    });
    if (client.waiting <= MAX_WAITING_BYTES) return !this.#pauseTimer;
    this.#isLinePaused = true;
    return false;
  }

  readonly #onSent = (): void => {
    if (this.#isLinePaused && (this.#client?.waiting ?? 0) <= MIN_WAITING_BYTES) this.#resumeLine();
  };

  #endPause(): void {
    if (this.#pauseTimer) clearTimeout(this.#pauseTimer);
    this.#pauseTimer = null;
    this.#resumeLine();
  }

  #resumeLine(): void {
    this.#isLinePaused = false;
    if (!this.#pauseTimer) this.#line?.resume();
  }

  #destroyLine(): void {
    const line = this.#line;
    this.#line = null;
    line?.removeAllListeners('data');
    line?.destroy();
  }
}
