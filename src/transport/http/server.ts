import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { Fault } from '../../kernel/fault.ts';
import { createAnswerClass } from './answer.ts';
import type { Backlog } from './backlog.ts';
import { ConcurrencyLimit } from './concurrency.ts';
import { type ClientAddresses, foldAddress } from './peer.ts';
import { attachRequestQueue, QueuedRequest, RequestQueue, requestQueueOf } from './pipelining.ts';
import { answerRaw, answerUnreadable, refuse } from './raw.ts';
import { checkHead, isWebSocket, readAgain, type Upgrade } from './upgrades.ts';

const limits = {
  /** The time for all headers, from the opening of the connection or its last request. */
  headersTimeout: 10_000,
  /** The time for the last byte of the body. */
  requestTimeout: 30_000,
  connectionsCheckingInterval: 2_000,
  /** Longer than load balancers keep theirs: the side that opens a connection must be the first to close it. */
  keepAliveTimeout: 75_000,
};

/** How many refusals of one address may be on their way at once: beyond, its connections are closed without a word. */
const MAX_REFUSALS = 50;

/** How long an answer waits for its peer to take some more of it. */
const PATIENCE_MS = 30_000;

interface ServerParts {
  readonly handler: RequestListener;
  /** Takes over a connection for a WebSocket. */
  readonly upgrade: Upgrade;
  readonly addresses: ClientAddresses;
  readonly backlog: Backlog;
  readonly config: { readonly maxConnections: number; readonly maxConnectionsPerAddress: number };
  readonly onRefusedConnection: () => void;
  readonly patienceMs?: number;
}

/**
 * Node's HTTP server. A connection works at one request at a time, an address has a bounded number of them, and what Node
 * would refuse by itself, in words of its own, is answered as §7 has it.
 */
export function createHttpServer(parts: ServerParts): Server {
  const { handler, upgrade, addresses, backlog, config, patienceMs = PATIENCE_MS } = parts;
  const connections = new ConcurrencyLimit(config.maxConnectionsPerAddress);
  const ServerResponse = createAnswerClass({ backlog, addresses, patienceMs });
  const server = createServer({
    ...limits,
    requireHostHeader: false,
    IncomingMessage: QueuedRequest as typeof IncomingMessage,
    ServerResponse,
  });
  server.maxConnections = config.maxConnections;

  const hold = (request: IncomingMessage, bytes: number) => backlog.hold(request.socket, addresses.of(request), bytes);
  server.on('connection', (socket) => {
    // A connection whose request is read again (see readAgain) has been counted.
    if (requestQueueOf(socket)) return;
    const isProxied = addresses.isProxy(socket);
    const address = foldAddress(socket.remoteAddress ?? '');
    if (!isProxied && !connections.add(address)) {
      parts.onRefusedConnection();
      socket.once('close', () => connections.delete(address));
      if (connections.count(address) > connections.max + MAX_REFUSALS) socket.destroy();
      else answerRaw(socket, tooMany());
      return;
    }
    attachRequestQueue(socket, new RequestQueue(socket, isProxied, hold));
    if (!isProxied) socket.once('close', () => connections.delete(address));
  });

  /** A proxy's connections are not counted, but what its clients do with them is. */
  const enter = (request: IncomingMessage, open: { once(event: 'close', leave: () => void): unknown }): boolean => {
    if (!requestQueueOf(request.socket)?.isProxied) return true;
    const address = addresses.of(request);
    open.once('close', () => connections.delete(address));
    return connections.add(address);
  };
  const serve = (request: IncomingMessage, response: ServerResponse): void => {
    requestQueueOf(request.socket)?.start(request, response);
    if (enter(request, response)) handler(request, response as Parameters<RequestListener>[1]);
    else refuse(response, tooMany());
  };
  const listener = (request: IncomingMessage, response: ServerResponse): void => {
    const queue = requestQueueOf(request.socket);
    if (queue?.isIdle) serve(request, response);
    else
      queue?.enqueue(
        request,
        () => serve(request, response),
        () => refuse(response, tooMany(), true),
      );
  };
  server.on('request', listener);
  // An unknown `Expect` is ignored: Node would answer 417.
  server.on('checkExpectation', listener);
  server.on('clientError', answerUnreadable);

  const begin = (request: IncomingMessage, socket: Socket, head: Buffer): void => {
    const fault = checkHead(request) ?? (isWebSocket(request) && !enter(request, socket) ? tooMany() : null);
    if (fault) return answerRaw(socket, fault);
    // The upgrade listens for errors itself.
    socket.off('error', destroy);
    if (isWebSocket(request)) upgrade(request, socket, head);
    else readAgain(server, request, socket, head);
  };
  server.on('upgrade', (request, stream, head) => {
    const socket = stream as Socket;
    const queue = requestQueueOf(socket);
    socket.on('error', destroy);
    if (queue?.isIdle) begin(request, socket, head);
    else queue?.enqueueLast(request, () => begin(request, socket, head));
  });
  // This is no proxy; without a listener Node would hang up without a word.
  server.on('connect', (request, stream) => {
    const socket = stream as Socket;
    const queue = requestQueueOf(socket);
    const answer = () => answerRaw(socket, Fault.notFound());
    socket.on('error', destroy);
    if (queue && !queue.isIdle) queue.enqueueLast(request, answer);
    else answer();
  });
  return server;
}

function tooMany(): Fault {
  return Fault.unavailable('too much is open');
}

function destroy(this: Duplex): void {
  this.destroy();
}
