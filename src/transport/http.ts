import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import cors from 'cors';
import express, { type NextFunction, type RequestHandler } from 'express';
import type { GraphQLSchema } from 'graphql';
import helmet from 'helmet';
import { readBearer } from '../access/credential.ts';
import { type Allowance, LimitFault, type Limits, limitHeaders } from '../access/limits.ts';
import type { Tokens } from '../access/tokens.ts';
import { identify, type Viewer } from '../access/viewer.ts';
import { Fault } from '../kernel/fault.ts';
import type { Database } from '../platform/database.ts';
import type { Log } from '../platform/log.ts';
import type { ContextParts } from './context.ts';
import { Exchange, exchangeOf, type Middleware, openExchange, sendEmpty, sendJson, showHeaders } from './exchange.ts';
import { sendFault } from './faults.ts';
import type { GraphqlDoor } from './graphql/door.ts';
import { createHealthDoor, type HealthParts } from './health.ts';
import { allowOrigins, type ClientAddresses } from './peer.ts';
import { createReference } from './reference.ts';
import { createRestDoor } from './rest/door.ts';
import { type BoundRoute, bindRoute } from './rest/route.ts';
import { routes } from './rest/routes.ts';

export interface DoorParts extends ContextParts, HealthParts {
  readonly schema: GraphQLSchema;
  readonly addresses: ClientAddresses;
  readonly graphql: GraphqlDoor;
  readonly limits: Limits;
  readonly log: Log;
  readonly config: {
    readonly publicUrl: string | null;
    readonly allowedOrigins: readonly string[];
  };
}

/**
 * The HTTP doors, in the order of the checks. A bare Express router: an application would change the prototypes of each
 * request and response, after which all that Node does with them is several times as slow. What is written with
 * Express' own methods is an application below it.
 */
export function createHttpHandler(parts: DoorParts): RequestListener {
  const bound = routes.map((route) => bindRoute(parts.schema, route));
  const router = express.Router({ caseSensitive: true, strict: true });
  router.use(beginExchange(parts));
  router.use(answerCors(parts));
  router.use(exceptResources(createPages(parts, bound)));
  router.use(admit(parts));
  router.use(createRestDoor(bound, parts));
  router.all('/graphql', parts.graphql.handler as RequestHandler);
  router.use((_request: IncomingMessage, _response: ServerResponse, next: NextFunction) => next(Fault.notFound()));
  router.use(answerFailure);
  return (request, response) => router(request as express.Request, response as express.Response, () => {});
}

/** What is neither counted nor needs a credential. */
function createPages(parts: DoorParts, bound: readonly BoundRoute[]): express.Express {
  const app = express();
  app.disable('x-powered-by');
  app.disable('etag');
  app.enable('case sensitive routing');
  app.enable('strict routing');
  app.use(createHealthDoor(parts));
  app.use(createReference(parts.schema, bound));
  if (parts.tokens.local) {
    const { jwks } = parts.tokens.local;
    app.get('/.well-known/jwks.json', (_request, response) => sendJson(response, 200, jwks, { 'Cache-Control': 'max-age=300' }));
  }
  app.get('/graphql', parts.graphql.page);
  return app;
}

/** Most requests are for the resources of v1, or GraphQL: they need not look through the pages. */
function exceptResources(pages: RequestHandler): Middleware {
  return (request, response, next) => {
    const { method, url = '' } = request;
    if (url.startsWith('/v1/organizations/') || (method === 'POST' && url === '/graphql')) return next();
    showHeaders(response);
    pages(request as express.Request, response as express.Response, next);
  };
}

const methods = ['GET', 'HEAD', 'POST', 'PUT', 'DELETE'];
const exposedHeaders = ['RateLimit', 'RateLimit-Policy', 'Retry-After', 'ETag', 'X-Request-Id', 'Deprecation', 'Sunset'];

/**
 * The headers of every answer, found once. Also one that names no origin depends on it: a cache must not show it to
 * another page.
 */
const standardHeaders: readonly string[] = (() => {
  const headers = ['Vary', 'Origin'];
  const response = { setHeader: (name: string, value: string) => headers.push(name, value), removeHeader: () => {} };
  const secure = helmet({ contentSecurityPolicy: false, crossOriginResourcePolicy: { policy: 'cross-origin' } });
  secure({} as IncomingMessage, response as unknown as ServerResponse, () => {});
  return headers;
})();

