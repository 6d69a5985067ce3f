import type { Socket } from 'node:net';
import type { Closing, ConsoleClient } from '../graph/console.ts';
import { BufferPool } from './buffers.ts';
import { connectEndpoint, type Endpoint } from './endpoint.ts';
import { Scrollback } from './scrollback.ts';
import type { Handover } from './store.ts';

/** The output of a serial console that is stored for a client that reconnects. */
const SCROLLBACK_BYTES = 256 * 1024;
/**
 * How long a console without a client waits after each read of its output, which is up to 64 KiB. Nobody will see most of it, and output
 * without an end would otherwise occupy a core.
 */
const DETACHED_READ_INTERVAL_MS = 100;
/** The bytes of pings and pongs that may still wait for a client when the output before them has been sent. */
const CONTROL_BYTES = 4 * 1024;
/** How long a console may still send after its line is half-closed, or read after it has half-closed its side. */
const HANG_UP_MS = 500;
/** How long the output of a console is paused for a client that is about to be attached. */
const MAX_PAUSE_MS = 5_000;

export interface SessionIdentity {
  readonly id: string;
  readonly projectId: string;
  readonly instanceId: string;
  readonly userId: string;
  readonly endpoint: Endpoint;
}

/** The state of a session that has run in another process before. */
export interface Continuation extends Handover {
  readonly bytesIn: number;
  readonly bytesOut: number;
}

/**
 * A running session: one line (the connection to a console), and at most one attached client. Bytes pass unchanged, with backpressure in
 * both directions: neither side is read while what it sent before waits for the other. The buffers of the kernels suffice for a stream;
 * here, a waiting byte would keep the whole buffer into which it was read.
 */
export class LiveSession {
  readonly scrollback: Scrollback;
  bytesIn: number;
  bytesOut: number;
  /** When the last client detached, in milliseconds of `performance.now()`; null while a client is attached. */
  detachedAt: number | null = performance.now();
  readonly #buffers = new BufferPool();
  #client: ConsoleClient | null = null;
  #line: Socket | null = null;
  /** The frames that are about to be written to the line. */
  #input: Buffer[] = [];
  #isLineClosed = false;
  /** Whether the line, or the client, is paused for the other's sake. */
  #isLinePaused = false;
  #isClientPaused = false;
  /** Set while a line without a client is paused between two reads. */
  #readTimer: NodeJS.Timeout | null = null;
  /** The timers of the pauses for clients that are about to be attached. */
  readonly #pauses = new Set<NodeJS.Timeout>();
  #hasTraffic = true;
  #lastTrafficAt = 0;

  /** `onLineClosed` runs when the console closes the line or cannot be reached; `failure` is null after a clean close. */
  constructor(
    readonly identity: SessionIdentity,
    private readonly onLineClosed: (failure: Error | null) => void,
    continuation?: Continuation,
  ) {
    const { position = 0, scrollback = new Uint8Array(), bytesIn = 0, bytesOut = 0 } = continuation ?? {};
    this.scrollback = new Scrollback(this.isSerial ? SCROLLBACK_BYTES : 0, position - scrollback.length);
    this.scrollback.append(scrollback);
    this.bytesIn = bytesIn;
    this.bytesOut = bytesOut;
  }

  get isSerial(): boolean {
    return this.identity.endpoint.kind === 'serial';
  }

  get client(): ConsoleClient | null {
    return this.#client;
  }

  /** Whether the console has closed the line: a client that reconnects still gets the rest of the output. */
  get isLineClosed(): boolean {
    return this.#isLineClosed;
  }

