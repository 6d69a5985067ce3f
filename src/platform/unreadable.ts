import type { Duplex } from 'node:stream';
import pg from 'pg';

/** The method of pg's Connection that has the messages of the server read. */
interface ConnectionInternals {
  attachListeners(stream: Duplex): void;
}

const connection = pg.Connection.prototype as unknown as ConnectionInternals;
const { attachListeners } = connection;

/**
 * The driver throws at a message that it cannot read, such as the request for GSSAPI of a `pg_hba.conf`, where nothing catches
 * it: here that fails the connection, and not the process.
 */
connection.attachListeners = function (stream) {
  attachListeners.call(this, stream);
  const read = stream.listeners('data').at(-1) as (bytes: Buffer) => void;
  stream.off('data', read).on('data', (bytes) => {
    try {
      read(bytes);
    } catch (failure) {
      stream.destroy(failure as Error);
    }
  });
};
