import type { Duplex } from 'node:stream';
import { TLSSocket } from 'node:tls';
import pg from 'pg';

/** The method of pg's Connection that has the messages of the server read. */
interface ConnectionInternals {
  attachListeners(stream: Duplex): void;
}

/** The most that is read of a connection before everything else has its turn: what Node reads at once. */
const SLICE_BYTES = 64 * 1024;
/** The most that Node reads at once of a connection with TLS: a record. */
const RECORD_BYTES = 16 * 1024;

const connection = pg.Connection.prototype as unknown as ConnectionInternals;
const { attachListeners } = connection;

/**
 * The driver throws at a message that it cannot read, such as the request for GSSAPI of a `pg_hba.conf`, where nothing catches
 * it: here that fails the connection, and not the process.
 *
 * A large result is read in slices, one per iteration of the event loop: Node would read two megabytes of a connection that has
 * them, and decode their rows, before it looked at another one.
 *
 * Changes the driver for the whole process.
 */
export function limitDriverReads(): void {
  connection.attachListeners = attachLimited;
}

function attachLimited(this: ConnectionInternals, stream: Duplex): void {
  attachListeners.call(this, stream);
  const read = stream.listeners('data').at(-1) as (bytes: Buffer) => void;
  const fullBytes = stream instanceof TLSSocket ? RECORD_BYTES : SLICE_BYTES;
  let sliceBytes = 0;
  const readNextSlice = () => {
    sliceBytes = 0;
    stream.resume();
  };
  stream.off('data', read).on('data', (bytes: Buffer) => {
    try {
      read(bytes);
    } catch (failure) {
      stream.destroy(failure as Error);
    }
    // A read that is not full has left nothing behind, as most have.
    sliceBytes = bytes.length < fullBytes ? 0 : sliceBytes + bytes.length;
    if (sliceBytes < SLICE_BYTES) return;
    stream.pause();
    setImmediate(readNextSlice);
  });
}
