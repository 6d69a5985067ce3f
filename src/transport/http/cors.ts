import type { IncomingMessage, ServerResponse } from 'node:http';
import cors, { type CorsOptions } from 'cors';
import type { Middleware } from './exchange.ts';
import { checkHead } from './requesthead.ts';
import { sendEmpty } from './send.ts';

const methods = ['GET', 'HEAD', 'POST', 'PUT', 'DELETE'];
const exposedHeaders = ['RateLimit', 'RateLimit-Policy', 'Retry-After', 'ETag', 'X-Request-Id', 'Deprecation', 'Sunset'];

/**
 * The most characters of `Access-Control-Request-Headers` that a preflight is answered with; a longer list gets none of them. A proxy
 * takes only some kilobytes of headers from a replica, and may count a response with more as a failure of it.
 */
const MAX_REQUESTED = 1_000;
const none: CorsOptions = { allowedHeaders: [] };

/** Adds the CORS headers to the response to a page's request, then goes on. */
export type AddCorsHeaders = (request: IncomingMessage, response: ServerResponse, proceed: () => void) => void;

export function createCors(isAllowed: (origin: string, request: IncomingMessage) => boolean): AddCorsHeaders {
  const addHeaders = cors((request, options) => {
    const origin = isAllowed(String(request.headers.origin), request as IncomingMessage);
    const { 'access-control-request-headers': requested = '' } = request.headers;
    const isTooLong = requested.length > MAX_REQUESTED;
    options(null, { origin, exposedHeaders, methods, maxAge: 7200, preflightContinue: true, ...(isTooLong && none) });
  });
  return (request, response, proceed) => (request.headers.origin === undefined ? proceed() : addHeaders(request, response, proceed));
}

/**
 * Adds the CORS headers, answers OPTIONS, and rejects an invalid version or Host header, for which Node's own responses have
 * no body. OPTIONS is answered here for all paths: a route would decode the path, and one that cannot be decoded would
 * bypass the limits.
 */
export function answerCors(addCorsHeaders: AddCorsHeaders): Middleware {
  return (request, response, next) =>
    addCorsHeaders(request, response, () => {
      const fault = checkHead(request);
      if (fault) next(fault);
      else if (request.method === 'OPTIONS') sendEmpty(response, 204);
      else next();
    });
}
