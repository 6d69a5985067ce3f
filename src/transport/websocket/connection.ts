import type { WebSocket } from 'ws';
import type { Tokens } from '../../access/tokens.ts';
import { identify, requireSession, type Session, type Viewer } from '../../access/viewer.ts';
import { type Context, createContext } from '../../graph/context.ts';
import { Fault } from '../../kernel/fault.ts';
import type { Log } from '../../platform/log.ts';
import type { ContextParts } from '../context.ts';
import { type CloseCode, closeCodes } from './close.ts';

const PING_INTERVAL_MS = 15_000;
/** How many pings may go unanswered while the peer does not read: the ping itself then waits behind what it has not read. */
const MAX_UNREAD_PINGS = 20;
const MESSAGES_PER_SECOND = 50;
const MESSAGE_BURST = 200;
/** What may wait to be sent before the peer counts as gone: pongs and errors to somebody who does not read. */
const MAX_BUFFERED_BYTES = 1024 * 1024;

export interface Admission {
  /** Null: the credential comes with the first message. */
  readonly viewer: Viewer | null;
  /** Set by a ticket: the one project that the socket reaches. */
  readonly onlyProject: { readonly organizationId: string; readonly projectId: string } | null;
}

export interface ConnectionParts extends ContextParts {
  readonly tokens: Tokens;
}

/** One open WebSocket: who holds it, how long it may stay, and how fast it may talk. */
export class Connection {
  readonly socket: WebSocket;
  readonly log: Log;
  readonly onlyProject: Admission['onlyProject'];
  viewer: Viewer | null;
  readonly #parts: ConnectionParts;
  readonly #stops: Array<() => void> = [];
  #unansweredPings = 0;
  #allowance = MESSAGE_BURST;
  #allowedAt = Date.now();

  constructor(socket: WebSocket, parts: ConnectionParts, log: Log, { viewer, onlyProject }: Admission) {
    this.socket = socket;
    this.log = log;
    this.viewer = viewer;
    this.onlyProject = onlyProject;
    this.#parts = parts;
    // ws closes a broken connection by itself; without a listener the error would end the process.
    socket.on('error', (failure) => log.debug({ err: failure }, 'socket'));
    socket.on('pong', () => {
      this.#unansweredPings = 0;
    });
    socket.on('ping', () => this.countMessage());
    socket.on('close', () => {
      for (const stop of this.#stops) stop();
    });
    this.#keepAlive();
    if (viewer) this.watch();
  }

  /** Watches the credential itself, whether or not anything is subscribed. */
  watch(): void {
    const stop = this.#parts.watch.add({ viewer: () => this.#requireViewer(), project: null, onLost: (fault) => this.#lose(fault) });
    this.#stops.push(stop);
  }

  /** The context of one operation. */
  openContext(): Context {
    const { database, services, watch } = this.#parts;
    return createContext({
      database,
      log: this.log,
      services,
      viewer: this.viewer,
      isClientDocument: true,
      onlyProject: this.onlyProject,
      renewCredential: (token) => this.#renew(token),
      watchAccess: (project, onLost) =>
        watch.add({
          viewer: () => this.#requireViewer(),
          project,
          onLost: (fault) => {
            this.#lose(fault);
            onLost(fault);
          },
        }),
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

  close(code: CloseCode, reason: string): void {
    this.socket.close(code, reason);
  }

  /** Whether one more message may come in; closes the socket of a peer that talks too fast, or reads nothing. */
  countMessage(): boolean {
    const now = Date.now();
    this.#allowance = Math.min(MESSAGE_BURST, this.#allowance + ((now - this.#allowedAt) / 1000) * MESSAGES_PER_SECOND) - 1;
    this.#allowedAt = now;
    if (this.socket.bufferedAmount > MAX_BUFFERED_BYTES) this.socket.terminate();
    else if (this.#allowance < 0) this.close(closeCodes.tooManyMessages, 'too_many_messages');
    else return true;
    return false;
  }

  async #renew(token: string): Promise<Session> {
    const session = requireSession(await identify(this.#parts.database, this.#parts.tokens, token));
    if (session.userId !== this.#requireViewer().userId) throw Fault.permissionDenied('The token is of another user.');
    this.viewer = session;
    return session;
  }

  #requireViewer(): Viewer {
    if (!this.viewer) throw Fault.notAuthenticated();
    return this.viewer;
  }

  #lose(fault: Fault): void {
    this.close(closeCodes.comeBackWithFreshCredential, fault.message);
  }

  #keepAlive(): void {
    const timer = setInterval(() => {
      const isReading = this.socket.bufferedAmount === 0;
      // It has just read what had been waiting: its answer is on the way.
      if (isReading && this.#unansweredPings > 1) this.#unansweredPings = 0;
      if (this.#unansweredPings > (isReading ? 0 : MAX_UNREAD_PINGS)) return this.socket.terminate();
      // One ping is enough in the queue of a peer that does not read.
      if (this.#unansweredPings === 0) this.socket.ping();
      this.#unansweredPings += 1;
    }, PING_INTERVAL_MS);
    this.#stops.push(() => clearInterval(timer));
  }
}
