import { type ASTNode, type ExecutionResult, GraphQLError } from 'graphql';
import { isAsyncIterable, mapAsyncIterator, type Plugin, processRegularResult } from 'graphql-yoga';
import { Fault, statusOf } from '../kernel/fault.ts';
import { toJsonText } from '../kernel/jsontext.ts';
import { logMistake, toFault } from '../platform/errors.ts';
import type { Logger } from '../platform/logger.ts';
import type { HttpEntrance, OperationContext } from './enveloped.ts';

/** A fault as GraphQL's `extensions`. */
export function graphqlExtensions({ code, fields, context }: Fault): Record<string, unknown> {
  return { code, ...(fields && { fields }), ...(context && { context }) };
}

/** The faults that set the HTTP status: a client that has to wait sees it without reading the body. */
const statusesThatStay = new Set(['rate_limited', 'service_unavailable']);

/**
 * What a client sees of an error: of a fault its code and fields, of a mistake in the document what graphql-js says of
 * it, and of anything else nothing but `internal_error`; the log has the rest.
 */
export function maskError(thrown: unknown, log: Logger): GraphQLError {
  const error = thrown instanceof GraphQLError ? thrown : null;
  // Already in its final form: a guard refused it.
  if (error && !error.originalError && isFinal(error)) return error;
  const fault = findFault(thrown);
  logMistake(fault, { log });
  const http = statusesThatStay.has(fault.code) ? { status: statusOf[fault.code], headers: retryHeaders(fault) } : error?.extensions.http;
  return new GraphQLError(fault.message, {
    nodes: error?.nodes,
    source: error?.source,
    positions: error?.positions,
    path: error?.path,
    extensions: { ...graphqlExtensions(fault), ...(http ? { http } : {}) },
  });
}

/** The errors of the protocol of persisted queries have codes of their own. */
function isFinal({ extensions: { code } }: GraphQLError): boolean {
  return String(code) in statusOf || /^PERSISTED_QUERY_/.test(String(code));
}

function retryHeaders({ retryAfterSeconds }: Fault): Record<string, string> {
  return retryAfterSeconds === undefined ? {} : { 'Retry-After': String(retryAfterSeconds) };
}

/** The innermost cause counts. An error that graphql-js or Yoga raised itself is about the client's request. */
function findFault(thrown: unknown): Fault {
  if (!(thrown instanceof GraphQLError)) return toFault(thrown);
  return thrown.originalError ? findFault(thrown.originalError) : Fault.invalidRequest(thrown.message);
}

/** A result as a client sees it. */
export function maskResult<Result extends ExecutionResult>(result: Result, log: () => Logger): Result {
  return result.errors ? { ...result, errors: result.errors.map((error) => maskError(error, log())) } : result;
}

/** A result that Yoga makes into a text as we do. */
export function withText<Result extends ExecutionResult>(result: Result): Result & { stringify(result: ExecutionResult): string } {
  return { ...result, stringify: toJsonText };
}

/** Masks and formats the results of Yoga's own HTTP handler: each result of a stream, all else in the chosen media type. */
export function formatResults(): Plugin<OperationContext, HttpEntrance> {
  return {
    onResultProcess({ result, setResult, setResultProcessor, serverContext: { openContext, mediaType } }) {
      const mask = (one: ExecutionResult) => withText(maskResult(one, () => openContext().openLogger()));
      if (isAsyncIterable(result)) return setResult(mapAsyncIterator(result, mask));
      if (!Array.isArray(result)) setResult(mask(result as ExecutionResult));
      if (mediaType) setResultProcessor(processRegularResult, mediaType);
    },
  };
}

/** A refusal before the execution: 400, except to clients that speak the older media type, which has 200 for all. */
export function toGraphqlError(fault: Fault, nodes?: readonly ASTNode[]): GraphQLError {
  return new GraphQLError(fault.message, {
    nodes,
    extensions: { ...graphqlExtensions(fault), http: { status: statusOf[fault.code], spec: true } },
  });
}
