import { type IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { runInNextIteration } from '../../kernel/iteration.ts';
import type { ClientAddresses } from './addresses.ts';
import type { ConnectionBuffers } from './connectionbuffers.ts';

/** A larger response is written in parts, each when the kernel has accepted the one before, which shows whether the peer reads. */
const PART_BYTES = 64 * 1024;

interface ResponseDependencies {
  readonly buffers: ConnectionBuffers;
  readonly addresses: ClientAddresses;
  /** How long a response may wait for its peer to read more of it. */
  readonly stallTimeoutMs: number;
}

type Bytes = string | Uint8Array;
type Callback = () => void;

/** Buffers that many responses share, which are not counted for any of them. */
const shared = new WeakSet<Uint8Array>();

/** Marks a buffer as shared by all responses. */
export function markShared(bytes: Buffer): Buffer {
  shared.add(bytes);
  return bytes;
}

/** The class of all responses: it applies backpressure, and counts the bytes that the peer has not read. */
export function createResponseClass({ buffers, addresses, stallTimeoutMs }: ResponseDependencies): typeof ServerResponse<IncomingMessage> {
  class CountedResponse extends ServerResponse {
    override write(chunk: Bytes, encoding?: unknown, callback?: unknown): boolean {
      const isFlushed = super.write(chunk, encoding as BufferEncoding, callback as Callback);
      // Node collects the writes of a tick, and passes them on together at its end.
      process.nextTick(recordUnread, this);
      return isFlushed;
    }

    override end(chunk?: unknown, encoding?: unknown, callback?: unknown): this {
      if (isLarge(chunk) && this.socket && typeof encoding !== 'function' && callback === undefined)
        return this.#endInParts(typeof chunk === 'string' ? Buffer.from(chunk, encoding as BufferEncoding) : chunk, this.socket);
      super.end(chunk, encoding as BufferEncoding, callback as Callback);
      if (this.socket && this.socket.writableLength > 0) recordUnread(this);
      return this;
    }

    #endInParts(bytes: Uint8Array, socket: Socket): this {
      if (!this.headersSent && !this.hasHeader('Content-Length')) this.setHeader('Content-Length', bytes.length);
      const address = addresses.of(this.req);
      const isShared = shared.has(bytes);
      let offset = 0;
      let reserved = 0;
      const reserve = (remaining: number) => {
        if (isShared) return;
        buffers.reserve(socket, address, remaining - reserved);
        reserved = remaining;
      };
      const writeNext = (failure?: Error | null) => {
        const isOver = failure || this.destroyed || this.writableEnded;
        const part = bytes.subarray(offset, offset + PART_BYTES);
        offset += part.length;
        reserve(isOver ? 0 : bytes.length - offset);
        if (isOver) return;
        if (offset < bytes.length) super.write(part, isShared ? scheduleNext : writeNext);
        else super.end(part);
        process.nextTick(recordUnread, this);
      };
      // Shared bytes can wait, as many clients may request them at once. The bytes of one response occupy memory until they are sent.
      const scheduleNext: typeof writeNext = (failure) => runInNextIteration(() => writeNext(failure));
      writeNext();
      return this;
    }
  }

  function recordUnread({ req, socket }: CountedResponse): void {
    if (socket && socket.writableLength > 0) buffers.record(socket, addresses.of(req), stallTimeoutMs);
  }
  return CountedResponse;
}

function isLarge(chunk: unknown): chunk is Bytes {
  return (typeof chunk === 'string' || chunk instanceof Uint8Array) && chunk.length > PART_BYTES;
}
