import type { IncomingMessage, ServerResponse } from 'node:http';
import { type Fault, statusByCode } from '../../kernel/fault.ts';
import { graphqlExtensions } from '../../pipeline/mask.ts';
import { logCause } from '../../platform/faultlog.ts';
import { graphqlMediaType, readAccept } from './accept.ts';
import { exchangeOf } from './exchange.ts';
import { send, sendJson } from './send.ts';
import { isBelowV1, readPath } from './url.ts';

/** The headers of a fault, in every API. */
export function faultHeaders(fault: Fault): Record<string, string> {
  const headers: Record<string, string> = {};
  if (fault.retryAfterSeconds !== undefined) headers['Retry-After'] = String(fault.retryAfterSeconds);
  if (fault.code === 'not_authenticated') headers['WWW-Authenticate'] = 'Bearer';
  return headers;
}

/** The v1 body of a fault (§7): field errors are the bare map, other faults have `detail`, `code`, `error` and perhaps `context`. */
export function restBody({ code, message, fields, context }: Fault): unknown {
  return fields ?? { detail: message, code, error: message, ...(context && { context }) };
}

/** The template of the route that the path matches, or the kind of a path without one: a client may have put anything into the path. */
function describeRoute(request: IncomingMessage): string {
  const { route } = request as { readonly route?: { readonly path?: unknown } };
  if (typeof route?.path === 'string') return route.path;
  const path = readPath(request.url ?? '');
  if (path === '/graphql') return path;
  return isBelowV1(path) ? '/v1/*' : '*';
}

/** Answers a request with a fault, in the format of its API. Logs the cause, which the client does not see. */
export function sendFault(request: IncomingMessage, response: ServerResponse, fault: Fault): void {
  const exchange = exchangeOf(request);
  logCause(fault, exchange);
  exchange.recordError(fault.code, fault.reason);
  if (exchange.operation === null) exchange.route = describeRoute(request);
  const status = statusByCode[fault.code];
  if (!exchange.isGraphql) return sendJson(response, status, restBody(fault), faultHeaders(fault));
  const body = JSON.stringify({ errors: [{ message: fault.message, extensions: graphqlExtensions(fault) }] });
  // Clients read the errors of another status only in the media type that is GraphQL's own.
  const { mediaType } = readAccept(request);
  send(response, status, body, mediaType === graphqlMediaType ? `${mediaType}; charset=utf-8` : 'application/json', faultHeaders(fault));
}
