import type { ServerResponse } from 'node:http';
import express, { type ErrorRequestHandler, type RequestHandler } from 'express';
import type { Context } from '../../graph/context.ts';
import { Fault } from '../../kernel/fault.ts';
import type { Pipeline } from '../../pipeline/pipeline.ts';
import { sendCompressed } from '../http/compress.ts';
import { type ContextDependencies, openContext } from '../http/context.ts';
import { exchangeOf, type Middleware } from '../http/exchange.ts';
import { withPermit } from '../http/permit.ts';
import { sendEmpty } from '../http/send.ts';
import { isBelowV1, queryText, readPath, readQueryString } from '../http/url.ts';
import type { BoundRoute, RouteRequest } from './route.ts';

interface RestDependencies extends ContextDependencies {
  readonly pipeline: Pipeline;
  /** Checks the credential; reads the parameters of the path. */
  readonly admitRequest: Middleware;
}

/** The v1 API: Express matches the path with the routes of the table, and reads its parameters. */
export function createRestRouter(bound: readonly BoundRoute[], dependencies: RestDependencies): express.Router {
  const router = express.Router({ caseSensitive: true, strict: true });
  const guards = [dependencies.admitRequest, requireViewer] as RequestHandler[];
  for (const boundRoute of bound) {
    const { route, name, headers } = boundRoute;
    const run = withPermit(dependencies, (request, response) => serve(boundRoute, dependencies, request as express.Request, response));
    const announce: Middleware = (request, _response, next) => {
      for (const [header, value] of Object.entries(headers)) exchangeOf(request).headers.push(header, value);
      next();
    };
    const handler: Middleware = (request, response, next) => {
      exchangeOf(request).operation = name;
      return run(request, response, next);
    };
    router[route.method](route.path, ...([announce, ...guards, handler] as RequestHandler[]));
  }
  // Every path below /v1 requires a credential, even one that does not exist.
  router.use(ignoreMalformedPath);
  router.use(skipUnlessV1 as RequestHandler, ...guards, ((_request, _response, next) => next(Fault.notFound())) as RequestHandler);
  return router;
}

/** A path that cannot be decoded does not exist. */
const ignoreMalformedPath: ErrorRequestHandler = (failure, _request, _response, next) =>
  next(failure instanceof URIError ? undefined : failure);

const skipUnlessV1: Middleware = (request, _response, next) => {
  if (isBelowV1(readPath(request.url ?? ''))) next();
  else next('router');
};

const requireViewer: Middleware = (request, _response, next) => {
  if (exchangeOf(request).viewer) next();
  else next(Fault.notAuthenticated());
};

async function serve(route: BoundRoute, dependencies: RestDependencies, request: express.Request, response: ServerResponse): Promise<void> {
  const exchange = exchangeOf(request);
  const { url } = request;
  const context = openContext(dependencies, exchange, route.name);
  const getContext = () => context;
  const { status, headers, body } = await route.serve({
    pathParameters: request.params as Record<string, string>,
    readQuery: () => readQueryString(url),
    ifMatch: request.headers['if-match'],
    idempotencyKey: request.headers['idempotency-key'] as string | undefined,
    readUrl: () => exchange.origin + readPath(url) + queryText(url),
    readBody: () => exchange.readBody(),
    openContext: getContext,
    execute: createExecutor(dependencies.pipeline, getContext),
  });
  if (body === undefined) sendEmpty(response, status, headers);
  else sendCompressed(response, status, await context.serializeResponse(body), 'application/json', headers);
}

/** Executes the table's documents by the pipeline, in the context of a request. */
export function createExecutor({ getEnveloped }: Pipeline, openContext: () => Context): RouteRequest['execute'] {
  return async (document, variableValues, advice) => {
    const { schema, contextFactory, execute } = getEnveloped({ isChecked: true, advice, openContext });
    return execute({ schema, document, variableValues, contextValue: await contextFactory() });
  };
}
