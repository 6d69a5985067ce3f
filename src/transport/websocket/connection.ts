import type { Duplex } from 'node:stream';
import { type RawData, WebSocket } from 'ws';
import type { Tokens } from '../../access/tokens.ts';
import { identify, requireSession, type Session, type Viewer } from '../../access/viewer.ts';
import type { Holder, Watched } from '../../access/watch.ts';
import { type Context, createContext } from '../../graph/context.ts';
import { Fault } from '../../kernel/fault.ts';
import type { Log } from '../../platform/log.ts';
import type { Metrics } from '../../platform/metrics.ts';
import type { ContextParts } from '../context.ts';
import { type CloseCode, closeCodes, knownCodes } from './close.ts';
import type { KeepAlive } from './keepalive.ts';

const PING_INTERVAL_S = 15;
/** How many pings may go unanswered while the peer does not read: the ping itself then waits behind what it has not read. */
const MAX_UNREAD_PINGS = 20;
/** Each message takes up so much of a peer's time, of which it may be ahead by so much: 50 a second, and 200 at once. */
const MESSAGE_MS = 20;
const BURST_MS = 4_000;
/** What may wait to be sent before the peer counts as gone: pongs and errors to somebody who does not read. */
const MAX_BUFFERED_BYTES = 1024 * 1024;
const nothing = Buffer.alloc(0);

export interface Admission {
  /** Null: the credential comes with the first message. */
  readonly viewer: Viewer | null;
  /** Set by a ticket: the one project that the socket reaches. */
  readonly onlyProject: { readonly organizationId: string; readonly projectId: string } | null;
}

export interface ConnectionParts extends ContextParts {
  readonly tokens: Tokens;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly keepAlive: KeepAlive<Connection>;
}

/** What the log says with each line about a connection. */
export type LogNames = Readonly<Record<string, unknown>>;

/** What is spoken on a connection. */
export interface Protocol {
  /** Takes a message; null: one that is no text. */
  receive(text: string | null): void;
  /** Takes a message as it is, however many come, in the place of `receive`. */
  readonly receiveBytes?: (bytes: Buffer, isBinary: boolean) => void;
  /** Called when the connection has closed. */
  finish(): void;
}

/**
 * A WebSocket that knows its connection, so that the same listeners serve all: of many idle ones, what each has for itself
 * is what counts.
 */
export class Peer extends WebSocket {
  connection: Connection | null = null;

  listen(connection: Connection): void {
    this.connection = connection;
    this.on('error', onError).on('ping', onPing).on('pong', onPong).on('message', onMessage).on('close', onClose);
  }
}

const connectionOf = (socket: WebSocket) => (socket as Peer).connection;

/** ws closes a broken connection by itself; without a listener the error would end the process. */
function onError(this: WebSocket, failure: Error): void {
  connectionOf(this)?.log.debug({ err: failure }, 'socket');
}

function onPing(this: WebSocket): void {
  connectionOf(this)?.countMessage();
}

function onPong(this: WebSocket): void {
  connectionOf(this)?.countPong();
}

function onMessage(this: WebSocket, data: RawData, isBinary: boolean): void {
  connectionOf(this)?.receive(data as Buffer, isBinary);
}

function onClose(this: WebSocket, code: number): void {
  connectionOf(this)?.finish(code);
}

/** An upgraded connection: ws speaks its protocol, and what is sent to many goes by the stream below it. */
export interface Upgraded {
  readonly peer: Peer;
  readonly stream: Duplex;
  readonly names: LogNames;
}

/** One open WebSocket: who holds it, how long it may stay, and how fast it may talk. */
export class Connection implements Holder {
  readonly socket: Peer;
  readonly onlyProject: Admission['onlyProject'];
  viewer: Viewer | null;
  readonly #stream: Duplex;
  readonly #names: LogNames;
  readonly #parts: ConnectionParts;
  #protocol: Protocol | null = null;
  #watched: Watched | null = null;
  #sweeps = 0;
  #unansweredPings = 0;
  /** Up to when the peer's time is taken up, in whole milliseconds of `performance.now()`. */
  #busyUntil = 0;

  constructor({ peer, stream, names }: Upgraded, parts: ConnectionParts, { viewer, onlyProject }: Admission) {
    this.socket = peer;
    this.viewer = viewer;
    this.onlyProject = onlyProject;
    this.#stream = stream;
    this.#names = names;
    this.#parts = parts;
    peer.listen(this);
    parts.keepAlive.add(this);
    if (viewer) this.watch();
  }

