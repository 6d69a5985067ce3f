import type { IncomingMessage, RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createClientAddresses } from '../../src/transport/http/addresses.ts';
import { ConnectionBuffers } from '../../src/transport/http/connectionbuffers.ts';
import { createHttpServer } from '../../src/transport/http/server.ts';
import type { Upgrade } from '../../src/transport/http/upgradeoffer.ts';

const MEBIBYTE = 2 ** 20;

interface Options {
  readonly handler: RequestListener;
  readonly upgrade?: Upgrade;
  readonly stallTimeoutMs?: number;
  readonly unread?: { readonly perAddress: number; readonly inAll: number };
  readonly trustedProxies?: readonly string[];
  readonly maxConnectionsPerAddress?: number;
}

/** Starts the HTTP server with a test's own handler. */
export async function openServer({ handler, upgrade = () => {}, unread, trustedProxies = [], ...options }: Options) {
  const counts = { ended: 0, refused: 0 };
  const buffers = new ConnectionBuffers({
    limits: unread ?? { perAddress: 16 * MEBIBYTE, inAll: 64 * MEBIBYTE },
    onEnd: () => (counts.ended += 1),
  });
  const server = createHttpServer({
    handler,
    addCorsHeaders: (_request, _response, proceed) => proceed(),
    upgrade,
    addresses: createClientAddresses(trustedProxies),
    buffers,
    config: { maxConnections: 1_000, maxConnectionsPerAddress: options.maxConnectionsPerAddress ?? 1_000, trustedProxies },
    onRefusedConnection: () => (counts.refused += 1),
    onUntrustedProxy: () => {},
    ...(options.stallTimeoutMs !== undefined && { stallTimeoutMs: options.stallTimeoutMs }),
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    server,
    buffers,
    counts,
    baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/** The number in a request's path (`/7`), by which tests count requests. */
export function numberOf({ url = '' }: IncomingMessage): number {
  return Number(url.slice(1));
}
