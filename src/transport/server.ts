import { createServer, type RequestListener, type Server, type ServerResponse, STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import { Fault, statusOf } from '../kernel/fault.ts';
import { faultHeaders, restBody } from './faults.ts';

const limits = {
  /** Until the last header has come, counted from the connection's opening or its last request. */
  headersTimeout: 10_000,
  /** Until the last byte of the body has come. */
  requestTimeout: 30_000,
  connectionsCheckingInterval: 2_000,
  /** Longer than load balancers keep theirs: whoever closes first must be the one who opens. */
  keepAliveTimeout: 75_000,
};

/** Node's HTTP server for a handler. What Node would refuse by itself, in words of its own, is answered as §7 has it. */
export function createHttpServer(handler: RequestListener, { maxConnections }: { maxConnections: number }): Server {
  const server = createServer({ ...limits, requireHostHeader: false }, handler);
  server.maxConnections = maxConnections;
  // An expectation that nobody here has is no reason to refuse: Node would answer 417.
  server.on('checkExpectation', handler);
  server.on('clientError', answerUnreadable);
  // This is no proxy; without a listener Node would hang up without a word.
  server.on('connect', (_request, socket) => {
    socket.on('error', () => socket.destroy());
    answerRaw(socket, Fault.notFound());
  });
  return server;
}

const LINGER_MS = 1_000;

const details: Readonly<Record<string, string>> = {
  HPE_HEADER_OVERFLOW: 'The request line and headers are too large.',
  ERR_HTTP_REQUEST_TIMEOUT: 'The request did not arrive in time.',
};

/** What came is no HTTP request, so that there is no response to answer it with. */
function answerUnreadable(failure: NodeJS.ErrnoException, socket: Duplex & { _httpMessage?: ServerResponse | null }): void {
  // The client has gone, or an answer to it has already begun.
  if (!socket.writable || failure.code === 'ECONNRESET' || socket._httpMessage?.headersSent) socket.destroy();
  else answerRaw(socket, Fault.invalidRequest(details[failure.code ?? ''] ?? 'The request is not valid HTTP.'));
}

/** Answers with a fault where there is no response to write to, and closes the connection. */
export function answerRaw(socket: Duplex, fault: Fault): void {
  if (!socket.writable) return;
  const status = statusOf[fault.code];
  const body = JSON.stringify(restBody(fault));
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    'Content-Type: application/json',
    `Content-Length: ${Buffer.byteLength(body)}`,
    'X-Content-Type-Options: nosniff',
    'Connection: close',
    ...Object.entries(faultHeaders(fault)).map(([name, value]) => `${name}: ${value}`),
  ];
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`);
  // At once would cut off what the client has not read yet; never would leave the end to the client.
  setTimeout(() => socket.destroy(), LINGER_MS).unref();
}
