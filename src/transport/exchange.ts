import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Viewer } from '../access/viewer.ts';
import type { Log } from '../platform/log.ts';

/** What is known of one HTTP request, from its first middleware on. */
export interface Exchange {
  readonly requestId: string;
  readonly log: Log;
  /** The address that the anonymous budget is charged to. */
  readonly clientAddress: string;
  /** Scheme, host and port as the client knows them. */
  readonly origin: string;
  /** Null without a credential; set once the credential was checked. */
  viewer: Viewer | null;
  /** What the request turned out to be: a route, or a root field of the schema. Never what a client chose. */
  operation: string | null;
  /** The name that the client gave its GraphQL operation. */
  operationName: string | null;
  /** Asked for by a machine every second: not worth a line in the log, nor a count. */
  isQuiet: boolean;
}

const exchanges = new WeakMap<IncomingMessage, Exchange>();

export function openExchange(request: IncomingMessage, exchange: Exchange): void {
  exchanges.set(request, exchange);
}

/** The request's exchange: the first middleware opens one for each. */
export function exchangeOf(request: IncomingMessage): Exchange {
  const exchange = exchanges.get(request);
  if (!exchange) throw new Error('the request came in past the first middleware');
  return exchange;
}

/** Writes a JSON answer whole. A HEAD request is answered with the same headers, without the body. */
export function sendJson(response: ServerResponse, status: number, body: unknown, headers: Readonly<Record<string, string>> = {}): void {
  const text = JSON.stringify(body);
  response.writeHead(status, { ...headers, 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(text) });
  response.end(response.req.method === 'HEAD' ? undefined : text);
}

export function sendEmpty(response: ServerResponse, status: number, headers: Readonly<Record<string, string>> = {}): void {
  response.writeHead(status, headers).end();
}