  /** The milliseconds without traffic. It is called at every poll, and is as accurate as the poll's interval. */
  measureIdle(): number {
    const now = performance.now();
    if (this.#hasTraffic) this.#lastTrafficAt = now;
    this.#hasTraffic = false;
    return now - this.#lastTrafficAt;
  }

  /**
   * Pauses the output, so that the scrollback does not change until a client is attached. Returns a function that ends this pause: the
   * client has been attached, or will not be.
   */
  pauseUntilAttached(): () => void {
    const end = () => {
      clearTimeout(timer);
      this.#pauses.delete(timer);
      if (!this.#isLinePaused) this.#resumeLine();
    };
    const timer = setTimeout(end, MAX_PAUSE_MS).unref();
    this.#pauses.add(timer);
    this.#line?.pause();
    return end;
  }

  #endPauses(): void {
    for (const timer of this.#pauses) clearTimeout(timer);
    this.#pauses.clear();
  }

  /** Sends the client the stored output from a position on, then live output; closes the client that was attached before. */
  attach(client: ConsoleClient, from: number): void {
    const previous = this.#client;
    this.#client = client;
    this.detachedAt = null;
    this.#hasTraffic = true;
    previous?.close('taken_over');
    // A screen is drawn for one viewer from the beginning: a second viewer cannot continue the stream of the first.
    if (!this.isSerial) this.#destroyLine();
    const missed = this.scrollback.readFrom(from);
    if (missed.length > 0) client.send(missed, this.#onSent);
    this.#isLinePaused = client.bufferedAmount > 0;
    if (!this.#isLineClosed) this.#line ??= this.#connect();
    // Input of the previous client may still be pending.
    this.#isClientPaused = Boolean(this.#line?.writableLength);
    if (!this.#isClientPaused) client.resume();
  }

  /**
   * Sends a client's input to the console. Input from a client that is no longer attached is ignored. The frames of one read are
   * written as one: ten thousand of a byte, or empty ones, would each take a write, and memory that no backpressure counts.
   */
  receive(client: ConsoleClient, bytes: Buffer): void {
    if (this.#client !== client || !this.#line || bytes.length === 0) return;
    this.bytesIn += bytes.length;
    this.#hasTraffic = true;
    if (this.#input.push(bytes) === 1) process.nextTick(this.#writeInput);
  }

  readonly #writeInput = (): void => {
    const input = this.#input;
    const [first] = input;
    if (!first) return;
    this.#input = [];
    const line = this.#line;
    line?.write(input.length > 1 ? Buffer.concat(input) : first, this.#onInputWritten);
    if (!line || line.writableLength === 0) return;
    this.#isClientPaused = true;
    this.#client?.pause();
  };

  readonly #onInputWritten = (): void => {
    if (!this.#isClientPaused || this.#line?.writableLength) return;
    this.#isClientPaused = false;
    this.#client?.resume();
  };

  /** Detaches a client; returns whether it was attached. The line of a serial console stays open until the session ends. */
  detach(client: ConsoleClient): boolean {
    if (this.#client !== client) return false;
    this.#client = null;
    this.detachedAt = performance.now();
    if (this.isSerial) this.#resumeLine();
    else this.#destroyLine();
    return true;
  }

  /** Closes the client and the line. */
  stop(closing: Closing): void {
    const client = this.#client;
    this.#client = null;
    this.#endPauses();
    this.#destroyLine();
    client?.close(closing);
  }

  /** Closes the client and half-closes the line. Resolves when it is closed, with the console's last output in the scrollback. */
  async hangUp(closing: Closing): Promise<void> {
    const client = this.#client;
    this.#client = null;
    this.#endPauses();
    this.#resumeLine();
    client?.close(closing);
    this.#writeInput();
    const line = this.#line;
    if (!line) return;
    this.#line = null;
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
    const line: Socket = connectEndpoint(this.identity.endpoint, reader);
    let failure: Error | null = null;
    line.on('error', (error) => {
      failure = error;
    });
    // A console that sends nothing more may still read pending input.
    line.on('end', () => setTimeout(() => line.destroy(), HANG_UP_MS).unref());
    line.on('close', () => {
      // The session has closed this line itself.
      if (this.#line !== line) return;
      this.#line = null;
      this.#isLineClosed = true;
      this.onLineClosed(failure);
    });
    return line;
  }

  /** Stores output and sends it to the client; returns false to pause the line. */
  #onOutput(length: number, buffer: Uint8Array): boolean {
    this.bytesOut += length;
    this.#hasTraffic = true;
    const bytes = Buffer.from(buffer.buffer, buffer.byteOffset, length);
    this.scrollback.append(bytes);
    const client = this.#client;
    if (!client) {
      this.#buffers.release(buffer, length);
      // The line is about to be closed.
      if (!this.#line) return true;
      this.#readTimer ??= setTimeout(() => this.#resumeLine(), DETACHED_READ_INTERVAL_MS);
      return false;
    }
    client.send(bytes, () => {
      this.#buffers.release(buffer, length);
      this.#onSent();
    });
    this.#isLinePaused = client.bufferedAmount > 0;
    if (this.#isLinePaused || this.#pauses.size > 0) return false;
    // A read that fills its buffer may be one of many, and others have their turn in between.
    if (length < buffer.length) return true;
    setImmediate(this.#continue);
    return false;
  }

  readonly #continue = (): void => {
    if (!this.#isLinePaused && !this.#readTimer) this.#resumeLine();
  };

  readonly #onSent = (): void => {
    if (this.#isLinePaused && (this.#client?.bufferedAmount ?? 0) <= CONTROL_BYTES) this.#resumeLine();
  };

  #resumeLine(): void {
    if (this.#readTimer) clearTimeout(this.#readTimer);
    this.#readTimer = null;
    this.#isLinePaused = false;
    if (this.#pauses.size === 0) this.#line?.resume();
  }

  #destroyLine(): void {
    if (this.#readTimer) clearTimeout(this.#readTimer);
    this.#readTimer = null;
    this.#writeInput();
    const line = this.#line;
    this.#line = null;
    line?.destroy();
  }
}
