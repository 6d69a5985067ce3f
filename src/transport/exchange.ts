import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Viewer } from '../access/viewer.ts';
import type { Log } from '../platform/log.ts';
import { type ClientAddresses, requestOrigin } from './peer.ts';
import { readTrace } from './trace.ts';

/** A step of every request, without Express' methods. A promise that is rejected is a failure that is handed on. */
export type Middleware = (request: IncomingMessage, response: ServerResponse, next: (failure?: unknown) => void) => unknown;

/** What every exchange is made with. */
export interface ExchangeParts {
  readonly log: Log;
  readonly addresses: ClientAddresses;
  readonly config: { readonly publicUrl: string | null };
  /** Of every answer, as `headers` are below. */
  readonly headers: readonly string[];
}

/** What is known of one HTTP request, from its first middleware on. What few requests need is found when it is asked for. */
export class Exchange {
  readonly requestId: string;
  /** Null without a credential; set once the credential was checked. */
  viewer: Viewer | null = null;
  /** What the request turned out to be: a route, or a root field of the schema. Never what a client chose. */
  operation: string | null = null;
  /** The name that the client gave its GraphQL operation. */
  operationName: string | null = null;
  /** What the head of the answer will have whoever gives it: name, value, name, value. */
  readonly headers: string[];
  /** Asked for by a machine every second: not worth a line in the log, nor a count. */
  isQuiet = false;
  readonly #request: IncomingMessage;
  readonly #parts: ExchangeParts;
  #log: Log | null = null;

  constructor(request: IncomingMessage, parts: ExchangeParts) {
    this.#request = request;
    this.#parts = parts;
    this.requestId = readRequestId(request);
    this.headers = ['X-Request-Id', this.requestId, ...parts.headers];
  }

  /** The log of this request. */
  get log(): Log {
    this.#log ??= this.#parts.log.child(this.labels());
    return this.#log;
  }

  /** What each line of the log says of the request. */
  labels(): Record<string, string | undefined> {
    return { request_id: this.requestId, ...readTrace(this.#request) };
  }

  /** The address that the anonymous budget is charged to. */
  get clientAddress(): string {
    return this.#parts.addresses.of(this.#request);
  }

  /** Scheme, host and port as the client knows them. */
  get origin(): string {
    return this.#parts.config.publicUrl ?? requestOrigin(this.#request, this.#parts.addresses);
  }
}

/** The client's own id when it is sane, so that its log and ours can be laid side by side. What looks like a credential is not. */
function readRequestId(request: IncomingMessage): string {
  const given = request.headers['x-request-id'];
  return typeof given === 'string' && /^(?!sk-|eyJ)[\w.-]{1,128}$/.test(given) ? given : randomUUID();
}

/** On the request itself: a WeakMap with an entry for each request costs V8 much (docs/performance.md). */
const key = Symbol('exchange');
type Opened = IncomingMessage & { [key]?: Exchange };

export function openExchange(request: IncomingMessage, exchange: Exchange): void {
  (request as Opened)[key] = exchange;
}

/** The request's exchange: the first middleware opens one for each. */
export function exchangeOf(request: IncomingMessage): Exchange {
  const exchange = (request as Opened)[key];
  if (!exchange) throw new Error('the request came in past the first middleware');
  return exchange;
}

/** Hands what the head will have to a response that a library writes. */
export function showHeaders(response: ServerResponse): void {
  const { headers } = exchangeOf(response.req);
  for (let index = 0; index < headers.length; index += 2) response.setHeader(headers[index] ?? '', headers[index + 1] ?? '');
  headers.length = 0;
}

/** Writes a JSON answer whole. */
export function sendJson(response: ServerResponse, status: number, body: unknown, headers?: Readonly<Record<string, string>>): void {
  sendText(response, status, JSON.stringify(body), 'application/json', headers);
}

/** Writes an answer whole. A HEAD request is answered with the same headers, without the body. */
export function sendText(
  response: ServerResponse,
  status: number,
  text: string,
  mediaType: string,
  headers: Readonly<Record<string, string>> = {},
): void {
  writeHead(response, status, { ...headers, 'Content-Type': mediaType, 'Content-Length': String(Buffer.byteLength(text)) });
  response.end(response.req.method === 'HEAD' ? undefined : text);
}

export function sendEmpty(response: ServerResponse, status: number, headers: Readonly<Record<string, string>> = {}): void {
  writeHead(response, status, headers);
  response.end();
}

/** As one list, which Node writes as it is: headers that are set one by one are checked, kept and sorted out again. */
function writeHead(response: ServerResponse, status: number, headers: Readonly<Record<string, string>>): void {
  const list = exchangeOf(response.req).headers;
  for (const name of Object.keys(headers)) list.push(name, headers[name] ?? '');
  response.writeHead(status, list);
}
