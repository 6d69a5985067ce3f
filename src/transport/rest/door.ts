import express, { type Router } from 'express';
import { readJsonObject } from '../body.ts';
import { type ContextParts, openContext } from '../context.ts';
import { exchangeOf, sendEmpty, sendJson } from '../exchange.ts';
import { queryText, readQueryString } from '../query.ts';
import type { BoundRoute } from './route.ts';

/** The v1 door: the table's routes, as they are bound to the schema. */
export function createRestDoor(bound: readonly BoundRoute[], parts: ContextParts): Router {
  const router = express.Router({ caseSensitive: true, strict: true });
  for (const route of bound) mount(router, route, parts);
  return router;
}

function mount(router: Router, { route, name, headers, serve }: BoundRoute, parts: ContextParts): void {
  router[route.method](route.path.replace(/^\/v1/, ''), async (request, response) => {
    const exchange = exchangeOf(request);
    exchange.operation = name;
    const { origin } = exchange;
    for (const [header, value] of Object.entries(headers)) response.setHeader(header, value);
    const answer = await serve(
      {
        pathParameters: request.params as Record<string, string>,
        readQuery: () => readQueryString(request.originalUrl),
        ifMatch: request.headers['if-match'],
        url: origin + request.baseUrl + request.path + queryText(request.originalUrl),
        readBody: () => readJsonObject(request),
      },
      () => openContext(parts, exchange, false),
    );
    if (answer.body === undefined) sendEmpty(response, answer.status, answer.headers);
    else sendJson(response, answer.status, answer.body, answer.headers);
  });
}
