import type { Socket } from 'node:net';
import type { Tokens } from '../../access/tokens.ts';
import { hasExpired, identify, refreshViewer, requireSession, type Session, type Viewer } from '../../access/viewer.ts';
import type { Lease, Principal } from '../../access/watch.ts';
import { type Context, createContext } from '../../graph/context.ts';
import { Fault } from '../../kernel/fault.ts';
import { toFault } from '../../platform/errors.ts';
import type { Logger } from '../../platform/logger.ts';
import type { Metrics } from '../../platform/metrics.ts';
import type { WriteQueue } from '../delivery/queue.ts';
import type { Backlog } from '../http/backlog.ts';
import type { ConcurrencyLimit } from '../http/concurrency.ts';
import type { ContextParts } from '../http/context.ts';
import { type CloseCode, closeCodes, knownCodes } from './close.ts';
import type { KeepAlive } from './keepalive.ts';
import type { Peer } from './socket.ts';

const PING_INTERVAL_S = 15;
/** How many pings may go unanswered while the peer does not read: the ping itself then waits behind what it has not read. */
const MAX_UNREAD_PINGS = 20;
/** The rate limit of messages: 50 a second, in bursts of up to 200. */
const MESSAGE_MS = 20;
const BURST_MS = 4_000;
/** A half-closed connection, of which ws does not time the closing, is dropped after so many seconds. */
const CLOSING_SWEEPS = 2;
/** The bytes of pongs and errors that may wait for a peer that does not read, before it counts as gone. */
const MAX_BUFFERED_BYTES = 1024 * 1024;
const nothing = Buffer.alloc(0);

export interface Grant {
  /** Null: the credential comes with the first message. */
  readonly viewer: Viewer | null;
  /** Set by a ticket: the one project that the socket reaches. */
  readonly onlyProject: { readonly organizationId: string; readonly projectId: string } | null;
}

export interface ConnectionParts extends ContextParts {
  readonly tokens: Tokens;
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly keepAlive: KeepAlive<SocketConnection>;
  readonly quota: ConcurrencyLimit;
  /** Bounds what waits for the peers of an address, and for all. */
  readonly backlog: Backlog;
}

/** The fields of each log line about a connection. */
export type LogNames = Readonly<Record<string, unknown>>;

/** The protocol of a connection: GraphQL, a plain feed or a console. */
export interface Protocol {
  /** Takes a message; null: one that is no text. */
  receive(text: string | null): void;
  /** Takes a message as it is, however many come, in the place of `receive`. */
  readonly receiveBytes?: (bytes: Buffer, isBinary: boolean) => void;
  /** Ends what is under way: called once, when the socket begins to close. */
  finish(): void;
}

/** One open WebSocket: its viewer and lease, the rate of its messages, and what it writes. */
export class SocketConnection implements Principal {
  readonly onlyProject: Grant['onlyProject'];
  viewer: Viewer | null;
  /** The deliveries that wait for the peer to read; null while none does. */
  writeQueue: WriteQueue | null = null;
  #protocol: Protocol | null = null;
  #lease: Lease | null = null;
  /** The user in whose quota the socket is counted. */
  #countedFor: string | null = null;
  #sweeps = 0;
  #closingSweeps = 0;
  #unansweredPings = 0;
  /** The end of the time that the messages so far are worth, in whole milliseconds of `performance.now()`. */
  #busyUntil = 0;

  constructor(
    /** ws speaks the protocol; what is sent to many goes by the stream below it. */
    readonly socket: Peer,
    private readonly stream: Socket,
    /** The address of the client, for budgets and bounds. */
    readonly address: string,
    private readonly names: LogNames,
    private readonly parts: ConnectionParts,
    { viewer, onlyProject }: Grant,
  ) {
    this.viewer = viewer;
    this.onlyProject = onlyProject;
    socket.listen(this);
    parts.keepAlive.add(this);
    if (viewer) this.signIn(viewer);
  }

  /** Hands the messages that come to a protocol. */
  speak(protocol: Protocol): void {
    this.#protocol = protocol;
  }

  /** Takes a message. Messages on a socket that is closing are ignored. */
  receive(bytes: Buffer, isBinary: boolean): void {
    if (!this.isOpen) return;
    const protocol = this.#protocol;
    if (protocol?.receiveBytes) protocol.receiveBytes(bytes, isBinary);
    else if (this.countMessage()) protocol?.receive(isBinary ? null : String(bytes));
  }

  /** Ends all that is under way on a socket that is no longer open. */
  end(): void {
    const protocol = this.#protocol;
    this.#protocol = null;
    this.#lease?.stop();
    protocol?.finish();
  }

