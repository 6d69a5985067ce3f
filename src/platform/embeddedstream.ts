import { Duplex } from 'node:stream';
import type { PGlite } from '@electric-sql/pglite';

/**
 * A connection to the embedded database, in place of a socket: what the driver writes are messages of PostgreSQL's protocol, and
 * what it reads are the replies. So the embedded database runs prepared statements, which PGlite's own `query` does not: it has
 * every statement parsed and planned anew, in six round trips.
 */
export class EmbeddedStream extends Duplex {
  constructor(private readonly embedded: PGlite) {
    super();
  }

  /** Called by the driver, which opens its stream itself. */
  connect(): this {
    process.nextTick(() => this.emit('connect'));
    return this;
  }

  override _write(messages: Uint8Array, _encoding: BufferEncoding, callback: (failure?: Error) => void): void {
    // Exclusively: PGlite's own calls are of several messages, between which none may come.
    this.embedded
      .runExclusive(() => this.embedded.execProtocolRaw(messages))
      .then((reply) => {
        if (reply.length > 0) this.push(reply);
        callback();
      }, callback);
  }

  override _writev(chunks: ReadonlyArray<{ chunk: Uint8Array }>, callback: (failure?: Error) => void): void {
    this._write(Buffer.concat(chunks.map(({ chunk }) => chunk)), 'buffer' as BufferEncoding, callback);
  }

  override _final(callback: () => void): void {
    this.push(null);
    callback();
  }

  /** A reply is pushed when it is there. */
  override _read(): void {}

  /** This method and those below are for sockets. */
  setNoDelay(): this {
    return this;
  }

  setKeepAlive(): this {
    return this;
  }

  ref(): this {
    return this;
  }

  unref(): this {
    return this;
  }
}
