import express, { type Router } from 'express';
import type { GraphQLSchema } from 'graphql';
import { createContext } from '../../graph/context.ts';
import type { Database } from '../../platform/database.ts';
import { readJsonObject } from '../body.ts';
import { exchangeOf, sendEmpty, sendJson } from '../exchange.ts';
import { type BoundRoute, bindRoute } from './route.ts';
import { routes } from './routes.ts';

/** The v1 door: the table's routes, bound to the schema. */
export function createRestDoor({ schema, database }: { schema: GraphQLSchema; database: Database }): Router {
  const router = express.Router({ caseSensitive: true, strict: true });
  for (const route of routes) mount(router, bindRoute(schema, route), database);
  return router;
}

function mount(router: Router, { route, name, serve }: BoundRoute, database: Database): void {
  router[route.method](route.path.replace(/^\/v1/, ''), async (request, response) => {
    const exchange = exchangeOf(request);
    exchange.operation = name;
    const { log, viewer, origin } = exchange;
    const [, query = ''] = request.originalUrl.split('?', 2);
    const answer = await serve(
      {
        pathParameters: request.params as Record<string, string>,
        query: new URLSearchParams(query),
        ifMatch: request.headers['if-match'],
        url: origin + request.originalUrl,
        readBody: () => readJsonObject(request),
      },
      () => createContext({ database, log, viewer, isClientDocument: false }),
    );
    if (answer.body === undefined) sendEmpty(response, answer.status, answer.headers);
    else sendJson(response, answer.status, answer.body, answer.headers);
  });
}
