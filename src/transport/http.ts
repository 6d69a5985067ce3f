import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import cors from 'cors';
import express, { type NextFunction, type Request, type RequestHandler, type Response } from 'express';
import type { GraphQLSchema } from 'graphql';
import helmet from 'helmet';
import proxyAddr from 'proxy-addr';
import { readBearer } from '../access/credential.ts';
import { type Allowance, LimitFault, type Limits, limitHeaders } from '../access/limits.ts';
import type { Tokens } from '../access/tokens.ts';
import { identify, type Viewer } from '../access/viewer.ts';
import { Fault } from '../kernel/fault.ts';
import type { Database } from '../platform/database.ts';
import type { Log } from '../platform/log.ts';
import { exchangeOf, openExchange, sendEmpty, sendJson } from './exchange.ts';
import { sendFault } from './faults.ts';
import { createGraphqlDoor } from './graphql/door.ts';
import { createRestDoor } from './rest/door.ts';

export interface Services {
  readonly schema: GraphQLSchema;
  readonly database: Database;
  readonly tokens: Tokens;
  readonly limits: Limits;
  readonly log: Log;
  readonly config: {
    readonly publicUrl: string | null;
    readonly allowedOrigins: readonly string[];
    readonly trustedProxies: readonly string[];
  };
}

/** The HTTP doors as one Express app: its order is the order of the checks. */
export function createHttpApp(services: Services): express.Express {
  const app = express();
  app.disable('x-powered-by');
  app.disable('etag');
  app.enable('case sensitive routing');
  app.enable('strict routing');
  const graphql = createGraphqlDoor(services);

  app.use(beginExchange(services));
  app.use(helmet({ contentSecurityPolicy: false, crossOriginResourcePolicy: { policy: 'cross-origin' } }));
  app.use(cors({ origin: corsOrigin(services), exposedHeaders, methods, maxAge: 7200, preflightContinue: true }));
  app.options('/{*any}', (_request, response) => sendEmpty(response, 204, { Allow: methods.join(', ') }));
  app.get('/', (_request, response) => sendJson(response, 200, index));
  if (services.tokens.local) {
    const { jwks } = services.tokens.local;
    app.get('/.well-known/jwks.json', (_request, response) => sendJson(response, 200, jwks, { 'Cache-Control': 'max-age=300' }));
  }
  app.get('/graphql', graphql.page);

  app.use(admit(services));
  app.all('/graphql', graphql.handler);
  app.use('/v1', requireCredential, createRestDoor(services));
  app.use((_request, _response, next) => next(Fault.notFound()));
  app.use(answerFailure);
  return app;
}

const methods = ['GET', 'HEAD', 'POST', 'PUT', 'DELETE'];
const exposedHeaders = ['RateLimit', 'RateLimit-Policy', 'Retry-After', 'ETag', 'X-Request-Id'];
const index = { name: 'Portico', graphql: '/graphql', rest: '/v1' };

/** Opens the request's exchange, and writes its line to the log when the answer has gone. */
function beginExchange({ log, config }: Services): RequestHandler {
  const isTrusted = proxyAddr.compile([...config.trustedProxies]);
  return (request, response, next) => {
    const began = performance.now();
    const requestId = readRequestId(request);
    response.setHeader('X-Request-Id', requestId);
    const origin = config.publicUrl ?? requestOrigin(request, isTrusted);
    const exchange = {
      requestId,
      log: log.child({ request_id: requestId }),
      clientAddress: proxyAddr(request, isTrusted),
      origin,
      viewer: null,
      operation: null,
    };
    openExchange(request, exchange);
    response.once('close', () => {
      const { viewer, operation } = exchangeOf(request);
      const duration_ms = Math.round((performance.now() - began) * 100) / 100;
      const status = response.headersSent ? response.statusCode : null;
      exchange.log.info({ method: request.method, operation, status, duration_ms, user_id: viewer?.userId }, 'request');
    });
    next();
  };
}

/** The client's own id when it is sane, so that its log and ours can be laid side by side. */
function readRequestId(request: IncomingMessage): string {
  const given = request.headers['x-request-id'];
  return typeof given === 'string' && /^[\w.-]{1,128}$/.test(given) ? given : randomUUID();
}

function requestOrigin(request: IncomingMessage, isTrusted: (address: string, distance: number) => boolean): string {
  const isBehindProxy = isTrusted(request.socket.remoteAddress ?? '', 0);
  const forwarded = isBehindProxy
    ? String(request.headers['x-forwarded-proto'] ?? '')
        .split(',')[0]
        ?.trim()
    : '';
  const host = request.headers.host ?? 'localhost';
  const origin = `${forwarded === 'https' ? 'https' : 'http'}://${host}`;
  return URL.canParse(origin) ? new URL(origin).origin : 'http://localhost';
}

/** The origins of the list, and the server's own. */
function corsOrigin({ config }: Services): cors.CorsOptions['origin'] {
  const allowed = new Set([...config.allowedOrigins, ...(config.publicUrl ? [new URL(config.publicUrl).origin] : [])]);
  return (origin, answer) => answer(null, origin !== undefined && allowed.has(origin));
}

/** Checks the credential and spends one of its budget: a good one of its user's, none or a bad one of the address's. */
function admit({ database, tokens, limits }: Services): RequestHandler {
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
