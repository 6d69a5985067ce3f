import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import cors from 'cors';
import express, { type NextFunction, type Request, type RequestHandler, type Response } from 'express';
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
import { exchangeOf, openExchange, sendEmpty, sendJson } from './exchange.ts';
import { sendFault } from './faults.ts';
import type { GraphqlDoor } from './graphql/door.ts';
import { createHealthDoor, type HealthParts } from './health.ts';
import { allowOrigins, type ClientAddresses, requestOrigin } from './peer.ts';
import { createReference } from './reference.ts';
import { createRestDoor } from './rest/door.ts';
import { bindRoute } from './rest/route.ts';
import { routes } from './rest/routes.ts';
import { readTrace } from './trace.ts';

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

/** The HTTP doors as one Express app: its order is the order of the checks. */
export function createHttpApp(parts: DoorParts): express.Express {
  const app = express();
  app.disable('x-powered-by');
  app.disable('etag');
  app.enable('case sensitive routing');
  app.enable('strict routing');
  const { graphql } = parts;
  const bound = routes.map((route) => bindRoute(parts.schema, route));

  app.use(beginExchange(parts));
  app.use(helmet({ contentSecurityPolicy: false, crossOriginResourcePolicy: { policy: 'cross-origin' } }));
  app.use(answerCors(parts));
  app.use(requireHost);
  app.use(answerOptions);
  app.use(createHealthDoor(parts));
  app.use(createReference(parts.schema, bound));
  if (parts.tokens.local) {
    const { jwks } = parts.tokens.local;
    app.get('/.well-known/jwks.json', (_request, response) => sendJson(response, 200, jwks, { 'Cache-Control': 'max-age=300' }));
  }
  app.get('/graphql', graphql.page);

  app.use(admit(parts));
  app.all('/graphql', graphql.handler);
  app.use('/v1', requireCredential, createRestDoor(bound, parts));
  app.use((_request, _response, next) => next(Fault.notFound()));
  app.use(answerFailure);
  return app;
}

const methods = ['GET', 'HEAD', 'POST', 'PUT', 'DELETE'];
const exposedHeaders = ['RateLimit', 'RateLimit-Policy', 'Retry-After', 'ETag', 'X-Request-Id', 'Deprecation', 'Sunset'];

/** RFC 9112 has it so; Node's own refusal has no body. */
const requireHost: RequestHandler = (request, _response, next) => {
  const isGiven = request.headers.host !== undefined || request.httpVersion !== '1.1';
  next(isGiven ? undefined : Fault.invalidRequest('The header Host is missing.'));
};

/** Not a route: one would decode every path, and a path that cannot be decoded would get past the limits. */
const answerOptions: RequestHandler = (request, response, next) => {
  if (request.method === 'OPTIONS') sendEmpty(response, 204, { Allow: methods.join(', ') });
  else next();
};

/** Opens the request's exchange, and writes its line to the log when the answer has gone. */
function beginExchange({ log, config, addresses, metrics, lifecycle }: DoorParts): RequestHandler {
  return (request, response, next) => {
    const began = performance.now();
    const requestId = readRequestId(request);
    response.setHeader('X-Request-Id', requestId);
    // Whoever keeps the connection would find it closed on the next request.
    if (lifecycle.isClosing) response.setHeader('Connection', 'close');
    const origin = config.publicUrl ?? requestOrigin(request, addresses);
    const exchange = {
      requestId,
      log: log.child({ request_id: requestId, ...readTrace(request) }),
      clientAddress: addresses.of(request),
      origin,
      viewer: null,
      operation: null,
      operationName: null,
      isQuiet: false,
    };
    openExchange(request, exchange);
    response.once('close', () => {
      const { viewer, operation, operationName, isQuiet } = exchangeOf(request);
      if (isQuiet) return;
      const duration = performance.now() - began;
      const status = response.headersSent ? response.statusCode : null;
      metrics.requests.inc({ operation: operation ?? 'none', status: status ?? 0 });
      const isStream = response.getHeader('Content-Type') === 'text/event-stream';
      if (!isStream) metrics.requestSeconds.observe({ operation: operation ?? 'none' }, duration / 1000);
      const duration_ms = Math.round(duration * 100) / 100;
      const operation_name = operationName ?? undefined;
      exchange.log.info({ method: request.method, operation, operation_name, status, duration_ms, user_id: viewer?.userId }, 'request');
    });
    next();
  };
}

/** The client's own id when it is sane, so that its log and ours can be laid side by side. What looks like a credential is not. */
function readRequestId(request: IncomingMessage): string {
  const given = request.headers['x-request-id'];
  return typeof given === 'string' && /^(?!sk-|eyJ)[\w.-]{1,128}$/.test(given) ? given : randomUUID();
}

function answerCors(parts: DoorParts): RequestHandler {
  const isAllowed = allowOrigins(parts);
  const answer = cors((request, options) => {
    const { origin } = request.headers;
    const isGood = origin !== undefined && isAllowed(origin, request as IncomingMessage);
    options(null, { origin: isGood, exposedHeaders, methods, maxAge: 7200, preflightContinue: true });
  }) as RequestHandler;
  return (request, response, next) => {
    // Also where the answer names no origin: a cache must not show it to another page.
    response.vary('Origin');
    answer(request, response, next);
  };
}

/** Checks the credential and spends one of its budget: a good one of its user's, none or a bad one of the address's. */
function admit({ database, tokens, limits }: DoorParts): RequestHandler {
  return async (request, response, next) => {
    const exchange = exchangeOf(request);
    try {
      const viewer = await identifyRequest(request, database, tokens);
      if (viewer instanceof Fault) {
        showAllowance(response, await limits.spendAnonymous(exchange.clientAddress));
        throw viewer;
      }
      exchange.viewer = viewer;
      showAllowance(response, await (viewer ? limits.spendUser(viewer.userId) : limits.spendAnonymous(exchange.clientAddress)));
    } catch (failure) {
      if (failure instanceof LimitFault) showAllowance(response, failure.allowance);
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

function showAllowance(response: Response, allowance: Allowance): void {
  for (const [name, value] of Object.entries(limitHeaders(allowance))) response.setHeader(name, value);
}

function requireCredential(request: Request, _response: Response, next: NextFunction): void {
  next(exchangeOf(request).viewer ? undefined : Fault.notAuthenticated());
}

/** The last of the chain: whatever went wrong becomes a fault in the form of its door. */
function answerFailure(failure: unknown, request: Request, response: Response, _next: NextFunction): void {
  if (response.headersSent) {
    response.destroy();
    return;
  }
  // The router could not decode the path: there is nothing at such an address.
  const fault = failure instanceof URIError ? Fault.notFound() : Fault.from(failure);
  sendFault(request, response, fault);
}