  /** The connection below is gone. */
  finish(code: number): void {
    const { keepAlive, metrics, quota } = this.parts;
    this.end();
    keepAlive.delete(this);
    if (this.#countedFor) quota.delete(this.#countedFor);
    metrics.socketCloses.inc({ code: knownCodes.has(code) ? code : 'other' });
    this.log.info({ code, user_id: this.viewer?.userId }, 'socket closed');
  }

  /** Made when it is needed: most connections have little to say. */
  get log(): Logger {
    return this.parts.log.child(this.names);
  }

  /** Makes the socket the viewer's: it counts in their quota, and a lease watches their credential. */
  signIn(viewer: Viewer): void {
    this.viewer = viewer;
    if (!this.isOpen) return;
    this.#countedFor = viewer.userId;
    this.parts.quota.add(viewer.userId);
    this.#lease = this.parts.watch.add(this);
  }

  onRevoked(fault: Fault): void {
    this.close(closeCodes.comeBackWithFreshCredential, fault.message);
  }

  /**
   * The viewer of the next operation, with the credential checked as that of a request is: a credential that is no longer
   * valid closes the socket, without waiting for the next poll of the leases.
   */
  async authorize(): Promise<Viewer> {
    for (;;) {
      const before = this.viewer;
      if (!before) throw Fault.notAuthenticated();
      try {
        const viewer = await refreshViewer(this.parts.database, before);
        // It may have been renewed meanwhile.
        if (this.viewer !== before) continue;
        this.viewer = viewer;
        return viewer;
      } catch (failure) {
        if (this.viewer !== before) continue;
        if (toFault(failure).code === 'not_authenticated')
          this.onRevoked(Fault.notAuthenticated(hasExpired(before) ? 'credential_expired' : 'access_lost'));
        throw failure;
      }
    }
  }

  /** The context of one operation, which begins nothing more when the socket has closed. */
  openContext(): Context {
    const { database, services, watch } = this.parts;
    const context = createContext({
      database,
      openLogger: () => this.log,
      services,
      viewer: this.viewer,
      onlyProject: this.onlyProject,
      route: null,
      renewCredential: (token) => this.#renew(token),
      watchAccess: (project, subscription) => watch.add(this, project, subscription),
    });
    return {
      ...context,
      requireViewer: () => {
        this.requireOpen();
        return context.requireViewer();
      },
      requireSession: () => {
        this.requireOpen();
        return context.requireSession();
      },
      openProject: async (ids) => {
        const scope = await context.openProject(ids);
        this.requireOpen();
        return scope;
      },
    };
  }

  /** Throws on a closed socket, which would get no answer: to be called after every wait, before something begins. */
  requireOpen(): void {
    if (!this.isOpen) throw Fault.notAuthenticated('The socket is closed.');
  }

  get isOpen(): boolean {
    return this.socket.readyState === this.socket.OPEN;
  }

  /** Resolves when the message has gone to the kernel: a peer that does not read makes the sender wait. */
  send(text: string): Promise<void> {
    return new Promise((resolve, reject) => {
      if (!this.isOpen) return resolve();
      this.socket.send(text, (failure) => (failure ? reject(failure) : resolve()));
      this.noteBacklog();
    });
  }

  /**
   * Writes whole frames on an open socket. Without compression ws itself holds nothing back: what it sends and what is
   * written here come in the order of the calls. Returns whether the kernel has taken all that was to be sent.
   */
  write(frames: Buffer): boolean {
    this.stream.write(frames);
    this.noteBacklog();
    return !this.isWaiting;
  }

  /** To be called after each write. */
  noteBacklog(): void {
    if (this.isWaiting) this.parts.backlog.note(this.stream, this.address);
  }

  /** Calls back when what waits now has gone to the kernel; or has failed to, as the socket then closes. */
  afterWriting(callBack: () => void): void {
    this.stream.write(nothing, callBack);
  }

  /** Whether bytes wait for the peer to read. */
  get isWaiting(): boolean {
    return this.stream.writableLength > 0;
  }

  close(code: CloseCode, reason: string): void {
    this.socket.close(code, reason);
    this.end();
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

  /** A pong has answered the last ping. */
  countPong(): void {
    this.#unansweredPings = 0;
  }

  /** Called every second: pings the peer where it is time, and drops one that has not answered. */
  keepAlive(): void {
    if (!this.isOpen) return this.#endClosing();
    this.#sweeps = (this.#sweeps + 1) % PING_INTERVAL_S;
    if (this.#sweeps > 0) return;
    // No pong can arrive from a peer that is not being read.
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

  /** Gives the closing handshake a moment, then drops the connection. */
  #endClosing(): void {
    this.end();
    this.#closingSweeps += 1;
    if (this.#closingSweeps > CLOSING_SWEEPS) this.socket.terminate();
  }

  async #renew(token: string): Promise<Session> {
    const session = requireSession(await identify(this.parts.database, this.parts.tokens, token));
    if (session.userId !== this.viewer?.userId) throw Fault.permissionDenied('The token is of another user.');
    this.viewer = session;
    return session;
  }
}
