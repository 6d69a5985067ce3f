import { IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { statusByCode } from '../../kernel/fault.ts';
import { runInNextIteration } from '../../kernel/iteration.ts';
import { isSmallBody } from './bodyheaders.ts';

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
/** The memory that Node needs for a chunk of a body besides its bytes. */
const CHUNK_BYTES = 400;
/** The unread chunks of a request that are not counted: nearly all bodies have fewer. */
const MAX_UNCOUNTED_CHUNKS = 16;
/** The most chunks of a body: the parser takes as long for one of a byte as for hundreds of bytes. */
const MAX_CHUNKS = 10_000;
/** The code of the error of a body with more. */
export const TOO_MANY_CHUNKS = 'TOO_MANY_CHUNKS';
/** The event of a request of which the last byte has arrived, whether somebody reads its body or not. */
const ARRIVED = 'arrived';

/**
 * The class of all requests. Node stops reading from the network when nobody takes a body, but parses all that it has received: that
 * may be thousands of chunks of one byte, which are counted until somebody takes the body. A body of too many chunks is malformed,
 * also where it is dropped because its request has been answered.
 */
export class QueuedRequest extends IncomingMessage {
  isWaiting = false;
  /** Whether the parser has stopped at this request although it offers no upgrade. */
  isUnparsed = false;
  #chunks = 0;
  #unreadChunks = 0;
  #reserved = 0;

  override push(chunk: unknown, encoding?: BufferEncoding): boolean {
    if (chunk === null) {
      this.emit(ARRIVED);
      return super.push(chunk);
    }
    this.#chunks += 1;
    if (this.#chunks > MAX_CHUNKS) return this.#rejectChunk();
    const hasRoom = super.push(chunk, encoding);
    if (!this.readableFlowing) this.#countChunk(chunk as Buffer);
    return hasRoom;
  }

  /** Node calls this when it has sent a response before the body had arrived, and would drop the rest without a call of `push`. */
  _dump(): void {
    this.removeAllListeners('data');
    this.resume();
  }

  /**
   * Node calls this to continue reading from the network. A complete request needs nothing more of it: if the parser has stopped behind
   * it, what arrived would be lost.
   */
  override _read(size: number): void {
    if (!this.complete) super._read(size);
  }

  #rejectChunk(): boolean {
    if (this.#chunks > MAX_CHUNKS + 1) return false;
    const failure = Object.assign(new Error('The body has too many chunks.'), { code: TOO_MANY_CHUNKS });
    (this.socket as Socket & { server?: Server }).server?.emit('clientError', failure, this.socket);
    this.socket.pause();
    return false;
  }

  override resume(): this {
    this.#releaseChunks();
    return super.resume();
  }

  override _destroy(failure: Error | null, callback: (failure?: Error | null) => void): void {
    this.#releaseChunks();
    super._destroy(failure, callback);
  }

  #releaseChunks(): void {
    if (this.#reserved > 0) requestQueueOf(this.socket)?.reserve(this, -this.#reserved);
    this.#reserved = 0;
  }

  #countChunk({ length }: Buffer): void {
    this.#unreadChunks += 1;
    // A small body is read before its request waits for others of its user.
    const isHeld = this.isWaiting || !isSmallBody(this);
    const bytes = (isHeld ? length : 0) + (this.#unreadChunks > MAX_UNCOUNTED_CHUNKS ? CHUNK_BYTES : 0);
    if (bytes === 0) return;
    this.#reserved += bytes;
    requestQueueOf(this.socket)?.reserve(this, bytes);
  }
}

/** Calls back when all of a request has arrived, or its connection has closed; at once if that is so. */
export function onceArrived(request: IncomingMessage, callback: () => void): void {
  const { socket } = request;
  if (request.complete || socket.destroyed) return callback();
  const finish = () => {
    request.off(ARRIVED, finish);
    socket.off('close', finish);
    callback();
  };
  request.on(ARRIVED, finish);
  socket.on('close', finish);
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

/** What Node's parser calls for each request once its headers are complete; 2 means an upgrade, at which the parser stops. */
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
