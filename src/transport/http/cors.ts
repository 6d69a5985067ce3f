import type { IncomingMessage } from 'node:http';
import cors from 'cors';
import type { Middleware } from './exchange.ts';
import { allowOrigins } from './peer.ts';
import { sendEmpty } from './send.ts';
import { checkHead } from './upgrades.ts';

const methods = ['GET', 'HEAD', 'POST', 'PUT', 'DELETE'];
const exposedHeaders = ['RateLimit', 'RateLimit-Policy', 'Retry-After', 'ETag', 'X-Request-Id', 'Deprecation', 'Sunset'];

/**
 * CORS, for a request that comes from another page. OPTIONS is answered whatever the path: a route would decode it, and
 * one that cannot be decoded would get past the limits. What is malformed is refused here, as Node's own refusals have no
 * body.
 */
export function answerCors(parts: Parameters<typeof allowOrigins>[0]): Middleware {
  const isAllowed = allowOrigins(parts);
  const addHeaders = cors((request, options) => {
    const isGood = isAllowed(String(request.headers.origin), request as IncomingMessage);
    options(null, { origin: isGood, exposedHeaders, methods, maxAge: 7200, preflightContinue: true });
  });
  return (request, response, next) => {
    const { origin } = request.headers;
    const goOn = () => {
      const fault = checkHead(request);
      if (fault) next(fault);
      else if (request.method === 'OPTIONS') sendEmpty(response, 204, { Allow: methods.join(', ') });
      else next();
    };
    if (origin === undefined) goOn();
    else addHeaders(request, response, goOn);
  };
}
