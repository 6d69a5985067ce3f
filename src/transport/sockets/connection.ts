import type { Socket } from 'node:net';
import type { Lease, Principal, Revocation } from '../../access/revocation.ts';
import type { Tokens } from '../../access/tokens.ts';
import { hasExpired, identify, refreshViewer, requireSession, type Session, type Viewer } from '../../access/viewer.ts';
import { type Context, createContext } from '../../graph/context.ts';
import type { OnlyProject } from '../../graph/openedprojects.ts';
import type { ConcurrencyLimit } from '../../kernel/concurrencylimit.ts';
import { Fault } from '../../kernel/fault.ts';
import { toFault } from '../../platform/errors.ts';
import type { Logger } from '../../platform/logger.ts';
import type { Metrics } from '../../platform/metrics.ts';
import type { WriteQueue } from '../delivery/queue.ts';
import type { ConnectionBuffers } from '../http/connectionbuffers.ts';
import type { ContextDependencies } from '../http/context.ts';
import { type CloseCode, closeCodes, labelsOfClient, labelsOfServer } from './close.ts';
import { Inbox } from './inbox.ts';
import { KeepAlive } from './keepalive.ts';
import type { OpenConnections } from './openconnections.ts';
import type { ServerSocket } from './socket.ts';
import type { UserRates } from './userrates.ts';

/** How many replies may wait for a peer that keeps sending and does not read, before it is dropped. Their bytes count as pending. */
const MAX_WAITING_REPLIES = 512;
/** The memory that each reply takes besides its bytes. */
const REPLY_BYTES = 2 * 1024;
const encoder = new TextEncoder();
const emptyBuffer = Buffer.alloc(0);
const noop = () => {};

export interface SocketAccess {
  /** Null when the credential comes with the first message. */
  readonly viewer: Viewer | null;
  /** The only project that the socket may access: that of its ticket or path. Null for no such limit. */
  readonly onlyProject: OnlyProject | null;
}

export interface ConnectionDependencies extends ContextDependencies {
  readonly tokens: Tokens;
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly openConnections: OpenConnections<SocketConnection>;
  /** The open sockets of each user; event streams count too. */
  readonly socketLimit: ConcurrencyLimit;
  /** The rates at which the sockets of each user may send messages. */
  readonly userRates: UserRates;
  /** Bounds the bytes buffered for the peers of an address, and for all peers. */
  readonly buffers: ConnectionBuffers;
}

/** The fields of each log line about a connection. */
export type LogFields = Readonly<Record<string, unknown>> & { readonly request_id: string };

/** A WebSocket whose upgrade was accepted. */
interface OpenedSocket {
  readonly socket: ServerSocket;
  readonly stream: Socket;
  readonly address: string;
  readonly logFields: LogFields;
  readonly access: SocketAccess;
}

/** The protocol on a connection: GraphQL, a plain feed or a console. */
export interface Protocol {
  /** Handles a message; null stands for a binary one. */
  receive(text: string | null): void;
  /** Handles a raw message instead of `receive`, without the rate limits of messages. */
  readonly receiveBytes?: (bytes: Buffer, isBinary: boolean) => void;
  /** Ends all operations. It is called once, when the socket begins to close. */
  stop(): void;
}

/** An open WebSocket: its viewer and lease, its messages and its writes. */
export class SocketConnection implements Principal {
  readonly onlyProject: OnlyProject | null;
  viewer: Viewer | null;
  /** The deliveries that wait for the peer to read; null while there are none. */
  writeQueue: WriteQueue | null = null;
  #protocol: Protocol | null = null;
  #lease: Lease | null = null;
  /** The user whose sockets this one is counted among. */
  #countedUserId: string | null = null;
  /** How this side has closed the socket; null where the peer did, or the connection broke. */
  #closing: { readonly code: number; readonly reason: string } | null = null;
  #waitingReplies = 0;
  readonly #keepAlive = new KeepAlive(this);
  readonly inbox = new Inbox(this);

  /** ws implements the protocol; deliveries bypass it and write frames to the stream. */
  readonly socket: ServerSocket;
  /** The client's address, to which budgets and buffers are charged. */
  readonly address: string;
  readonly logFields: LogFields;
  readonly #stream: Socket;

