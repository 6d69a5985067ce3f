import { type IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { runInTurn } from '../../kernel/turns.ts';
import type { Backlog } from './backlog.ts';
import type { ClientAddresses } from './peer.ts';

/** Larger answers are written in parts, each when the kernel has taken the one before, which shows whether the peer reads. */
const PART_BYTES = 64 * 1024;

interface AnswerParts {
  readonly backlog: Backlog;
  readonly addresses: ClientAddresses;
  /** How long an answer may wait for its peer to take some more of it. */
  readonly patienceMs: number;
}

type Bytes = string | Uint8Array;
type CallBack = () => void;

/** Bytes that all answers share: none counts them as its own. */
const shared = new WeakSet<Uint8Array>();

export function share(bytes: Buffer): Buffer {
  shared.add(bytes);
  return bytes;
}

/** The class of all responses: it applies backpressure, and counts the bytes that the peer has not read. */
export function createAnswerClass({ backlog, addresses, patienceMs }: AnswerParts): typeof ServerResponse<IncomingMessage> {
  class Answer extends ServerResponse {
    override write(chunk: Bytes, encoding?: unknown, callBack?: unknown): boolean {
      const isTaken = super.write(chunk, encoding as BufferEncoding, callBack as CallBack);
      // Node writes what comes in one tick at its end, at once.
      process.nextTick(noteAnswer, this);
      return isTaken;
    }

    override end(chunk?: unknown, encoding?: unknown, callBack?: unknown): this {
      if (isLarge(chunk) && this.socket && typeof encoding !== 'function' && callBack === undefined)
        return this.#endInParts(typeof chunk === 'string' ? Buffer.from(chunk, encoding as BufferEncoding) : chunk, this.socket);
      super.end(chunk, encoding as BufferEncoding, callBack as CallBack);
      if (this.socket && this.socket.writableLength > 0) noteAnswer(this);
      return this;
    }

    #endInParts(bytes: Uint8Array, socket: Socket): this {
      if (!this.headersSent && !this.hasHeader('Content-Length')) this.setHeader('Content-Length', bytes.length);
      const address = addresses.of(this.req);
      const isShared = shared.has(bytes);
      let at = 0;
      let held = 0;
      const hold = (rest: number) => {
        if (isShared) return;
        backlog.hold(socket, address, rest - held);
        held = rest;
      };
      const goOn = (failure?: Error | null) => {
        const isOver = failure || this.destroyed || this.writableEnded;
        const part = bytes.subarray(at, at + PART_BYTES);
        at += part.length;
        hold(isOver ? 0 : bytes.length - at);
        if (isOver) return;
        if (at < bytes.length) super.write(part, isShared ? goOnInTurn : goOn);
        else super.end(part);
        process.nextTick(noteAnswer, this);
      };
      // What all share can wait: many clients may ask for it at once. What was made for one takes memory until it has gone.
      const goOnInTurn: typeof goOn = (failure) => runInTurn(() => goOn(failure));
      goOn();
      return this;
    }
  }

  function noteAnswer({ req, socket }: Answer): void {
    if (socket && socket.writableLength > 0) backlog.note(socket, addresses.of(req), patienceMs);
  }
  return Answer;
}

function isLarge(chunk: unknown): chunk is Bytes {
  return (typeof chunk === 'string' || chunk instanceof Uint8Array) && chunk.length > PART_BYTES;
}
