import { Fault } from '../../kernel/fault.ts';
import type { BoundStream } from '../rest/stream.ts';
import { closeCodes } from './close.ts';
import type { Connection } from './connection.ts';

/** Tells a stream's events to a client without a GraphQL subprotocol: one JSON object a frame. It has nothing to say back. */
export async function servePlain(
  connection: Connection,
  stream: BoundStream,
  path: Readonly<Record<string, string>>,
  query: URLSearchParams,
) {
  connection.socket.on('message', () => connection.countMessage());
  try {
    const events = await stream.open(path, query, connection.openContext());
    connection.socket.once('close', () => void events.return?.());
    if (!connection.isOpen) return void events.return?.();
    for await (const event of events) {
      await connection.send(event);
      if (!connection.isOpen) return;
    }
    connection.close(closeCodes.restart, 'restart');
  } catch (failure) {
    closeWith(connection, Fault.from(failure));
  }
}

function closeWith(connection: Connection, fault: Fault): void {
  if (fault.code === 'internal_error') connection.log.error({ err: fault.cause }, 'internal error');
  if (fault.fields) return connection.close(closeCodes.badRequest, `invalid_${Object.keys(fault.fields)[0]}`);
  if (fault.code === 'service_unavailable' || fault.code === 'internal_error')
    return connection.close(closeCodes.tryAgainLater, fault.code);
  if (fault.code === 'not_found') return connection.close(closeCodes.badRequest, fault.code);
  connection.close(closeCodes.comeBackWithFreshCredential, fault.code);
}
