import { randomUUID } from 'node:crypto';
import { type ServerResponse, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { Fault, statusByCode } from '../../kernel/fault.ts';
import { TOO_MANY_CHUNKS } from './countedrequest.ts';
import { readRequestId } from './exchange.ts';
import { faultHeaders, restBody } from './faults.ts';
import { standardHeaders } from './headers.ts';
import { requestQueueOf } from './requestqueue.ts';

/** How long an answered socket stays open, so that the client can read the response. */
const LINGER_MS = 1_000;

const REQUEST_TIMEOUT = 'ERR_HTTP_REQUEST_TIMEOUT';

const details: Readonly<Record<string, string>> = {
  HPE_HEADER_OVERFLOW: 'The request line and headers are too large.',
  [REQUEST_TIMEOUT]: 'The request did not arrive in time.',
  [TOO_MANY_CHUNKS]: 'The body has too many chunks.',
};

export const invalidHttp = (detail = 'The request is not valid HTTP.'): Fault => Fault.invalidRequest(detail);

/** Answers bytes that are not a valid HTTP request, for which Node has no response object. */
export function answerClientError(failure: NodeJS.ErrnoException, stream: Duplex): void {
  const socket = stream as Socket & { _httpMessage?: ServerResponse | null };
  const queue = requestQueueOf(socket);
  const { last = null } = queue ?? {};
  const answer = () => answerRaw(socket, invalidHttp(details[failure.code ?? '']));
  // The client has gone, or has had its response.
  if (!socket.writable || failure.code === 'ECONNRESET' || queue?.isBodyOfAnswered) socket.destroy();
  else if (failure.code === REQUEST_TIMEOUT && socket.bytesRead === 0) closeUnused(socket);
  // The malformed bytes follow complete requests, which are answered first.
  else if (queue && last?.complete) queue.enqueueLast(last, answer);
  // The malformed bytes are in the body of a waiting request. The requests before it are answered first.
  else if (queue?.replaceLast(answer)) return;
  // The malformed bytes are in the body of a request whose response has already begun.
  else if (socket._httpMessage?.headersSent) socket.destroy();
  else answer();
}

/**
 * Closes a connection on which nothing was sent, as browsers open in advance. A response would be taken for that of a request which the
 * client sends at the same moment. Of a busy process the timer may be late: what has arrived by then is read first, and is served.
 */
function closeUnused(socket: Socket): void {
  setImmediate(() => {
    if (socket.bytesRead === 0) socket.destroy();
  });
}

/** Rejects a request before it reaches the handler. */
export function answerEarly(response: ServerResponse, fault: Fault, isLast: boolean): void {
  const body = JSON.stringify(restBody(fault));
  response.writeHead(statusByCode[fault.code], [
    ...headersOf(readRequestId(response.req), fault),
    ...['Content-Length', String(Buffer.byteLength(body))],
    ...(isLast ? ['Connection', 'close'] : []),
  ]);
  response.end(response.req.method === 'HEAD' ? undefined : body);
}

/** The headers of a fault that is answered without an exchange: name, value, name, value. */
function headersOf(requestId: string, fault: Fault): string[] {
  return ['X-Request-Id', requestId, ...standardHeaders, 'Content-Type', 'application/json', ...Object.entries(faultHeaders(fault)).flat()];
}

interface RawOptions {
  readonly requestId?: string;
  /** More headers: name, value, name, value. */
  readonly headers?: readonly string[];
}

/** Writes a fault to a socket that has no response object, and closes the connection. */
export function answerRaw(socket: Duplex, fault: Fault, { requestId = randomUUID(), headers = [] }: RawOptions = {}): void {
  if (!socket.writable) return;
  const status = statusByCode[fault.code];
  const body = JSON.stringify(restBody(fault));
  const length = String(Buffer.byteLength(body));
  const own = ['Date', new Date().toUTCString(), 'Content-Length', length, 'Connection', 'close'];
  const fields = [...headersOf(requestId, fault), ...headers, ...own];
  const lines = fields.map((text, index) => (index % 2 === 0 ? `${text}: ` : `${text}\r\n`));
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('')}\r\n${body}`);
  // If the socket were destroyed now, the client would lose what it has not read yet. Without a deadline, the client would decide when
  // it is closed.
  setTimeout(() => socket.destroy(), LINGER_MS).unref();
}

/** The error listener of a connection that the HTTP server has handed over, until ws adds its own. */
export function destroyOnError(this: Duplex): void {
  this.destroy();
}
