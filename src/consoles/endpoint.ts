import { connect, type OnReadOpts, type Socket } from 'node:net';
import type { ConsoleKind } from '../generated/prisma/enums.ts';

/** How long a console may take to accept a connection. */
const CONNECT_TIMEOUT_MS = 5_000;
const KEEP_ALIVE_MS = 30_000;

/** The address of an instance's console. It is set by an operator, never by a client. */
export interface Endpoint {
  readonly kind: ConsoleKind;
  readonly host: string | null;
  readonly port: number | null;
  readonly socketPath: string | null;
}

export function isSameEndpoint(one: Endpoint, other: Endpoint): boolean {
  return one.kind === other.kind && one.host === other.host && one.port === other.port && one.socketPath === other.socketPath;
}

/**
 * Starts to connect and returns the socket at once: writes are buffered until it is connected. The socket emits `error` when
 * the connection fails or times out. `onread.callback` owns the buffer that it is given.
 */
export function connectEndpoint({ host, port, socketPath }: Endpoint, onread: OnReadOpts): Socket {
  const address = socketPath === null ? { host: host ?? '', port: port ?? 0 } : { path: socketPath };
  const line = connect({ ...address, onread });
  line.setNoDelay(true);
  line.setKeepAlive(true, KEEP_ALIVE_MS);
  line.setTimeout(CONNECT_TIMEOUT_MS, () => line.destroy(new Error('the console does not answer')));
  line.once('connect', () => line.setTimeout(0));
  return line;
}
