import { type ASTNode, type ExecutionResult, GraphQLError, type GraphQLErrorOptions, type GraphQLFormattedError } from 'graphql';
import { Fault, statusByCode } from '../kernel/fault.ts';
import { cutText } from '../kernel/text.ts';
import { toFault } from '../platform/errors.ts';
import { logCause } from '../platform/faultlog.ts';
import type { Logger } from '../platform/logger.ts';
import type { ErrorRecorder } from './operation.ts';

/** A fault as GraphQL's `extensions`. */
export function graphqlExtensions({ code, fields, context }: Fault): Record<string, unknown> {
  return { code, ...(fields && { fields }), ...(context && { context }) };
}

/** The codes that set the HTTP status of an execution, so that a client that has to wait need not read the body. */
const codesWithStatus = new Set(['rate_limited', 'service_unavailable']);

/**
 * An error as a client sees it: a fault with its code and fields, an error of the document with the message of graphql-js, and
 * any other only as `internal_error`, with the details in the log.
 */
export function maskError(thrown: unknown, log: Logger, recorder?: ErrorRecorder): GraphQLError {
  const error = thrown instanceof GraphQLError ? thrown : null;
  // Already in its final form, as a plugin rejected the operation.
  if (error && !error.originalError && isFinal(error)) {
    recorder?.recordError(String(error.extensions.code));
    return error;
  }
  const fault = findFault(thrown);
  recorder?.recordError(fault.code, fault.reason);
  logCause(fault, { log });
  const http = codesWithStatus.has(fault.code) ? { status: statusByCode[fault.code], headers: retryHeaders(fault) } : readStatus(error);
  const extensions = { ...graphqlExtensions(fault), ...(http ? { http } : {}) };
  // The locations have been computed: with the nodes graphql-js would do that once more.
  return Object.assign(createError(fault.message, { path: error?.path, extensions }), { locations: error?.locations });
}

/** Creates an error for the client, who does not see its stack trace: capturing one takes longer than the rest. */
function createError(message: string, options: GraphQLErrorOptions): GraphQLError {
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 0;
  const error = new GraphQLError(message, options);
  Error.stackTraceLimit = stackTraceLimit;
  return error;
}

/** The HTTP status that Yoga gives an error. A request that names no operation is 400 in the older media type too. */
function readStatus(error: GraphQLError | null): GraphQLError['extensions']['http'] {
  const { http, code } = error?.extensions ?? {};
  return code === 'BAD_REQUEST' && http?.status === 400 ? { status: 400 } : http;
}

/** The protocol of persisted queries has error codes of its own. */
function isFinal({ extensions: { code } }: GraphQLError): boolean {
  return String(code) in statusByCode || /^PERSISTED_QUERY_/.test(String(code));
}

function retryHeaders({ retryAfterSeconds }: Fault): Record<string, string> {
  return retryAfterSeconds === undefined ? {} : { 'Retry-After': String(retryAfterSeconds) };
}

/**
 * The fault of the innermost cause. An error raised by graphql-js or Yoga itself concerns the client's request, except one for
 * a value of ours that its type cannot represent: it is wrapped by the error of its field, and names no part of the document.
 */
function findFault(thrown: unknown): Fault {
  if (!(thrown instanceof GraphQLError)) return toFault(thrown);
  const { originalError } = thrown;
  if (!originalError) return toDocumentFault(thrown);
  const isOurs = originalError instanceof GraphQLError && !originalError.nodes && !originalError.originalError;
  return thrown.path && isOurs ? Fault.internal(originalError) : findFault(originalError);
}

/** In UTF-16 units. graphql-js repeats a literal that does not fit, however long it is. */
const MAX_MESSAGE_LENGTH = 500;

/** The fault of an error of graphql-js in the document or its variables. */
export function toDocumentFault({ message }: GraphQLError): Fault {
  return Fault.invalidRequest(cutText(message, MAX_MESSAGE_LENGTH));
}

/** A result as a client sees it. In the newer media type one without `data` is no success: its errors have a status. */
export function maskResult<Result extends ExecutionResult>(result: Result, log: () => Logger, recorder?: ErrorRecorder): Result {
  if (!result.errors) return result;
  const errors = result.errors.map((error) => maskError(error, log(), recorder));
  if (result.data === undefined) for (const { extensions } of errors) extensions.http ??= rejectionStatus(extensions.code);
  return { ...result, errors };
}

/** The status of an operation that was not executed: whose mistake that is. */
function rejectionStatus(code: unknown): GraphQLError['extensions']['http'] {
  return { status: statusByCode[code === 'internal_error' ? code : 'invalid_request'], spec: true };
}

/** The result that is sent in place of another, whose extensions it keeps. */
export function replaceByFault({ extensions }: ExecutionResult, fault: Fault): ExecutionResult {
  return { errors: [wrapFault(fault)], ...(extensions && { extensions }) };
}

/** The result of an operation that could not begin. */
export function failedResult(failure: unknown): ExecutionResult {
  return { errors: [failure instanceof GraphQLError ? failure : new GraphQLError('', { originalError: failure as Error })] };
}

/** An error as it is sent: its HTTP status is not part of it. */
export function formatError(error: GraphQLError): GraphQLFormattedError {
  const { extensions: { http, ...extensions } = {}, ...rest } = error.toJSON();
  return { ...rest, extensions };
}

/** The error of a rejection before execution. Its HTTP status is the fault's, except with the older media type, which always has 200. */
export function toGraphqlError(fault: Fault, nodes?: readonly ASTNode[]): GraphQLError {
  return new GraphQLError(fault.message, {
    nodes,
    extensions: { ...graphqlExtensions(fault), http: { status: statusByCode[fault.code], spec: true } },
  });
}

/** The error of a subscription whose client accepts no stream. */
export function createSubscriptionError(): GraphQLError {
  return toGraphqlError(Fault.invalidRequest('A subscription needs a client that takes text/event-stream, or a WebSocket.'));
}

/** The error of a stream that may not begin, with the fault's HTTP status in either media type. */
export function toStreamError(fault: Fault): GraphQLError {
  const http = { status: statusByCode[fault.code], headers: retryHeaders(fault) };
  return createError(fault.message, { extensions: { ...graphqlExtensions(fault), http } });
}

/** A GraphQL error that carries its fault, which v1 formats itself. */
export function wrapFault(fault: Fault): GraphQLError {
  const { message, extensions } = toGraphqlError(fault);
  return new GraphQLError(message, { originalError: fault, extensions });
}
