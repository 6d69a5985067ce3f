import { IncomingMessage, type Server } from 'node:http';
import type { Socket } from 'node:net';
import { isSmallBody } from './bodyheaders.ts';
import { type QueuedRequest, requestQueueOf } from './requestqueue.ts';

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
export class CountedRequest extends IncomingMessage implements QueuedRequest {
  isWaiting = false;
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
