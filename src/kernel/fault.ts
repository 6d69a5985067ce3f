/**
 * The catalogue of faults: every way in which Portico refuses, with its HTTP status (§7), and when and where a client
 * meets it. The codes are stable and stand on the wire; docs/errors.md is printed from here.
 */
export const faults = {
  invalid_request: {
    status: 400,
    when: 'the request cannot be read: not HTTP, not JSON, too large, of another media type, or a document that GraphQL refuses',
    where: 'every door',
  },
  validation_failed: {
    status: 400,
    when: 'fields are missing or not valid: all of them at once, each with its messages',
    where: 'v1 as the bare map of fields, without a code; GraphQL in `extensions.fields`',
  },
  not_authenticated: { status: 401, when: 'there is no credential, or one that is not valid', where: 'every door' },
  permission_denied: {
    status: 403,
    when: 'the role in the project is too low, or the origin of a socket is not allowed',
    where: 'writes, consoles and their tickets, and WebSocket upgrades',
  },
  session_required: {
    status: 403,
    when: 'an API key asks for what only a user session may do',
    where: 'tickets, and the management of API keys',
  },
  not_found: {
    status: 404,
    when: 'it does not exist, its id is malformed, or the caller may not know of it: the answers are the same',
    where: 'every door',
  },
  conflict: {
    status: 409,
    when: 'the dashboard is not at the version that `If-Match` or `expectedVersion` names; `context.version` is the current one',
    where: 'changes and deletions of dashboards',
  },
  rate_limited: { status: 429, when: 'the budget is spent; `Retry-After` tells for how long', where: 'every door' },
  internal_error: { status: 500, when: 'a mistake of ours', where: 'every door' },
  service_unavailable: {
    status: 503,
    when: 'the database or the identity provider is out of reach; `Retry-After` tells when to try again',
    where: 'every door',
  },
} as const;

export type FaultCode = keyof typeof faults;

export const statusOf = Object.fromEntries(Object.entries(faults).map(([code, { status }]) => [code, status])) as {
  readonly [Code in FaultCode]: (typeof faults)[Code]['status'];
};

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
    const refusal = readRefusal(thrown);
    if (refusal) return refusal;
    return new Fault('internal_error', 'An internal error occurred.', { cause: thrown });
  }
}

/** Prisma's codes: cannot reach, timed out, pool exhausted, transaction could not start, write conflict, too many clients. */
const outageCodes = new Set(['P1001', 'P1002', 'P1008', 'P1017', 'P2024', 'P2028', 'P2034', 'P2037']);
/** SQLSTATEs: shutting down, starting up, too many clients, not in the right state, cancelled by a timeout, deadlock. */
const outageStates = /^(57P0[123]|53300|55000|57014|40001|40P01|25P0[34]|08...)$/;
const outageErrnos = new Set(['ECONNREFUSED', 'ECONNRESET', 'EPIPE', 'ETIMEDOUT', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH']);
const outageMessages = /timeout exceeded when trying to connect|Connection terminated|Query read timeout|DriverAdapterError: Timed out/;

/** The message of the error that stands for a statement which was not even tried. */
export const DATABASE_AWAY = 'the database is away';

/** An error of the database, by whichever layer: Prisma's client, its adapter, the driver, the socket. */
interface DatabaseError {
  readonly code?: unknown;
  readonly originalCode?: unknown;
  readonly kind?: unknown;
  readonly message?: unknown;
  readonly cause?: unknown;
  readonly meta?: { readonly driverAdapterError?: unknown };
}

/** Whether the database is out of reach, rather than the statement wrong. Looks through Prisma's wrapping. */
function isOutage(thrown: unknown): boolean {
  if (typeof thrown !== 'object' || thrown === null) return false;
  const error = thrown as DatabaseError;
  for (const code of [error.code, error.originalCode]) {
    if (typeof code === 'string' && (outageCodes.has(code) || outageStates.test(code) || outageErrnos.has(code))) return true;
  }
  if (error.kind === 'DatabaseNotReachable' || error.kind === 'ConnectionClosed' || error.kind === 'SocketTimeout') return true;
  if (typeof error.message === 'string' && (outageMessages.test(error.message) || error.message === DATABASE_AWAY)) return true;
  return isOutage(error.cause) || isOutage(error.meta?.driverAdapterError);
}

/** What the database refuses for the sake of the data: Prisma's code or SQLSTATE → how the client is told. */
const refusals: ReadonlyArray<readonly [RegExp, () => Fault]> = [
  // What is named by a key does not exist, or no longer: it was removed while the request was under way.
  [/^(P2003|P2025|P2001|P2018|23503|23001)$/, () => Fault.notFound()],
  [/^(P2002|23505|23P01)$/, () => new Fault('conflict', 'Something else has it already.')],
  // Values that no column takes: too long, out of range, malformed, text with NUL or half a character, a broken constraint.
  [
    /^(P2000|P2005|P2006|P2007|P2011|P2019|P2020|P2023|P2033|P2039|22...|23502|23514)$/,
    () => Fault.invalidRequest('A value cannot be stored.'),
  ],
];

/** The refusal behind a database error; the innermost code counts, as Prisma calls every raw statement's P2010. */
function readRefusal(thrown: unknown): Fault | null {
  if (typeof thrown !== 'object' || thrown === null) return null;
  const error = thrown as DatabaseError;
  const inner = readRefusal(error.cause) ?? readRefusal(error.meta?.driverAdapterError);
  if (inner) return inner;
  const codes = [error.originalCode, error.code].filter((code) => typeof code === 'string');
  for (const [pattern, make] of refusals) if (codes.some((code) => pattern.test(code))) return make();
  return null;
}
