import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http';
import type { Socket } from 'node:net';
import { Fault } from '../../kernel/fault.ts';
import { type ClientAddresses, normalizeAddress } from './addresses.ts';
import { ConcurrencyLimit } from './concurrencylimit.ts';
import type { ConnectionBuffers } from './connectionbuffers.ts';
import { createResponseClass } from './countedresponse.ts';
import { attachRequestQueue, QueuedRequest, RequestQueue, requestQueueOf } from './pipelining.ts';
import { checkHead, findHeadersFault, MAX_HEADERS } from './requesthead.ts';
import { answerClientError, answerRaw, destroyOnError, rejectRequest } from './serverfaults.ts';
import { isOfferIgnored, isWebSocket, replayWithoutUpgrade, type Upgrade, upgradeOptions } from './upgradeoffer.ts';

const timeouts = {
  /** For all headers, from the opening of the connection or its last request. */
  headersTimeout: 10_000,
  /** For the last byte of the body. */
  requestTimeout: 30_000,
  connectionsCheckingInterval: 2_000,
};

/** How long a connection may be idle. */
const KEEP_ALIVE_MS = 75_000;
/**
 * Behind proxies it is longer than they keep their idle connections, which is up to ten minutes: a request that is sent while the
 * connection closes is lost, and a proxy may not repeat a write.
 */
const KEEP_ALIVE_BEHIND_PROXIES_MS = 620_000;

/** How many connections of one address are rejected with a response at the same time; any more are closed without one. */
const MAX_REJECTIONS = 50;

/**
 * How long a response waits for its peer to read more of it: as long as nginx and HAProxy wait. The kernel accepts more only after the
 * peer has read a third of its send buffer, of up to four megabytes. A peer that reads 30 KB/s needs more than 30 s for that.
 */
const STALL_TIMEOUT_MS = 60_000;

interface ServerDependencies {
  readonly handler: RequestListener;
  /** Takes over a connection for a WebSocket. */
  readonly upgrade: Upgrade;
  readonly addresses: ClientAddresses;
  readonly buffers: ConnectionBuffers;
  readonly config: {
    readonly maxConnections: number;
    readonly maxConnectionsPerAddress: number;
    readonly trustedProxies: readonly string[];
  };
  readonly onRefusedConnection: () => void;
  /** Called once, at the first request that a proxy has forwarded which is not trusted. */
  readonly onUntrustedProxy: (address: string) => void;
  readonly stallTimeoutMs?: number;
}

/**
 * Node's HTTP server. It serves the requests of a connection one at a time, limits the connections of each address, and
 * formats the errors that Node would answer itself as the contract requires (§7).
 */
export function createHttpServer(dependencies: ServerDependencies): Server {
  const {
    handler,
    upgrade,
    addresses,
    buffers,
    config,
    onRefusedConnection,
    onUntrustedProxy,
    stallTimeoutMs = STALL_TIMEOUT_MS,
  } = dependencies;
  const connections = new ConcurrencyLimit(config.maxConnectionsPerAddress);
  let hasUntrustedProxy = false;
  const server = createServer({
    ...timeouts,
    keepAliveTimeout: config.trustedProxies.length > 0 ? KEEP_ALIVE_BEHIND_PROXIES_MS : KEEP_ALIVE_MS,
    ...upgradeOptions,
    requireHostHeader: false,
    IncomingMessage: QueuedRequest as typeof IncomingMessage,
    ServerResponse: createResponseClass({ buffers, addresses, stallTimeoutMs }),
  });
  server.maxHeadersCount = MAX_HEADERS;
  server.maxConnections = config.maxConnections;
  // Node closes a connection beyond them without a response.
  server.on('drop', onRefusedConnection);

  const reserve = (request: IncomingMessage, bytes: number) => buffers.reserve(request.socket, addresses.of(request), bytes);
  server.on('connection', (socket) => {
    // A connection whose request is replayed (see `replayWithoutUpgrade`) has been counted.
    if (requestQueueOf(socket)) return;
    const isProxied = addresses.isProxy(socket);
    const address = normalizeAddress(socket.remoteAddress ?? '');
    const isAccepted = isProxied || connections.add(address);
    if (!isProxied) socket.once('close', () => connections.delete(address));
    if (isAccepted) return attachRequestQueue(socket, new RequestQueue(socket, isProxied, reserve));
    onRefusedConnection();
    if (connections.count(address) > connections.max + MAX_REJECTIONS) return socket.destroy();
    answerRaw(socket, tooMany());
    // Node would parse and keep in memory whatever the client sends. It has scheduled the first read, which must come before this.
    process.nextTick(() => socket.pause());
  });

  /**
   * Counts a proxied request or WebSocket against its client's address until `source` closes, as a proxy's connections are not
   * counted; returns whether the client is within the limit.
   */
  const countProxied = (request: IncomingMessage, source: { once(event: 'close', listener: () => void): unknown }): boolean => {
    if (!requestQueueOf(request.socket)?.isProxied) {
      if (!hasUntrustedProxy && request.headers['x-forwarded-for'] !== undefined) {
        hasUntrustedProxy = true;
        onUntrustedProxy(normalizeAddress(request.socket.remoteAddress ?? ''));
      }
      return true;
    }
    const address = addresses.of(request);
    source.once('close', () => connections.delete(address));
    const isAccepted = connections.add(address);
    if (!isAccepted) onRefusedConnection();
    return isAccepted;
  };
  const serve: RequestListener = (request, response) => {
    requestQueueOf(request.socket)?.start(request, response);
    if (isOfferIgnored(request)) response.shouldKeepAlive = false;
    const fault = findHeadersFault(request);
    if (fault) rejectRequest(response, fault, true);
    else if (countProxied(request, response)) handler(request, response);
    else rejectRequest(response, tooMany());
  };
  const listener: RequestListener = (request, response) => {
    const queue = requestQueueOf(request.socket);
    if (queue?.isIdle) serve(request, response);
    else
      queue?.enqueue(
        request,
        () => serve(request, response),
        () => rejectRequest(response, tooMany(), true),
      );
  };
  server.on('request', listener);
  // An unknown `Expect` is ignored: Node would answer 417.
  server.on('checkExpectation', listener);
  server.on('clientError', answerClientError);

  const startUpgrade = (request: IncomingMessage, socket: Socket, head: Buffer): void => {
    const fault = findHeadersFault(request) ?? checkHead(request);
    if (fault) return answerRaw(socket, fault);
    if (isWebSocket(request) && !countProxied(request, socket)) return answerRaw(socket, tooMany());
    // The upgrade listens for errors itself.
    socket.off('error', destroyOnError);
    if (isWebSocket(request)) upgrade(request, socket, head);
    else replayWithoutUpgrade(server, request, socket, head);
  };
  server.on('upgrade', (request, stream, head) => {
    const socket = stream as Socket;
    socket.on('error', destroyOnError);
    requestQueueOf(socket)?.enqueueLast(request, () => startUpgrade(request, socket, head));
  });
  // Not a proxy: CONNECT is answered 404. Without a listener Node would close the connection without a response.
  server.on('connect', (request) => {
    // The listener's stream may be a wrapper, which has no queue (from version 26 on, for a request with a body).
    const { socket } = request;
    socket.on('error', destroyOnError);
    requestQueueOf(socket)?.enqueueLast(request, () => answerRaw(socket, Fault.notFound()));
  });
  return server;
}

function tooMany(): Fault {
  return Fault.unavailable('too much is open');
}
