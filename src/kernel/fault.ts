/**
 * The catalogue of faults: every way in which Portico refuses, with its HTTP status (§7).
 * The codes are stable and stand on the wire, in v1 bodies as `code` and in GraphQL as `extensions.code`.
 */
export const statusOf = {
  invalid_request: 400,
  validation_failed: 400,
  not_authenticated: 401,
  permission_denied: 403,
  session_required: 403,
  not_found: 404,
  conflict: 409,
  rate_limited: 429,
  internal_error: 500,
  service_unavailable: 503,
} as const;

export type FaultCode = keyof typeof statusOf;

/** Messages by field: `{ name: ["This field is required."] }`. */
export type FieldErrors = Readonly<Record<string, readonly string[]>>;

interface FaultOptions {
  readonly context?: Readonly<Record<string, unknown>>;
  readonly fields?: FieldErrors;
  readonly retryAfterSeconds?: number;
  /** What really happened: for the log, never for the client. */
  readonly cause?: unknown;
}

/** A refusal that the client may see. Knows nothing of HTTP or GraphQL. */
export class Fault extends Error {
  readonly code: FaultCode;
  readonly context: Readonly<Record<string, unknown>> | undefined;
  readonly fields: FieldErrors | undefined;
  readonly retryAfterSeconds: number | undefined;

  constructor(code: FaultCode, detail: string, options: FaultOptions = {}) {
    super(detail, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'Fault';
    this.code = code;
    this.context = options.context;
    this.fields = options.fields;
    this.retryAfterSeconds = options.retryAfterSeconds;
  }

  static invalidRequest(detail: string): Fault {
    return new Fault('invalid_request', detail);
  }

  /** The fields are named as in the GraphQL input; the REST door renames them (§7.4). */
  static invalidFields(fields: FieldErrors): Fault {
    return new Fault('validation_failed', 'Some fields are not valid.', { fields });
  }

  static notAuthenticated(detail = 'Authentication credentials were not provided.'): Fault {
    return new Fault('not_authenticated', detail);
  }

  static permissionDenied(detail = 'You do not have permission to perform this action.'): Fault {
    return new Fault('permission_denied', detail);
  }

  /** One wording for what is absent and for what the caller may not know of: the two must look the same. */
  static notFound(): Fault {
    return new Fault('not_found', 'Not found.');
  }

  static unavailable(cause: unknown, retryAfterSeconds = 1): Fault {
    return new Fault('service_unavailable', 'The service is temporarily unavailable.', { cause, retryAfterSeconds });
  }

  /** Any thrown value as a fault: what we did not throw ourselves is an outage of the database or our own mistake. */
  static from(thrown: unknown): Fault {
    if (thrown instanceof Fault) return thrown;
    if (isOutage(thrown)) return Fault.unavailable(thrown);
    return new Fault('internal_error', 'An internal error occurred.', { cause: thrown });
  }
}

/** Prisma's codes: cannot reach, timed out, pool exhausted, transaction could not start, write conflict, too many clients. */
const outageCodes = new Set(['P1001', 'P1002', 'P1008', 'P1017', 'P2024', 'P2028', 'P2034', 'P2037']);
/** SQLSTATEs: shutting down, starting up, too many clients, not in the right state, cancelled by a timeout, deadlock. */
const outageStates = /^(57P0[123]|53300|55000|57014|40001|40P01|25P0[34]|08...)$/;
const outageErrnos = new Set(['ECONNREFUSED', 'ECONNRESET', 'EPIPE', 'ETIMEDOUT', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH']);
const outageMessages = /timeout exceeded when trying to connect|Connection terminated|Query read timeout|DriverAdapterError: Timed out/;

/** Whether the database is out of reach, rather than the statement wrong. Looks through Prisma's wrapping. */
function isOutage(thrown: unknown): boolean {
  if (typeof thrown !== 'object' || thrown === null) return false;
  const error = thrown as {
    code?: unknown;
    originalCode?: unknown;
    kind?: unknown;
    message?: unknown;
    cause?: unknown;
    meta?: { driverAdapterError?: unknown };
  };
  for (const code of [error.code, error.originalCode]) {
    if (typeof code === 'string' && (outageCodes.has(code) || outageStates.test(code) || outageErrnos.has(code))) return true;
  }
  if (error.kind === 'DatabaseNotReachable' || error.kind === 'ConnectionClosed' || error.kind === 'SocketTimeout') return true;
  if (typeof error.message === 'string' && outageMessages.test(error.message)) return true;
  return isOutage(error.cause) || isOutage(error.meta?.driverAdapterError);
}
