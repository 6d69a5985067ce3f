import express from 'express';
import type { RateLimits } from '../../access/ratelimits.ts';
import { exchangeOf, type Middleware } from '../http/exchange.ts';
import { addHealth, type HealthDependencies } from '../http/health.ts';
import { sendJson } from '../http/send.ts';
import { addDesk, type DeskDependencies, deskDocument } from './desk.ts';
import { addReference } from './reference.ts';

export interface PageDependencies extends HealthDependencies, DeskDependencies {
  readonly rateLimits: RateLimits;
}

/**
 * The pages, which need no credential and have a budget of their own, and the health endpoints. Requests for v1 resources and for
 * GraphQL, which are most requests, skip their router.
 */
export function createPageRouter(dependencies: PageDependencies): Middleware {
  const { rateLimits, tokens } = dependencies;
  const router = express.Router({ caseSensitive: true, strict: true });
  /** Charges the budget of pages, whose responses do not show what is left of it. */
  const chargePage: Middleware = async (request, _response, next) => {
    await rateLimits.spendPage(exchangeOf(request).clientAddress);
    next();
  };
  addHealth(router, dependencies);
  addDesk(router, dependencies, chargePage);
  addReference(router, deskDocument(dependencies), chargePage);
  if (tokens.local) {
    const { jwks } = tokens.local;
    router.get('/.well-known/jwks.json', chargePage, (_request, response) =>
      sendJson(response, 200, jwks, { 'Cache-Control': 'max-age=300' }),
    );
  }
  return (request, response, next) => {
    const { method, url = '' } = request;
    if (url.startsWith('/v1/organizations/') || (method === 'POST' && url === '/graphql')) return next();
    router(request as express.Request, response as express.Response, next);
  };
}