  /** From here on the protocol has the messages. */
  speak(protocol: Protocol): void {
    this.#protocol = protocol;
  }

  receive(bytes: Buffer, isBinary: boolean): void {
    const protocol = this.#protocol;
    if (protocol?.receiveBytes) protocol.receiveBytes(bytes, isBinary);
    else if (this.countMessage()) protocol?.receive(isBinary ? null : String(bytes));
  }

  finish(code: number): void {
    const { keepAlive, metrics } = this.#parts;
    keepAlive.delete(this);
    this.#watched?.stop();
    this.#protocol?.finish();
    metrics.socketCloses.inc({ code: knownCodes.has(code) ? code : 'other' });
    this.log.info({ code, user_id: this.viewer?.userId }, 'socket closed');
  }

  /** Made when it is needed: most connections have little to say. */
  get log(): Log {
    return this.#parts.log.child(this.#names);
  }

  /** Watches the credential itself, whether or not anything is subscribed. */
  watch(): void {
    if (this.isOpen) this.#watched = this.#parts.watch.add(this);
  }

  onLost(fault: Fault): void {
    this.close(closeCodes.comeBackWithFreshCredential, fault.message);
  }

  /** The context of one operation. */
  openContext(): Context {
    const { database, services, watch } = this.#parts;
    return createContext({
      database,
      openLog: () => this.log,
      services,
      viewer: this.viewer,
      onlyProject: this.onlyProject,
      renewCredential: (token) => this.#renew(token),
      watchAccess: (project, shown) => watch.add(this, project, shown),
    });
  }

  get isOpen(): boolean {
    return this.socket.readyState === this.socket.OPEN;
  }

  /** Resolves when the message has gone to the kernel: a peer that does not read makes the sender wait. */
  send(text: string): Promise<void> {
    return new Promise((resolve, reject) => {
      if (!this.isOpen) return resolve();
      this.socket.send(text, (failure) => (failure ? reject(failure) : resolve()));
    });
  }

  /**
   * Writes whole frames on an open socket. Without compression ws itself holds nothing back: what it sends and what is
   * written here come in the order of the calls. Returns whether the kernel has taken all that was to be sent.
   */
  write(frames: Buffer): boolean {
    this.#stream.write(frames);
    return !this.isWaiting;
  }

  /** Calls back when what waits now has gone to the kernel; or has failed to, as the socket then closes. */
  afterWriting(callBack: () => void): void {
    this.#stream.write(nothing, callBack);
  }

  /** Whether something waits for the peer to read. */
  get isWaiting(): boolean {
    return this.#stream.writableLength > 0;
  }

  close(code: CloseCode, reason: string): void {
    this.socket.close(code, reason);
  }

  /** Whether one more message may come in; closes the socket of a peer that talks too fast, or reads nothing. */
  countMessage(): boolean {
    const now = Math.round(performance.now());
    this.#busyUntil = Math.max(this.#busyUntil, now) + MESSAGE_MS;
    if (this.socket.bufferedAmount > MAX_BUFFERED_BYTES) this.socket.terminate();
    else if (this.#busyUntil > now + BURST_MS) this.close(closeCodes.tooManyMessages, 'too_many_messages');
    else return true;
    return false;
  }

  /** Whatever the last ping asked has been answered. */
  countPong(): void {
    this.#unansweredPings = 0;
  }

  /** Called every second: pings the peer where it is time, and drops one that has not answered. */
  keepAlive(): void {
    this.#sweeps = (this.#sweeps + 1) % PING_INTERVAL_S;
    if (this.#sweeps > 0) return;
    // Nothing is heard of a peer that is not listened to.
    if (this.socket.isPaused) {
      this.#unansweredPings = 0;
      return;
    }
    const isReading = this.socket.bufferedAmount === 0;
    // It has just read what had been waiting: its answer is on the way.
    if (isReading && this.#unansweredPings > 1) this.#unansweredPings = 0;
    if (this.#unansweredPings > (isReading ? 0 : MAX_UNREAD_PINGS)) return this.socket.terminate();
    // One ping is enough in the queue of a peer that does not read.
    if (this.#unansweredPings === 0) this.socket.ping();
    this.#unansweredPings += 1;
  }

  async #renew(token: string): Promise<Session> {
    const session = requireSession(await identify(this.#parts.database, this.#parts.tokens, token));
    if (session.userId !== this.viewer?.userId) throw Fault.permissionDenied('The token is of another user.');
    this.viewer = session;
    return session;
  }
}
