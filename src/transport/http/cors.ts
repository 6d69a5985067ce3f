import type { IncomingMessage, ServerResponse } from 'node:http';
import cors from 'cors';
import type { Middleware } from './exchange.ts';
import { checkHead } from './requesthead.ts';
import { sendEmpty } from './send.ts';

const methods = ['GET', 'HEAD', 'POST', 'PUT', 'DELETE'];
const exposedHeaders = ['RateLimit', 'RateLimit-Policy', 'Retry-After', 'ETag', 'X-Request-Id', 'Deprecation', 'Sunset'];

/** Adds the CORS headers to the response to a page's request, then goes on. */
export type AddCorsHeaders = (request: IncomingMessage, response: ServerResponse, proceed: () => void) => void;

export function createCors(isAllowed: (origin: string, request: IncomingMessage) => boolean): AddCorsHeaders {
  const addHeaders = cors((request, options) => {
    const origin = isAllowed(String(request.headers.origin), request as IncomingMessage);
    options(null, { origin, exposedHeaders, methods, maxAge: 7200, preflightContinue: true });
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
