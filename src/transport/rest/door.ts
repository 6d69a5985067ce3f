import type { IncomingMessage, ServerResponse } from 'node:http';
import express, { type ErrorRequestHandler, type RequestHandler } from 'express';
import type { Context } from '../../graph/context.ts';
import { Fault } from '../../kernel/fault.ts';
import type { Pipeline } from '../../pipeline/pipeline.ts';
import { sendCompressed } from '../http/compress.ts';
import { type ContextParts, openContext } from '../http/context.ts';
import { exchangeOf, type Middleware } from '../http/exchange.ts';
import { sendEmpty } from '../http/send.ts';
import { queryText, readPath, readQueryString } from '../http/url.ts';
import type { BoundRoute, RouteRequest } from './route.ts';

type RestParts = ContextParts & {
  readonly pipeline: Pipeline;
  /** Checks the credential; knows the parameters of the path. */
  readonly admitRequest: Middleware;
};

/** The v1 door: Express finds the route of the table, and its parameters in the path. */
export function createRestDoor(bound: readonly BoundRoute[], parts: RestParts): express.Router {
  const router = express.Router({ caseSensitive: true, strict: true });
  const guards = [parts.admitRequest, requireViewer] as RequestHandler[];
  for (const route of bound) {
    router[route.route.method](route.route.path, ...guards, (request, response) =>
      answer(route, request.params as Record<string, string>, parts, request, response),
    );
  }
  // Whatever lies below /v1 needs a credential, also where there is nothing.
  router.use(forgiveAddress);
  router.use(isBelow as RequestHandler, ...guards, ((_request, _response, next) => next(Fault.notFound())) as RequestHandler);
  return router;
}

/** An address that cannot be decoded is one where there is nothing. */
const forgiveAddress: ErrorRequestHandler = (failure, _request, _response, next) => next(failure instanceof URIError ? undefined : failure);

const isBelow: Middleware = (request, _response, next) => {
  const path = readPath(request.url ?? '');
  if (path === '/v1' || path.startsWith('/v1/')) next();
  else next('router');
};

const requireViewer: Middleware = (request, _response, next) => {
  if (exchangeOf(request).viewer) next();
  else next(Fault.notAuthenticated());
};

async function answer(
  { name, headers, serve }: BoundRoute,
  pathParameters: Readonly<Record<string, string>>,
  parts: RestParts,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const exchange = exchangeOf(request);
  const { url = '' } = request;
  exchange.operation = name;
  for (const [header, value] of Object.entries(headers)) exchange.headers.push(header, value);
  const context = openContext(parts, exchange, name);
  const open = () => context;
  const answer = await serve({
    pathParameters,
    readQuery: () => readQueryString(url),
    ifMatch: request.headers['if-match'],
    idempotencyKey: request.headers['idempotency-key'] as string | undefined,
    readUrl: () => exchange.origin + readPath(url) + queryText(url),
    readBody: () => exchange.readBody(),
    openContext: open,
    execute: executeChecked(parts.pipeline, open),
  });
  if (answer.body === undefined) sendEmpty(response, answer.status, answer.headers);
  else sendCompressed(response, answer.status, await context.wordAnswer(answer.body), 'application/json', answer.headers);
}

/** The way of the table's documents through the pipeline, with the context that a request has. */
export function executeChecked({ getEnveloped }: Pipeline, openContext: () => Context): RouteRequest['execute'] {
  return async (document, variableValues, advice) => {
    const { schema, contextFactory, execute } = getEnveloped({ isChecked: true, advice, openContext });
    return execute({ schema, document, variableValues, contextValue: await contextFactory() });
  };
}
