import { type IncomingMessage, type RequestListener, Server, type ServerOptions, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { Fault } from '../../kernel/fault.ts';
import type { ClientAddresses } from './addresses.ts';
import type { ConnectionBuffers } from './connectionbuffers.ts';
import { ConnectionLimit, tooMany } from './connectionlimit.ts';
import type { AddCorsHeaders } from './cors.ts';
import { CountedRequest } from './countedrequest.ts';
import { createResponseClass } from './countedresponse.ts';
import { checkHead, findHeadersFault, MAX_HEADERS } from './requesthead.ts';
import { attachRequestQueue, type QueuedRequest, RequestQueue, requestQueueOf, stopParsingWhenFull } from './requestqueue.ts';
import { answerClientError, answerEarly, answerRaw, destroyOnError } from './serverfaults.ts';
import { isOfferIgnored, isWebSocket, replay, type Upgrade, upgradeOptions } from './upgradeoffer.ts';

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

/**
 * How long a response waits for its peer to read more of it: as long as nginx and HAProxy wait. The kernel accepts more only after the
 * peer has read a third of its send buffer, of up to four megabytes. A peer that reads 30 KB/s needs more than 30 s for that.
 */
const STALL_TIMEOUT_MS = 60_000;

interface ServerDependencies {
  readonly handler: RequestListener;
  /** For what is rejected before the handler. */
  readonly addCorsHeaders: AddCorsHeaders;
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
  /** Set by tests only. */
  readonly stallTimeoutMs?: number;
}

/**
 * Node's HTTP server. It serves the requests of a connection one at a time, limits the connections of each address, and
 * formats the errors that Node would answer itself as the contract requires (§7).
 */
export function createHttpServer(dependencies: ServerDependencies): Server {
  const { handler, addCorsHeaders, upgrade, addresses, buffers, config, onRefusedConnection, onUntrustedProxy } = dependencies;
  const { stallTimeoutMs = STALL_TIMEOUT_MS } = dependencies;
  const limit = new ConnectionLimit({
    addresses,
    maxPerAddress: config.maxConnectionsPerAddress,
    onRefused: onRefusedConnection,
    onUntrustedProxy,
  });
  const server = new TrackingServer({
    ...timeouts,
    keepAliveTimeout: config.trustedProxies.length > 0 ? KEEP_ALIVE_BEHIND_PROXIES_MS : KEEP_ALIVE_MS,
    ...upgradeOptions,
    requireHostHeader: false,
    IncomingMessage: CountedRequest as typeof IncomingMessage,
    ServerResponse: createResponseClass({ buffers, addresses, stallTimeoutMs }),
  });
  server.maxHeadersCount = MAX_HEADERS;
  server.maxConnections = config.maxConnections;
  // Node closes a connection beyond them without a response.
  server.on('drop', onRefusedConnection);
  const reserve = (request: IncomingMessage, bytes: number) => buffers.reserve(request.socket, addresses.of(request), bytes);
  server.on('connection', (socket) => {
    // A connection whose request is replayed (see `replay`) has been counted.
    const known = requestQueueOf(socket);
    if (known) return stopParsingWhenFull(socket, known);
    const isProxied = addresses.isProxy(socket);
    if (!limit.accept(socket, isProxied)) return;
    const queue = new RequestQueue(socket, isProxied, reserve);
    attachRequestQueue(socket, queue);
    stopParsingWhenFull(socket, queue);
  });
  const onRequest = createRequestListener({ limit, handler, addCorsHeaders });
  server.on('request', onRequest);
  // An unknown `Expect` is ignored: Node would answer 417.
  server.on('checkExpectation', onRequest);
  server.on('clientError', answerClientError);
  server.on('upgrade', createUpgradeListener(server, limit, upgrade));
  server.on('connect', rejectConnect);
  return server;
}

/** The response that Node sends on a connection: null as soon as the system has taken all of it. */
type RespondingSocket = Socket & { readonly _httpMessage?: ServerResponse | null };

/** A server that closes all of its connections, also those that it has handed over. Node's own knows only those that it reads requests from. */
class TrackingServer extends Server {
  readonly #open = new Set<Socket>();

  constructor(options: ServerOptions<typeof IncomingMessage, typeof ServerResponse<IncomingMessage>>) {
    super(options as ServerOptions);
    this.on('connection', (socket: Socket) => {
      if (this.#open.has(socket)) return;
      this.#open.add(socket);
      socket.once('close', () => this.#open.delete(socket));
    });
  }

  /** Node takes a connection for idle whose response has been ended, though its client has yet to read it: meanwhile none is closed. */
  override closeIdleConnections(): void {
    for (const { _httpMessage: response } of this.#open as ReadonlySet<RespondingSocket>) if (response?.writableEnded) return;
    super.closeIdleConnections();
  }

  override closeAllConnections(): void {
    for (const socket of this.#open) socket.destroy();
  }
}

interface ListenerDependencies extends Pick<ServerDependencies, 'handler' | 'addCorsHeaders'> {
  readonly limit: ConnectionLimit;
}

/** Queues a request behind the others of its connection, and serves it when it is its turn. */
function createRequestListener({ limit, handler, addCorsHeaders }: ListenerDependencies): RequestListener {
  const reject = (response: ServerResponse, fault: Fault, isLast = false) =>
    addCorsHeaders(response.req, response, () => answerEarly(response, fault, isLast));
  const serve: RequestListener = (request, response) => {
    requestQueueOf(request.socket)?.start(request, response);
    if (isOfferIgnored(request)) response.shouldKeepAlive = false;
    const fault = findHeadersFault(request);
    if (fault) reject(response, fault, true);
    else if (limit.countProxied(request, response)) handler(request, response);
    else reject(response, tooMany());
  };
  return (request, response) => {
    const queue = requestQueueOf(request.socket);
    if (queue?.isIdle) serve(request, response);
    else queue?.enqueue(request, () => serve(request, response));
  };
}

/** Starts an upgrade, or replays a request that has none, when the requests before it have been answered. */
function createUpgradeListener(server: Server, limit: ConnectionLimit, upgrade: Upgrade) {
  const start = (request: IncomingMessage, socket: Socket, head: Buffer): void => {
    socket.off('drain', forwardDrain);
    if ((request as QueuedRequest).isUnparsed || !isWebSocket(request)) {
      socket.off('error', destroyOnError);
      return replay(server, request, socket, head);
    }
    const fault = findHeadersFault(request) ?? checkHead(request);
    if (fault) return answerRaw(socket, fault);
    if (!limit.countProxied(request, socket)) return answerRaw(socket, tooMany());
    // The upgrade listens for errors itself.
    socket.off('error', destroyOnError);
    upgrade(request, socket, head);
  };
  return (request: IncomingMessage, stream: Duplex, head: Buffer): void => {
    const socket = stream as Socket;
    enqueueDetached(request, head, () => start(request, socket, head));
  };
}

/** Queues a request with which Node has handed over its connection, and no longer watches it. */
function enqueueDetached(request: IncomingMessage, head: Buffer, start: () => void): void {
  // The listener's stream may be a wrapper, which has no queue (from version 26 on, for a request with a body).
  const { socket } = request;
  socket.on('error', destroyOnError);
  socket.on('drain', forwardDrain);
  // Behind an offer Node goes on reading, until its buffer is full.
  const readAhead = (request as QueuedRequest).isUnparsed ? 0 : READ_BYTES;
  requestQueueOf(socket)?.enqueueLast(request, start, head.length + readAhead);
}

/** Node reads at most so much at once. */
const READ_BYTES = 64 * 1024;

/**
 * Notifies the response that is being sent that its connection accepts more. Node does that only until it has handed over the
 * connection, although earlier requests may not have been answered yet.
 */
function forwardDrain(this: RespondingSocket): void {
  this._httpMessage?.emit('drain');
}

/** Portico is not a proxy: CONNECT is answered 404. Without a listener Node would close the connection without a response. */
function rejectConnect(request: IncomingMessage, _stream: Duplex, head: Buffer): void {
  enqueueDetached(request, head, () => answerRaw(request.socket, Fault.notFound()));
}
