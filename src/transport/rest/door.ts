import type { IncomingMessage, ServerResponse } from 'node:http';
import { Fault } from '../../kernel/fault.ts';
import { readJsonObject } from '../body.ts';
import { type ContextParts, openContext } from '../context.ts';
import { exchangeOf, type Middleware, sendEmpty, sendJson } from '../exchange.ts';
import { pathPattern, queryText, readPath, readQueryString } from '../query.ts';
import type { BoundRoute } from './route.ts';

/**
 * The v1 door: the table's routes, as they are bound to the schema. Whatever lies below /v1 needs a credential, also
 * where there is nothing.
 */
export function createRestDoor(bound: readonly BoundRoute[], parts: ContextParts): Middleware {
  const patterns = bound.map((route) => ({ route, pattern: pathPattern(route.route.path) }));
  return async (request, response, next) => {
    const path = readPath(request.url ?? '');
    if (path !== '/v1' && !path.startsWith('/v1/')) return next();
    if (!exchangeOf(request).viewer) throw Fault.notAuthenticated();
    // HEAD is GET without a body, which is left out where the answer is written.
    const method = request.method === 'HEAD' ? 'get' : request.method?.toLowerCase();
    for (const { route, pattern } of patterns) {
      const match = route.route.method === method && pattern.exec(path);
      if (match) return answer(route, decode(match.groups ?? {}), parts, request, response);
    }
    next();
  };
}

/** Throws a URIError where a part of the path is not percent-encoded UTF-8: there is nothing at such an address. */
function decode(parameters: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(parameters).map(([name, value]) => [name, decodeURIComponent(value)]));
}

async function answer(
  { name, headers, serve }: BoundRoute,
  pathParameters: Readonly<Record<string, string>>,
  parts: ContextParts,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const exchange = exchangeOf(request);
  const { url = '' } = request;
  exchange.operation = name;
  for (const [header, value] of Object.entries(headers)) exchange.headers.push(header, value);
  const answer = await serve(
    {
      pathParameters,
      readQuery: () => readQueryString(url),
      ifMatch: request.headers['if-match'],
      readUrl: () => exchange.origin + readPath(url) + queryText(url),
      readBody: () => readJsonObject(request),
    },
    () => openContext(parts, exchange),
  );
  if (answer.body === undefined) sendEmpty(response, answer.status, answer.headers);
  else sendJson(response, answer.status, answer.body, answer.headers);
}
