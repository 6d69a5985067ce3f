import type { IncomingMessage, ServerResponse } from 'node:http';
import { type Fault, statusOf } from '../kernel/fault.ts';
import { exchangeOf, sendJson } from './exchange.ts';
import { readPath } from './query.ts';

/** The headers that go with a fault, whatever the door. */
export function faultHeaders(fault: Fault): Record<string, string> {
  const headers: Record<string, string> = {};
  if (fault.retryAfterSeconds !== undefined) headers['Retry-After'] = String(fault.retryAfterSeconds);
  if (fault.code === 'not_authenticated') headers['WWW-Authenticate'] = 'Bearer';
  return headers;
}

/** The v1 body of a fault (§7): field errors are the bare map, all else `detail`, `code`, `error` and perhaps `context`. */
export function restBody({ code, message, fields, context }: Fault): unknown {
  return fields ?? { detail: message, code, error: message, ...(context && { context }) };
}

/** The same fault as GraphQL's `extensions`. */
export function graphqlExtensions({ code, fields, context }: Fault): Record<string, unknown> {
  return { code, ...(fields && { fields }), ...(context && { context }) };
}

/** Answers a request with a fault, in the form of the door that it came through. */
export function sendFault(request: IncomingMessage, response: ServerResponse, fault: Fault): void {
  logFault(request, fault);
  const body =
    readPath(request.url ?? '') === '/graphql'
      ? { errors: [{ message: fault.message, extensions: graphqlExtensions(fault) }] }
      : restBody(fault);
  sendJson(response, statusOf[fault.code], body, faultHeaders(fault));
}

/** What the client is not told is told to the log. */
export function logFault(request: IncomingMessage, fault: Fault): void {
  if (fault.code === 'internal_error') exchangeOf(request).log.error({ err: fault.cause }, 'internal error');
  if (fault.code === 'service_unavailable') exchangeOf(request).log.warn({ err: fault.cause }, 'unavailable');
}
