import { Fault } from '../../kernel/fault.ts';
import type { BoundStream } from '../rest/stream.ts';
import { closeCodes } from './close.ts';
import type { Connection, Protocol } from './connection.ts';
import { Delivery, type DeliveryOwner } from './delivery.ts';
import type { Envelope } from './frames.ts';

/** Tells a stream's events to a client without a GraphQL subprotocol: one JSON object a frame. It has nothing to say back. */
export async function servePlain(
  connection: Connection,
  stream: BoundStream,
  path: Readonly<Record<string, string>>,
  query: URLSearchParams,
) {
  try {
    const opened = await stream.open(path, query, connection.openContext());
    new PlainSocket(connection, opened).begin();
  } catch (failure) {
    closeWith(connection, Fault.from(failure));
  }
}

/** Each text is a message of its own. */
const envelope: Envelope = { head: () => '', tail: '' };

class PlainSocket implements Protocol, DeliveryOwner {
  readonly #connection: Connection;
  readonly #delivery: Delivery;

  constructor(connection: Connection, opened: Awaited<ReturnType<BoundStream['open']>>) {
    this.#connection = connection;
    this.#delivery = new Delivery(connection, { ...opened, id: '', envelope, owner: this });
  }

  begin(): void {
    if (!this.#connection.isOpen) return this.finish();
    this.#connection.speak(this);
    this.#delivery.hear();
  }

  receive(): void {}

  finish(): void {
    this.#delivery.stop();
  }

  endDelivery(_delivery: Delivery, failure: unknown): void {
    if (failure) closeWith(this.#connection, Fault.from(failure));
    else this.#connection.close(closeCodes.restart, 'restart');
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
