import type { IncomingMessage, ServerResponse } from 'node:http';
import { type Fault, statusByCode } from '../../kernel/fault.ts';
import { graphqlExtensions } from '../../pipeline/mask.ts';
import { logCause } from '../../platform/errors.ts';
import { exchangeOf } from './exchange.ts';
import { sendJson } from './send.ts';
import { readPath } from './url.ts';

/** The headers of a fault, at every door. */
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

/** Answers a request with a fault, in the format of its door. Logs the cause, which the client does not see. */
export function sendFault(request: IncomingMessage, response: ServerResponse, fault: Fault): void {
  const exchange = exchangeOf(request);
  logCause(fault, exchange);
  const body =
    readPath(request.url ?? '') === '/graphql'
      ? { errors: [{ message: fault.message, extensions: graphqlExtensions(fault) }] }
      : restBody(fault);
  sendJson(response, statusByCode[fault.code], body, faultHeaders(fault));
}
