import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { statusByCode } from '../../kernel/fault.ts';
import { runInNextIteration } from '../../kernel/iteration.ts';

/**
 * The most pipelined requests that wait on one connection before the parser stops. A read from the network may contain more than a
 * thousand, for each of which Node makes a request and a response of several kilobytes.
 */
const MAX_WAITING = 16;
/**
 * The pause after a response with 429 before the connection's next pipelined request starts. Without it, a client beyond its budget
 * would have a thousand requests refused as fast as this process can. A client that waits for each response does not notice. The
 * pause is longer than a connection may go without progress before it counts as stalled: when memory is short, its
 * connection is ended before those whose clients read.
 */
const REFUSED_PAUSE_MS = 2_000;
/** The memory that Node needs for a request besides its text. */
const REQUEST_BYTES = 4_096;

/** A request with its state in the queue of its connection. */
export interface QueuedRequest extends IncomingMessage {
  isWaiting: boolean;
  /** Whether the parser has stopped at this request although it offers no upgrade. */
  isUnparsed: boolean;
}

/** A request that starts when all earlier ones on the connection have been answered. */
interface Pending {
  readonly request: IncomingMessage;
  readonly bytes: number;
  readonly start: () => void;
  /** Whether more requests may be read from the connection when this one starts. */
  readonly resumesReading: boolean;
}

/** The pipelined requests of one connection (RFC 9112, §9.3.2): one is being answered, and the others wait in their order. */
export class RequestQueue {
  #current: IncomingMessage | null = null;
  /** The last request that was answered, if its body had not arrived. */
  #incomplete: IncomingMessage | null = null;
  #pending: Pending[] | null = null;
  #pause: NodeJS.Timeout | undefined;

  constructor(
    private readonly socket: Socket,
    /** Whether the peer is a proxy, which forwards requests of many clients. */
    readonly isProxied: boolean,
    /** Counts the bytes that a request keeps in memory; a negative number releases them. */
    readonly reserve: (request: IncomingMessage, bytes: number) => void,
  ) {}

  /** The newest request, of the current one and those that wait. */
  get last(): IncomingMessage | null {
    return this.#pending?.at(-1)?.request ?? this.#current;
  }

  /** Whether no request is being answered. */
  get isIdle(): boolean {
    return this.#current === null;
  }

  /** Whether no more requests may wait. */
  get isFull(): boolean {
    return this.#count >= MAX_WAITING;
  }

  /** Whether what arrives is still the body of a request that has been answered. */
  get isBodyOfAnswered(): boolean {
    return this.isIdle && this.#incomplete !== null && !this.#incomplete.complete;
  }

  /** Starts a request, which is current until its response is closed. */
  start(request: IncomingMessage, response: ServerResponse): void {
    this.#current = request;
    response.on('close', finishRequest);
  }

  /** Queues a request. */
  enqueue(request: IncomingMessage, start: () => void): void {
    (request as QueuedRequest).isWaiting = true;
    // The request's body is not read until the request starts. Node continues to read after a request without one: what waits is counted.
    this.socket.pause();
    this.#add(request, sizeOf(request), start, true);
  }

  /**
   * Queues what ends the reading of requests, an upgrade or malformed bytes, with the bytes behind it that have been read; on an
   * idle connection it starts at once.
   */
  enqueueLast(request: IncomingMessage, start: () => void, bytesBehind = 0): void {
    if (this.isIdle) start();
    else this.#add(request, sizeOf(request) + bytesBehind, start, false);
  }

  /** Replaces the newest request, whose body is malformed, if it is still waiting; returns whether it was. */
  replaceLast(start: () => void): boolean {
    const last = this.#pending?.pop();
    if (!last) return false;
    this.reserve(last.request, -last.bytes);
    this.enqueueLast(last.request, start);
    return true;
  }

  /**
   * Finishes the current request, and starts the next one: after a pause, if the current one was refused for its client's budget.
   * Behind a proxy there is no pause, as the next request is another client's.
   */
  finish(isOverBudget: boolean): void {
    this.#incomplete = this.#current?.complete === false ? this.#current : null;
    this.#current = null;
    const next = this.#pending?.shift();
    if (!next) return;
    const { request, bytes, start, resumesReading } = next;
    this.#current = request;
    const startNext = () => {
      this.#current = null;
      this.reserve(request, -bytes);
      if (!this.socket.writable) return;
      if (this.#count === 0 && resumesReading) this.socket.resume();
      (request as QueuedRequest).isWaiting = false;
      start();
    };
    if (isOverBudget && !this.isProxied) this.#pause = setTimeout(startNext, REFUSED_PAUSE_MS);
    else runInNextIteration(startNext);
  }

  get #count(): number {
    return this.#pending?.length ?? 0;
  }

  #add(request: IncomingMessage, bytes: number, start: () => void, resumesReading: boolean): void {
    if (!this.#pending) {
      // The timer would keep the requests in memory, uncounted.
      this.socket.once('close', () => clearTimeout(this.#pause));
    }
    this.#pending ??= [];
    this.#pending.push({ request, bytes, start, resumesReading });
    this.reserve(request, bytes);
  }
}

function sizeOf({ rawHeaders, url = '' }: IncomingMessage): number {
  return rawHeaders.reduce((size, text) => size + text.length, REQUEST_BYTES + url.length);
}

/** The queue is stored on the socket itself: in V8, the cost of a WeakMap grows with the number of connections. */
const key = Symbol('requests');
type QueueSocket = Socket & { [key]?: RequestQueue };

export function attachRequestQueue(socket: Socket, queue: RequestQueue): void {
  (socket as QueueSocket)[key] = queue;
}

/** The function that Node's parser calls once the headers of a request are complete; 2 means an upgrade, at which the parser stops. */
type OnIncoming = (request: IncomingMessage, shouldKeepAlive: boolean) => number;
const UPGRADES = 2;

/**
 * Stops the parser at a request for which the connection's queue has no room, as if it offered an upgrade: the request is passed to
 * the `upgrade` listener with the unparsed bytes behind it, and can be replayed into the server when its turn comes. Node itself
 * parses all that it has read.
 */
export function stopParsingWhenFull(socket: Socket, queue: RequestQueue): void {
  const { parser } = socket as Socket & { parser?: { onIncoming: OnIncoming } | null };
  if (!parser) return;
  const { onIncoming } = parser;
  parser.onIncoming = (request, shouldKeepAlive) => {
    if (!queue.isFull) return onIncoming(request, shouldKeepAlive);
    const stopped = request as QueuedRequest & { upgrade: boolean };
    stopped.isUnparsed = !stopped.upgrade;
    stopped.upgrade = true;
    return UPGRADES;
  };
}

/** Null for a connection that was rejected. */
export function requestQueueOf(socket: Socket): RequestQueue | null {
  return (socket as QueueSocket)[key] ?? null;
}

function finishRequest(this: ServerResponse): void {
  requestQueueOf(this.req.socket)?.finish(this.statusCode === statusByCode.rate_limited);
}
