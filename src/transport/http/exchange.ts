import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { type Allowance, addRateLimitHeaders } from '../../access/ratelimits.ts';
import type { PrefetchedProject } from '../../access/scope.ts';
import type { Viewer } from '../../access/viewer.ts';
import type { CredentialProblem } from '../../kernel/fault.ts';
import type { Logger } from '../../platform/logger.ts';
import { type ClientAddresses, requestOrigin } from './addresses.ts';
import { type JsonObject, readJsonObject } from './body.ts';
import { standardHeaders } from './headers.ts';
import { readTrace } from './trace.ts';
import { readPath } from './url.ts';

/** A middleware without Express' methods. A rejected promise has the effect of `next(failure)`. */
export type Middleware = (request: IncomingMessage, response: ServerResponse, next: (failure?: unknown) => void) => unknown;

/** The dependencies of every exchange. */
export interface ExchangeDependencies {
  readonly log: Logger;
  readonly addresses: ClientAddresses;
  readonly config: { readonly publicUrl: string | null; readonly compresses: boolean };
}

/** One HTTP request and its response, from the first middleware on. Values that few requests need are computed on demand. */
export class Exchange {
  readonly requestId: string;
  /** Null without a credential; set once the credential has been checked. */
  viewer: Viewer | null = null;
  /** The query of the project that the request names, started along with the check of the credential. */
  prefetched: PrefetchedProject | null = null;
  /** The name of the route, or of the root field of the schema. Never a name that a client chose. */
  operation: string | null = null;
  /** Set for a fault before there is an operation: the template of the route, or which kind of path it is. Never the path itself. */
  route: string | null = null;
  /** The name that the client gave its GraphQL operation. */
  operationName: string | null = null;
  /** The headers of the response: name, value, name, value. */
  readonly headers: string[];
  /** Lets the user's next request begin, where the handler of this one ends only when its response has been read. */
  releasePermit: () => void = () => {};
  /** How long the request waited for others of its user, in milliseconds; null if it did not. */
  waitedMs: number | null = null;
  /** The size of the body, in bytes; 0 until it has been read. */
  bodyBytes = 0;
  /** The codes of the errors in the response, each once; null while there are none. */
  errorCodes: string[] | null = null;
  /** The problem with the credential, for the log alone. */
  reason: CredentialProblem | null = null;
  /** Whether the log and the metrics omit the request, as a monitor sends it every second. */
  isQuiet = false;
  #log: Logger | null = null;
  #body: Promise<JsonObject> | null = null;

  constructor(
    private readonly request: IncomingMessage,
    private readonly response: ServerResponse,
    private readonly dependencies: ExchangeDependencies,
  ) {
    this.requestId = readRequestId(request);
    this.headers = ['X-Request-Id', this.requestId, ...standardHeaders];
  }

  /** The log of this request. */
  get log(): Logger {
    this.#log ??= this.dependencies.log.child(this.labels());
    return this.#log;
  }

  /** The fields of each log line about the request. */
  labels(): Record<string, string | undefined> {
    return { request_id: this.requestId, ...readTrace(this.request) };
  }

  /** The body as a JSON object, read once. Throws as `readJsonObject` does. */
  readBody(): Promise<JsonObject> {
    this.#body ??= readJsonObject(this.request, this.response, this);
    return this.#body;
  }

  /** Updates what remains of the budget, also where a library has the headers of the response already. */
  recordAllowance(allowance: Allowance): void {
    const { headers, response } = this;
    addRateLimitHeaders(headers, allowance);
    if (!response.headersSent && response.hasHeader('RateLimit'))
      response.setHeader('RateLimit', headers[headers.indexOf('RateLimit') + 1] ?? '');
  }

  recordWait(milliseconds: number): void {
    this.waitedMs = (this.waitedMs ?? 0) + milliseconds;
  }

  recordError(code: string, reason?: CredentialProblem): void {
    this.errorCodes = addCode(this.errorCodes ?? [], code);
    this.reason ??= reason ?? null;
  }

  /** Whether the response has the format of GraphQL. */
  get isGraphql(): boolean {
    return readPath(this.request.url ?? '') === '/graphql';
  }

  /** Whether the client has closed its connection. */
  get isAbandoned(): boolean {
    return this.request.socket.destroyed;
  }

  /** Whether the client asks what its GraphQL operation costs. */
  get asksForCost(): boolean {
    return this.request.headers['x-graphql-cost'] === '1';
  }

  /** Whether a response may be compressed. */
  get compresses(): boolean {
    return this.dependencies.config.compresses;
  }

  /** The address that the anonymous budget is charged to. */
  get clientAddress(): string {
    return this.dependencies.addresses.of(this.request);
  }

  /** The key of the permit that the request runs with: the user, or the client address without one. */
  get permitKey(): string {
    return this.viewer?.userId ?? this.clientAddress;
  }

  /**
   * The key of the turns in which work of the request blocks the event loop: the user, or all clients without a credential together,
   * as one of them may have many addresses.
   */
  get turnKey(): string {
    return this.viewer?.userId ?? 'anonymous';
  }

  /** Scheme, host and port as the client knows them. */
  get origin(): string {
    return this.dependencies.config.publicUrl ?? requestOrigin(this.request, this.dependencies.addresses);
  }
}

/** How many codes of a response are logged and counted. */
const MAX_CODES = 10;

/** Adds a code that is not in the list, unless the list is full. */
export function addCode(codes: string[], code: string): string[] {
  if (codes.length < MAX_CODES && !codes.includes(code)) codes.push(code);
  return codes;
}

/**
 * The id that a client gives its request, so that its log and ours can be correlated, or a new one. One that may hold a
 * credential is not repeated.
 */
export function readRequestId(request: IncomingMessage): string {
  const given = request.headers['x-request-id'];
  return typeof given === 'string' && /^(?!sk-|.*(?:sk-portico-|eyJ))[\w.-]{1,128}$/.test(given) ? given : randomUUID();
}

/** The exchange is stored on the request itself: a WeakMap with an entry for each request costs V8 much (docs/performance.md). */
const key = Symbol('exchange');
type ExchangeRequest = IncomingMessage & { [key]?: Exchange };

export function attachExchange(request: IncomingMessage, exchange: Exchange): void {
  (request as ExchangeRequest)[key] = exchange;
}

/** The request's exchange, which the first middleware opens. */
export function exchangeOf(request: IncomingMessage): Exchange {
  const exchange = (request as ExchangeRequest)[key];
  if (!exchange) throw new Error('the request came in past the first middleware');
  return exchange;
}
