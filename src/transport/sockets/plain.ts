import type { Fault } from '../../kernel/fault.ts';
import { logMistake, toFault } from '../../platform/errors.ts';
import { Delivery, type DeliveryOwner } from '../delivery/delivery.ts';
import type { Envelope } from '../delivery/frames.ts';
import type { BoundStream } from '../rest/stream.ts';
import { closeCodes } from './close.ts';
import type { Protocol, SocketConnection } from './connection.ts';

/** The feed for a client without a GraphQL subprotocol: one JSON object a frame. Messages of the client are ignored. */
export async function servePlain(
  connection: SocketConnection,
  stream: BoundStream,
  path: Readonly<Record<string, string>>,
  query: URLSearchParams,
) {
  try {
    const opened = await stream.open(path, query, connection.openContext());
    new PlainSocket(connection, opened).begin();
  } catch (failure) {
    closeWith(connection, toFault(failure));
  }
}

/** Each text is a message of its own. */
const envelope: Envelope = { head: () => '', tail: '' };

class PlainSocket implements Protocol, DeliveryOwner {
  readonly #delivery: Delivery;

  constructor(
    private readonly connection: SocketConnection,
    { source, renderer }: Awaited<ReturnType<BoundStream['open']>>,
  ) {
    this.#delivery = new Delivery(connection, source, renderer, envelope, '', this);
  }

  begin(): void {
    if (!this.connection.isOpen) return this.finish();
    this.connection.speak(this);
    this.#delivery.onReadable();
  }

  receive(): void {}

  finish(): void {
    this.#delivery.stop();
  }

  endDelivery(_delivery: Delivery, failure: unknown): void {
    if (failure) closeWith(this.connection, toFault(failure));
    else this.connection.close(closeCodes.restart, 'restart');
  }
}

function closeWith(connection: SocketConnection, fault: Fault): void {
  logMistake(fault, connection);
  if (fault.fields) return connection.close(closeCodes.badRequest, `invalid_${Object.keys(fault.fields)[0]}`);
  if (fault.code === 'service_unavailable' || fault.code === 'internal_error')
    return connection.close(closeCodes.tryAgainLater, fault.code);
  if (fault.code === 'not_found' || fault.code === 'invalid_request') return connection.close(closeCodes.badRequest, fault.code);
  connection.close(closeCodes.comeBackWithFreshCredential, fault.code);
}