  constructor(
    { socket, stream, address, logFields, access: { viewer, onlyProject } }: OpenedSocket,
    private readonly dependencies: ConnectionDependencies,
  ) {
    this.socket = socket;
    this.#stream = stream;
    this.address = address;
    this.logFields = logFields;
    this.viewer = viewer;
    this.onlyProject = onlyProject;
    socket.listen(this);
    dependencies.openConnections.add(this);
    if (viewer) this.signIn(viewer);
  }

  /** Sets the handler of incoming messages. */
  setProtocol(protocol: Protocol): void {
    this.#protocol = protocol;
  }

  /** Handles a message. Messages on a socket that is closing are ignored. */
  receive(bytes: Buffer, isBinary: boolean): void {
    if (!this.isOpen) return;
    const protocol = this.#protocol;
    if (protocol?.receiveBytes) protocol.receiveBytes(bytes, isBinary);
    else if (this.#closeUnless(this.inbox.countMessage(bytes.length))) {
      // A message that waits would keep the chunk of up to 64 KiB in memory that it is a view into.
      const text = isBinary ? null : String(bytes);
      this.inbox.handleInTurn(bytes.length, () => this.#protocol?.receive(text));
    }
  }

  /** Ends the lease and all operations of a socket that is no longer open. */
  stop(): void {
    const protocol = this.#protocol;
    this.#protocol = null;
    this.inbox.endWait();
    this.#lease?.stop();
    protocol?.stop();
  }

  /** Releases everything when the network connection is closed. */
  onClosed(receivedCode: number): void {
    // If this side closed the socket, its own code counts: ws reports 1006 when the peer does not answer the close frame.
    const closing = this.#closing;
    const { code, reason } = closing ?? { code: receivedCode, reason: undefined };
    const { openConnections, metrics, socketLimit, userRates } = this.dependencies;
    this.stop();
    openConnections.delete(this);
    if (this.inbox.userRate) userRates.leave(this.inbox.userRate);
    if (this.#countedUserId) socketLimit.delete(this.#countedUserId);
    metrics.socketCloses.inc(closing ? labelsOfServer(closing) : labelsOfClient(receivedCode));
    this.log.info({ code, reason, user_id: this.viewer?.userId }, 'socket closed');
  }

  /** Created on demand, as most connections log little. */
  get log(): Logger {
    return this.dependencies.log.child(this.logFields);
  }

  /** Sets the viewer: the socket counts among theirs, and a lease watches their credential. */
  signIn(viewer: Viewer): void {
    this.viewer = viewer;
    if (!this.isOpen) return;
    this.#countedUserId = viewer.userId;
    this.dependencies.socketLimit.add(viewer.userId);
    this.inbox.userRate = this.dependencies.userRates.join(viewer.userId);
    this.#lease = this.dependencies.watch.add({ principal: this });
  }

  onRevoked(revocation: Revocation): void {
    this.close(closeCodes.forbidden, revocation);
  }

  /**
   * Checks the credential for the next operation, as for an HTTP request, and returns the viewer. Throws
   * `not_authenticated` for a credential that is no longer valid, and closes the socket without waiting for the lease's poll.
   */
  async authorize(): Promise<Viewer> {
    const before = this.viewer;
    if (!before) throw Fault.notAuthenticated();
    try {
      const viewer = await refreshViewer(this.dependencies.database, before);
      if (this.viewer === before) return (this.viewer = viewer);
    } catch (failure) {
      if (this.viewer === before) {
        if (toFault(failure).code === 'not_authenticated') this.onRevoked(hasExpired(before) ? 'credential_expired' : 'access_lost');
        throw failure;
      }
    }
    // The credential has been renewed meanwhile.
    return this.authorize();
  }

  /** Creates the context of one operation, which starts nothing more once the socket is closed. */
  openContext(recordWait?: Context['recordWait']): Context {
    const { database, services, watch } = this.dependencies;
    return createContext({
      database,
      openLogger: () => this.log,
      services,
      viewer: this.viewer,
      onlyProject: this.onlyProject,
      v1Operation: null,
      recordWait,
      renewCredential: (token) => this.#renew(token),
      watchAccess: (project, subscription) => watch.add({ principal: this, project, subscription }),
      requireOpen: () => this.requireOpen(),
      admitAgain: async () => {
        await this.authorize();
        this.requireOpen();
      },
    });
  }

  /** Throws on a closed socket, which would get no response: to be called after every `await`, before new work starts. */
  requireOpen(): void {
    if (!this.isOpen) throw new Fault('not_authenticated', 'The socket is closed.');
  }

  get isOpen(): boolean {
    return this.socket.readyState === this.socket.OPEN;
  }

  /** Resolves when the message is written to the kernel: a peer that does not read makes the sender wait. */
  send(text: string): Promise<void> {
    return new Promise((resolve, reject) => {
      if (!this.isOpen) return resolve();
      const release = this.#reserveReply();
      // The stream would count the characters of a string, of which each may take three bytes.
      this.socket.send(encoder.encode(text), { binary: false }, (failure) => {
        release();
        if (failure) reject(failure);
        else resolve();
      });
      this.recordBuffered();
    });
  }

  /** The key of the permits that operations run with: the user, or the client address before the user is known. */
  get permitKey(): string {
    return this.viewer?.userId ?? this.address;
  }

  /**
   * Answers a ping with a copy of its payload, which is a view into a chunk of up to 64 KiB, and would keep that in memory. The pings of a
   * console are few, and do not wait: its input has a pace of its own.
   */
  receivePing(payload: Buffer): void {
    if (!this.isOpen || !this.#closeUnless(this.inbox.countControl())) return;
    const answer = new Uint8Array(payload);
    const pong = () => this.socket.pong(answer, false, this.#reserveReply());
    if (this.#protocol?.receiveBytes) this.handle(pong);
    else this.inbox.handleInTurn(answer.length, pong);
  }

  /** Counts memory that is held for the peer besides the bytes that wait for it; a negative number releases it. */
  reserve(bytes: number): void {
    this.dependencies.buffers.reserve(this.#stream, this.address, bytes);
  }

  /** Counts the memory of a message that is about to be sent, if others wait before it; returns the function that releases it. */
  #reserveReply(): () => void {
    if (!this.hasPendingBytes) return noop;
    const count = (replies: number) => {
      this.#waitingReplies += replies;
      this.reserve(replies * REPLY_BYTES);
    };
    count(1);
    return () => count(-1);
  }

  /**
   * Writes whole frames on an open socket. Without compression ws buffers nothing itself, so its own messages and these frames
   * are sent in the order of the calls. Returns whether the kernel has accepted all pending bytes.
   */
  write(frames: Buffer): boolean {
    this.#stream.write(frames);
    this.recordBuffered();
    return !this.hasPendingBytes;
  }

  /** To be called after each write. */
  recordBuffered(): void {
    if (this.hasPendingBytes) this.dependencies.buffers.record(this.#stream, this.address);
  }

  /** Calls back when the bytes pending now are written to the kernel, or have failed to be: the socket closes then. */
  afterWriting(callback: () => void): void {
    this.#stream.write(emptyBuffer, callback);
  }

  /** Whether bytes are pending that the kernel has not accepted. */
  get hasPendingBytes(): boolean {
    return this.#stream.writableLength > 0;
  }

  /** How many bytes have been sent, pending ones included. */
  get bytesWritten(): number {
    return this.#stream.bytesWritten;
  }

  close(code: CloseCode, reason: string): void {
    if (this.isOpen) this.#closing = { code, reason };
    this.socket.close(code, reason);
    this.stop();
  }

  /** Closes the socket of a peer whose message did not come within its rate. Returns whether it is open. */
  #closeUnless(isWithinRate: boolean): boolean {
    if (!isWithinRate) this.close(closeCodes.tooManyMessages, 'too_many_messages');
    return isWithinRate;
  }

  /** A pong that answers no ping counts too: a peer may send as many as it likes. None waits, as the socket of a peer without a pong is dropped. */
  countPong(): void {
    if (!this.#keepAlive.recordPong()) this.#closeUnless(this.inbox.countControl());
  }

  /** Handles a message on an open socket. Drops the connection of a peer that does not read. */
  handle(handle: () => void): void {
    if (!this.isOpen) return;
    if (this.#waitingReplies <= MAX_WAITING_REPLIES) handle();
    else this.socket.terminate();
  }

  /** Called every second. */
  keepAlive(): void {
    if (!this.isOpen) this.stop();
    this.inbox.countIncomplete();
    this.#keepAlive.tick();
  }

  async #renew(token: string): Promise<Session> {
    const session = requireSession(await identify(this.dependencies.database, this.dependencies.tokens, token));
    if (session.userId !== this.viewer?.userId) throw Fault.permissionDenied('The token is of another user.');
    this.viewer = session;
    return session;
  }
}
