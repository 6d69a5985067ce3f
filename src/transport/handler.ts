import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import express, { type NextFunction, type RequestHandler } from 'express';
import type { GraphQLSchema } from 'graphql';
import { admit } from '../access/admission.ts';
import { readBearer } from '../access/credential.ts';
import { addRateLimitHeaders, RateLimitFault } from '../access/ratelimits.ts';
import { Fault } from '../kernel/fault.ts';
import type { Pipeline } from '../pipeline/pipeline.ts';
import { toFault } from '../platform/errors.ts';
import type { Logger } from '../platform/logger.ts';
import { createProjectReader, type ReadProject } from './graphql/handler.ts';
import type { ClientAddresses } from './http/addresses.ts';
import type { ContextDependencies } from './http/context.ts';
import { type AddCorsHeaders, answerCors } from './http/cors.ts';
import { exchangeOf, type Middleware } from './http/exchange.ts';
import { sendFault } from './http/faults.ts';
import { logRequests } from './http/requestlog.ts';
import { readTarget } from './http/url.ts';
import { createPageRouter, type PageDependencies } from './pages/router.ts';
import type { BoundRoute } from './rest/route.ts';
import { createRestRouter } from './rest/router.ts';

export interface HttpDependencies extends ContextDependencies, PageDependencies {
  readonly schema: GraphQLSchema;
  readonly addresses: ClientAddresses;
  readonly addCorsHeaders: AddCorsHeaders;
  readonly pipeline: Pipeline;
  readonly graphql: Middleware;
  readonly rest: readonly BoundRoute[];
  readonly log: Logger;
  readonly config: PageDependencies['config'] & {
    readonly publicUrl: string | null;
    readonly compresses: boolean;
  };
}

/**
 * Everything over HTTP, in the order of the checks. All of them are bare Express routers: an application would change the
 * prototypes of each request and response, which makes every later use of them in Node several times as slow.
 */
export function createHttpHandler(dependencies: HttpDependencies): RequestListener {
  const { pipeline, schema, services, rest, graphql } = dependencies;
  const router = express.Router({ caseSensitive: true, strict: true });
  router.use(logRequests(dependencies));
  router.use(answerCors(dependencies.addCorsHeaders));
  router.use(createPageRouter(dependencies));
  router.use(createRestRouter(rest, { ...dependencies, admitRequest: createAdmission(dependencies, readPathProject) }));
  router.use(createAdmission(dependencies, createProjectReader({ ...pipeline, ...services, schema })) as RequestHandler);
  router.all('/graphql', graphql as RequestHandler);
  router.use((_request: IncomingMessage, _response: ServerResponse, next: NextFunction) => next(Fault.notFound()));
  router.use(answerFailure);
  return (request, response) => {
    // Yoga reads a target that is not a path differently with each version of Node.js.
    request.url = readTarget(request.url ?? '');
    router(request as express.Request, response as express.Response, () => {});
  };
}

/** Reads the project of a v1 request from the parameters of its path. */
const readPathProject: ReadProject = (request) => {
  const { organization_id: organizationId, project_id: projectId } = (request as express.Request).params as Record<string, string>;
  return projectId ? { organizationId, projectId } : null;
};

/** Checks the credential and spends one request of its budget. */
function createAdmission(dependencies: HttpDependencies, readProject: ReadProject): Middleware {
  return async (request, _response, next) => {
    const exchange = exchangeOf(request);
    const { prefetched, fault, allowance } = await admit(dependencies, {
      readCredential: () => readBearer(request),
      readAddress: () => exchange.clientAddress,
      readProject: (userId) => readProject(request, userId),
      recordViewer: (viewer) => {
        exchange.viewer = viewer;
      },
    });
    addRateLimitHeaders(exchange.headers, allowance);
    exchange.prefetched = prefetched;
    next(fault);
  };
}

/** The error handler: any failure becomes a fault in the format of its API. */
function answerFailure(failure: unknown, request: IncomingMessage, response: ServerResponse, _next: NextFunction): void {
  if (response.headersSent) {
    response.destroy();
    return;
  }
  if (failure instanceof RateLimitFault) addRateLimitHeaders(exchangeOf(request).headers, failure.allowance);
  // The router could not decode the path, so that no route matches.
  const fault = failure instanceof URIError ? Fault.notFound() : toFault(failure);
  sendFault(request, response, fault);
}
