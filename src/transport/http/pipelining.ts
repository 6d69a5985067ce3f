import { IncomingMessage, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { runInTurn } from '../../kernel/turns.ts';

/** How many pipelined requests wait for a connection at most. */
const MAX_WAITING = 1_000;
/** The memory that Node needs for a request beside its text. */
const REQUEST_BYTES = 4_096;

/**
 * The class of all requests. Node destroys those of a connection that has gone, hundreds at once where they were pipelined,
 * each with a stack trace: of one that has not started nobody needs to hear.
 */
export class QueuedRequest extends IncomingMessage {
  #isWaiting = false;

  /** Of a request that the server has made. */
  static setWaiting(request: IncomingMessage, isWaiting: boolean): void {
    (request as QueuedRequest).#isWaiting = isWaiting;
  }

  override destroy(failure?: Error): this {
    return this.#isWaiting ? this : super.destroy(failure);
  }
}

/** A request that starts when all that came before it on the connection have been answered. */
interface Pending {
  readonly request: IncomingMessage;
  readonly bytes: number;
  readonly start: () => void;
  /** Whether more requests may be read from the connection when this one starts. */
  readonly isRequest: boolean;
}

/** The pipelined requests of one connection (RFC 9112, §9.3.2): one is being answered, and the others wait in their order. */
export class RequestQueue {
  #current: IncomingMessage | null = null;
  #pending: Pending[] | null = null;

  constructor(
    private readonly socket: Socket,
    /** Whether the peer is a proxy, which forwards requests of many clients. */
    readonly isProxied: boolean,
    /** Counts the bytes that are held for a request; a negative number gives them back. */
    readonly hold: (request: IncomingMessage, bytes: number) => void,
  ) {}

  /** The newest request, of the current one and those that wait. */
  get last(): IncomingMessage | null {
    return this.#pending?.at(-1)?.request ?? this.#current;
  }

  /** Whether no request is being answered. */
  get isIdle(): boolean {
    return this.#current === null;
  }

  /** Starts a request, which is current until its response is closed. */
  start(request: IncomingMessage, response: ServerResponse): void {
    this.#current = request;
    response.on('close', finishRequest);
  }

  /** Queues a request. The first for which there is no room is refused in its turn, which ends the connection. */
  enqueue(request: IncomingMessage, start: () => void, refuse: () => void): void {
    QueuedRequest.setWaiting(request, true);
    // Nothing more is read until the queue is empty.
    this.socket.pause();
    const isFull = this.#count >= MAX_WAITING;
    if (this.#count > MAX_WAITING) this.hold(request, sizeOf(request));
    else this.#add(request, isFull ? refuse : start, true);
  }

  /** Queues what ends the reading of requests: an upgrade, or bytes that are no request. */
  enqueueLast(request: IncomingMessage, start: () => void): void {
    this.#add(request, start, false);
  }

  /** Puts something else in the place of the newest request, which cannot be read to its end; returns whether that one waits. */
  replaceLast(start: () => void): boolean {
    const last = this.#pending?.pop();
    if (!last) return false;
    this.hold(last.request, -last.bytes);
    this.enqueueLast(last.request, start);
    return true;
  }

  /** Finishes the current request, and starts the next one. */
  finish(): void {
    this.#current = null;
    const next = this.#pending?.shift();
    if (!next) return;
    const { request, bytes, start, isRequest } = next;
    this.hold(request, -bytes);
    this.#current = request;
    if (this.#count === 0 && isRequest) this.socket.resume();
    runInTurn(() => {
      this.#current = null;
      if (!this.socket.writable) return;
      QueuedRequest.setWaiting(request, false);
      start();
    });
  }

  get #count(): number {
    return this.#pending?.length ?? 0;
  }

  #add(request: IncomingMessage, start: () => void, isRequest: boolean): void {
    const bytes = sizeOf(request);
    this.#pending ??= [];
    this.#pending.push({ request, bytes, start, isRequest });
    this.hold(request, bytes);
  }
}

function sizeOf({ rawHeaders, url = '' }: IncomingMessage): number {
  return rawHeaders.reduce((size, text) => size + text.length, REQUEST_BYTES + url.length);
}

/** The queue is kept on the socket itself: a WeakMap costs V8 more the more connections there are. */
const key = Symbol('requests');
type Opened = Socket & { [key]?: RequestQueue };

export function attachRequestQueue(socket: Socket, queue: RequestQueue): void {
  (socket as Opened)[key] = queue;
}

/** Null for a connection that was refused. */
export function requestQueueOf(socket: Socket): RequestQueue | null {
  return (socket as Opened)[key] ?? null;
}

function finishRequest(this: ServerResponse): void {
  requestQueueOf(this.req.socket)?.finish();
}