/** Opens the request's exchange, and writes its line to the log when the answer has gone. */
function beginExchange(doorParts: DoorParts): Middleware {
  const { log, metrics, lifecycle } = doorParts;
  const parts = { ...doorParts, headers: standardHeaders };
  return (request, response, next) => {
    const began = performance.now();
    const exchange = new Exchange(request, parts);
    openExchange(request, exchange);
    // Whoever keeps the connection would find it closed on the next request.
    if (lifecycle.isClosing) exchange.headers.push('Connection', 'close');
    response.once('close', () => {
      const { viewer, operation, operationName, isQuiet } = exchange;
      if (isQuiet) return;
      const duration = performance.now() - began;
      const status = response.headersSent ? response.statusCode : null;
      metrics.requests.inc({ operation: operation ?? 'none', status: status ?? 0 });
      const isStream = response.getHeader('Content-Type') === 'text/event-stream';
      if (!isStream) metrics.requestSeconds.observe({ operation: operation ?? 'none' }, duration / 1000);
      if (!log.isLevelEnabled('info')) return;
      const duration_ms = Math.round(duration * 100) / 100;
      const operation_name = operationName ?? undefined;
      const user_id = viewer?.userId;
      log.info({ ...exchange.labels(), method: request.method, operation, operation_name, status, duration_ms, user_id }, 'request');
    });
    next();
  };
}

/**
 * CORS, for a request that comes from another page. OPTIONS is answered whatever the path: a route would decode it, and
 * one that cannot be decoded would get past the limits. A missing Host is refused, as RFC 9112 has it: Node's own refusal
 * has no body.
 */
function answerCors(parts: DoorParts): Middleware {
  const isAllowed = allowOrigins(parts);
  const addHeaders = cors((request, options) => {
    const isGood = isAllowed(String(request.headers.origin), request as IncomingMessage);
    options(null, { origin: isGood, exposedHeaders, methods, maxAge: 7200, preflightContinue: true });
  });
  return (request, response, next) => {
    const { host, origin } = request.headers;
    const goOn = () => {
      if (host === undefined && request.httpVersion === '1.1') next(Fault.invalidRequest('The header Host is missing.'));
      else if (request.method === 'OPTIONS') sendEmpty(response, 204, { Allow: methods.join(', ') });
      else next();
    };
    if (origin === undefined) goOn();
    else addHeaders(request, response, goOn);
  };
}

/** Checks the credential and spends one of its budget: a good one of its user's, none or a bad one of the address's. */
function admit({ database, tokens, limits }: DoorParts): Middleware {
  return async (request, _response, next) => {
    const exchange = exchangeOf(request);
    try {
      const viewer = await identifyRequest(request, database, tokens);
      if (viewer instanceof Fault) {
        showAllowance(exchange, await limits.spendAnonymous(exchange.clientAddress));
        throw viewer;
      }
      exchange.viewer = viewer;
      showAllowance(exchange, await (viewer ? limits.spendUser(viewer.userId) : limits.spendAnonymous(exchange.clientAddress)));
    } catch (failure) {
      if (failure instanceof LimitFault) showAllowance(exchange, failure.allowance);
      return next(failure);
    }
    next();
  };
}

/** The viewer, null without a credential, or the refusal of a bad one as a value: it still has to be paid for. */
async function identifyRequest(request: IncomingMessage, database: Database, tokens: Tokens): Promise<Viewer | Fault | null> {
  try {
    const credential = readBearer(request);
    return credential === null ? null : await identify(database, tokens, credential);
  } catch (failure) {
    if (failure instanceof Fault && failure.code === 'not_authenticated') return failure;
    throw failure;
  }
}

function showAllowance({ headers }: Exchange, allowance: Allowance): void {
  for (const [name, value] of Object.entries(limitHeaders(allowance))) headers.push(name, value);
}

/** The last of the chain: whatever went wrong becomes a fault in the form of its door. */
function answerFailure(failure: unknown, request: IncomingMessage, response: ServerResponse, _next: NextFunction): void {
  if (response.headersSent) {
    response.destroy();
    return;
  }
  // The router could not decode the path: there is nothing at such an address.
  const fault = failure instanceof URIError ? Fault.notFound() : Fault.from(failure);
  sendFault(request, response, fault);
}
