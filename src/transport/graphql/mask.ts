import { GraphQLError } from 'graphql';
import { Fault, statusOf } from '../../kernel/fault.ts';
import type { Log } from '../../platform/log.ts';
import { faultHeaders, graphqlExtensions } from '../faults.ts';

/** Statuses that stay statuses: a client that is told to wait must see it without reading the body. */
const statusesThatStay = new Set(['rate_limited', 'service_unavailable']);

/**
 * What a client sees of an error: of a fault its code and fields, of a mistake in the document what graphql-js says of
 * it, and of anything else nothing but `internal_error`; the log has the rest.
 */
export function maskError(thrown: unknown, log: Log): GraphQLError {
  const error = thrown instanceof GraphQLError ? thrown : null;
  // Already in its final form: a guard refused it.
  if (error && !error.originalError && String(error.extensions.code) in statusOf) return error;
  const fault = findFault(thrown);
  if (fault.code === 'internal_error') log.error({ err: fault.cause }, 'internal error');
  const http = statusesThatStay.has(fault.code) ? { status: statusOf[fault.code], headers: faultHeaders(fault) } : error?.extensions.http;
  return new GraphQLError(fault.message, {
    nodes: error?.nodes,
    source: error?.source,
    positions: error?.positions,
    path: error?.path,
    extensions: { ...graphqlExtensions(fault), ...(http ? { http } : {}) },
  });
}

/** The innermost cause counts. An error that graphql-js or Yoga raised itself is about the client's request. */
function findFault(thrown: unknown): Fault {
  if (!(thrown instanceof GraphQLError)) return Fault.from(thrown);
  return thrown.originalError ? findFault(thrown.originalError) : Fault.invalidRequest(thrown.message);
}
