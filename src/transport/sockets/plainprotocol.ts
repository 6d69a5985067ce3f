import type { Fault } from '../../kernel/fault.ts';
import { toFault } from '../../platform/errors.ts';
import { logCause } from '../../platform/faultlog.ts';
import { Delivery } from '../delivery/delivery.ts';
import type { Envelope } from '../delivery/frames.ts';
import type { BoundPlainFeed } from '../rest/plainfeed.ts';
import { closeCodes } from './close.ts';
import type { SocketConnection } from './connection.ts';

/** Each event is a message of its own. */
const envelope: Envelope = { head: () => '', tail: '' };

/** Serves a feed to a client without a GraphQL subprotocol: one JSON object a frame. Messages of the client are ignored. */
export async function servePlain(
  connection: SocketConnection,
  feed: BoundPlainFeed,
  ids: Readonly<Record<string, string>>,
  query: URLSearchParams,
): Promise<void> {
  try {
    const { source, renderer } = await feed.open(ids, query, connection.openContext());
    const onEnd = (failure: unknown) => {
      if (failure) closeWith(connection, toFault(failure));
      else connection.close(closeCodes.restart, 'restart');
    };
    const delivery = new Delivery(connection, source, renderer, { envelope, onEnd });
    if (!connection.isOpen) return delivery.stop();
    connection.setProtocol({ receive() {}, stop: () => delivery.stop() });
    delivery.start();
  } catch (failure) {
    closeWith(connection, toFault(failure));
  }
}

function closeWith(connection: SocketConnection, fault: Fault): void {
  logCause(fault, connection);
  if (fault.fields) return connection.close(closeCodes.badRequest, `invalid_${Object.keys(fault.fields)[0]}`);
  if (fault.code === 'service_unavailable' || fault.code === 'internal_error')
    return connection.close(closeCodes.tryAgainLater, fault.code);
  if (fault.code === 'not_found' || fault.code === 'invalid_request') return connection.close(closeCodes.badRequest, fault.code);
  connection.close(closeCodes.forbidden, fault.code);
}
