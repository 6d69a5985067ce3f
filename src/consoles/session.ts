import type { Socket } from 'node:net';
import type { ConsoleEnd } from '../generated/prisma/enums.ts';
import { Blocks } from './blocks.ts';
import { connectEndpoint, type Endpoint } from './endpoint.ts';
import { Scrollback } from './scrollback.ts';

/** What is kept of the output of a serial console, for whoever comes back. */
export const SCROLLBACK_BYTES = 256 * 1024;
/** What may wait to go out to a client before its console is made to wait, and down to what it must have gone for the console to go on. */
const MAX_WAITING_BYTES = 512 * 1024;
const MIN_WAITING_BYTES = 128 * 1024;
/** What may wait to go out to a console before its client is made to wait. */
const MAX_TYPED_BYTES = 64 * 1024;
/** How long a console may go on speaking when its line is being closed. */
const HANG_UP_MS = 500;
/** For how long a console is kept waiting for a client that is about to be attached. */
const HOLD_MS = 5_000;

/** Why a client is sent away: with its session, or from a session that goes on. */
export type Closing = ConsoleEnd | 'credential_expired' | 'restart';

/** The socket that is attached to a session, as the session needs it. */
export interface ConsoleClient {
  /** Bytes that have not gone out yet. */
  readonly waiting: number;
  send(bytes: Buffer, onSent: () => void): void;
  /** Stops taking input, so that whoever types has to wait; and goes on. */
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

/** How a session goes on that has run elsewhere before. */
export interface Continuation {
  /** Where its output stands. */
  readonly position: number;
  readonly scrollback: Uint8Array;
  readonly bytesIn: number;
  readonly bytesOut: number;
}

/**
 * A running session: one line to a console, and the one client that is attached to it, or nobody. Bytes pass as they
 * are. Whichever side does not take them makes the other one wait.
 */
export class Session {
  readonly facts: SessionFacts;
  readonly scrollback: Scrollback;
  bytesIn: number;
  bytesOut: number;
  /** Since when nobody is attached, by the process's clock; null while somebody is. */
  detachedAt: number | null = performance.now();
  readonly #onLineOver: (failure: Error | null) => void;
  readonly #blocks = new Blocks();
  #client: ConsoleClient | null = null;
  #line: Socket | null = null;
  #isLineOver = false;
  #isLinePaused = false;
  #hold: NodeJS.Timeout | null = null;
  #hasMoved = true;
  #movedAt = 0;

  /** `onLineOver` is called when the console ends the line by itself, or cannot be reached. */
  constructor(facts: SessionFacts, onLineOver: (failure: Error | null) => void, before?: Continuation) {
    const { position = 0, scrollback = new Uint8Array(), bytesIn = 0, bytesOut = 0 } = before ?? {};
    this.facts = facts;
    this.#onLineOver = onLineOver;
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

  /** The line is over, and whoever comes back gets what is left of it. */
  get isLineOver(): boolean {
    return this.#isLineOver;
  }

  /** For how long nothing has passed, as far as can be told: it is asked at every look. */
  countIdle(): number {
    const now = performance.now();
    if (this.#hasMoved) this.#movedAt = now;
    this.#hasMoved = false;
    return now - this.#movedAt;
  }

  /** Lets nothing more come, so that what is kept stays what it is until a client is attached. */
  hold(): void {
    if (this.#hold) clearTimeout(this.#hold);
    this.#hold = setTimeout(() => this.#release(), HOLD_MS);
    this.#hold.unref();
    this.#line?.pause();
  }

  /** Tells the client what it has missed from a position on, and from then on what comes; whoever was attached has to go. */
  attach(client: ConsoleClient, from: number): void {
    const before = this.#client;
    this.#client = client;
    this.detachedAt = null;
    this.#hasMoved = true;
    before?.close('taken_over');
    // A screen is drawn for one viewer from the beginning on: a new one cannot go on where another left off.
    if (!this.isSerial) this.#dropLine();
    const missed = this.scrollback.readFrom(from);
    if (missed.length > 0) client.send(missed, this.#onSent);
    this.#release();
    if (!this.#isLineOver) this.#line ??= this.#connect();
    client.resume();
  }

  /** What was typed. From a client that is not attached any more it is not taken. */
  receive(client: ConsoleClient, bytes: Buffer): void {
    if (this.#client !== client || !this.#line) return;
    this.bytesIn += bytes.length;
    this.#hasMoved = true;
    if (!this.#line.write(bytes)) client.pause();
  }

  /** The client has gone. A serial console is listened to for as long as the session lives. Whether this client was the one attached. */
  detach(client: ConsoleClient): boolean {
    if (this.#client !== client) return false;
    this.#client = null;
    this.detachedAt = performance.now();
    if (this.isSerial) this.#letGo();
    else this.#dropLine();
    return true;
  }

  /** Ends it here: sends the client away, and hangs up. */
  stop(closing: Closing): void {
    const client = this.#client;
    this.#client = null;
    if (this.#hold) clearTimeout(this.#hold);
    this.#dropLine();
    client?.close(closing);
  }

  /** Sends the client away and hangs up as who has said everything: what the console was saying still comes into the scrollback. */
  async hangUp(closing: Closing): Promise<void> {
    const client = this.#client;
    this.#client = null;
    this.#release();
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
      buffer: () => this.#blocks.take(),
      callback: (length: number, block: Uint8Array) => line.destroyed || this.#hear(length, block),
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
      this.#isLineOver = true;
      this.#onLineOver(failure);
    });
    return line;
  }

  /** Whether the console may go on speaking. */
  #hear(length: number, block: Uint8Array): boolean {
    this.bytesOut += length;
    this.#hasMoved = true;
    const bytes = Buffer.from(block.buffer, block.byteOffset, length);
    this.scrollback.append(bytes);
    const client = this.#client;
    if (!client) {
      this.#blocks.giveBack(block, length);
      return !this.#hold;
    }
    client.send(bytes, () => {
      this.#blocks.giveBack(block, length);
      this.#onSent();
    });
    if (client.waiting <= MAX_WAITING_BYTES) return !this.#hold;
    this.#isLinePaused = true;
    return false;
  }

  readonly #onSent = (): void => {
    if (this.#isLinePaused && (this.#client?.waiting ?? 0) <= MIN_WAITING_BYTES) this.#letGo();
  };

  #release(): void {
    if (this.#hold) clearTimeout(this.#hold);
    this.#hold = null;
    this.#letGo();
  }

  #letGo(): void {
    this.#isLinePaused = false;
    if (!this.#hold) this.#line?.resume();
  }

  #dropLine(): void {
    const line = this.#line;
    this.#line = null;
    line?.removeAllListeners('data');
    line?.destroy();
  }
}
