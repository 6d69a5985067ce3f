/**
 * The catalogue of faults: every error code that a client may see, with its HTTP status (§7), and when and where it occurs.
 * The codes are part of the API and stable; docs/errors.md is printed from here.
 */
export const faults = {
  invalid_request: {
    status: 400,
    when: 'the request cannot be read (not HTTP, not JSON, too large, of another media type, a document that GraphQL rejects), or its response would be too large',
    where: 'every API',
  },
  validation_failed: {
    status: 400,
    when: 'fields are missing or invalid: all of them are reported at once, each with its messages',
    where: 'v1: the bare map of fields, without a code; GraphQL: in `extensions.fields`',
  },
  not_authenticated: { status: 401, when: 'the credential is missing or invalid', where: 'every API' },
  permission_denied: {
    status: 403,
    when: 'the role in the project is too low, the origin of a socket is not allowed, a renewed token is of another user, or a socket of one project is used for anything but its feed',
    where: 'writes, consoles and their tickets, WebSocket upgrades, and sockets',
  },
  session_required: {
    status: 403,
    when: 'an API key is used for an operation that requires a user session',
    where: 'tickets, the management of API keys, and `renewCredential`',
  },
  not_found: {
    status: 404,
    when: 'the object does not exist, its id is malformed, or the caller may not see it: the response is the same',
    where: 'every API',
  },
  conflict: {
    status: 409,
    when: 'the dashboard does not have the version that `If-Match` or `expectedVersion` names (`context.version` is the current one), or a quota is used up (`context.quota` is its name, `context.limit` its maximum)',
    where:
      'dashboards, the creation of API keys, publishing, marks as read, writes with an idempotency key, subscriptions, and WebSocket upgrades',
  },
  idempotency_key_reused: {
    status: 409,
    when: 'the idempotency key was sent with another request within the last 24 hours: nothing was done',
    where: 'writes with `Idempotency-Key` or `idempotencyKey`',
  },
  rate_limited: { status: 429, when: 'the request budget is used up; `Retry-After` says when it is renewed', where: 'every API' },
  internal_error: { status: 500, when: 'a mistake of ours', where: 'every API' },
  service_unavailable: {
    status: 503,
    when: 'the database or the identity provider is unavailable, the client’s address has too many connections, requests or sockets open, too much of the user’s waits, too many event streams are open, or the server is about to stop; `Retry-After` says when to try again',
    where: 'every API',
  },
} as const;

export type FaultCode = keyof typeof faults;

export const statusByCode = Object.fromEntries(Object.entries(faults).map(([code, { status }]) => [code, status])) as {
  readonly [Code in FaultCode]: (typeof faults)[Code]['status'];
};

/** Messages by field: `{ name: ["This field is required."] }`. */
export type FieldErrors = Readonly<Record<string, readonly string[]>>;

/** The problems of a credential: for the operator, in the log. docs/operations.md lists them. */
export type CredentialProblem =
  | 'missing'
  | 'malformed'
  | 'algorithm'
  | 'unknown_signing_key'
  | 'signature'
  | 'issuer'
  | 'audience'
  | 'expired'
  | 'not_yet_valid'
  | 'subject'
  | 'claims'
  | 'unknown_user'
  | 'disabled'
  | 'unknown_key'
  | 'revoked'
  | 'expired_key';

interface FaultOptions {
  readonly context?: Readonly<Record<string, unknown>>;
  readonly fields?: FieldErrors;
  readonly retryAfterSeconds?: number;
  /** The client does not see it; `Fault.unavailable` and `Fault.internal` have it logged. */
  readonly cause?: unknown;
  /** It is logged. The client does not see it. */
  readonly reason?: CredentialProblem;
}

const UNAVAILABLE = 'The service is temporarily unavailable.';

/** An error that the client may see. It knows nothing of HTTP, GraphQL or the database. */
export class Fault extends Error {
  readonly code: FaultCode;
  readonly context: Readonly<Record<string, unknown>> | undefined;
  readonly fields: FieldErrors | undefined;
  readonly retryAfterSeconds: number | undefined;
  /** Why a credential was refused. It is logged, and never sent. */
  readonly reason: CredentialProblem | undefined;

  constructor(code: FaultCode, detail: string, options: FaultOptions = {}) {
    // A fault is an expected outcome: nobody reads its stack trace, and capturing one takes longer than the rest of the rejection.
    const { stackTraceLimit } = Error;
    Error.stackTraceLimit = 0;
    super(detail, options.cause === undefined ? undefined : { cause: options.cause });
    Error.stackTraceLimit = stackTraceLimit;
    this.name = 'Fault';
    this.code = code;
    this.context = options.context;
    this.fields = options.fields;
    this.retryAfterSeconds = options.retryAfterSeconds;
    this.reason = options.reason;
  }

  static invalidRequest(detail: string): Fault {
    return new Fault('invalid_request', detail);
  }

  /** The fields are named as in the GraphQL input; v1 renames them (§7.4). */
  static invalidFields(fields: FieldErrors): Fault {
    return new Fault('validation_failed', 'Some fields are not valid.', { fields });
  }

  static notAuthenticated(): Fault {
    return new Fault('not_authenticated', 'Authentication credentials were not provided.', { reason: 'missing' });
  }

  /** The one response to every invalid credential: it does not say what is wrong with it. */
  static invalidCredential(reason: CredentialProblem): Fault {
    return new Fault('not_authenticated', 'The credential is not valid.', { reason });
  }

  static permissionDenied(detail = 'You do not have permission to perform this action.'): Fault {
    return new Fault('permission_denied', detail);
  }

  /** `limit` is the maximum number of what `detail` says there are too many of; `quota` is the name by which clients know it. */
  static quotaReached(detail: string, { quota, limit }: { readonly quota: string; readonly limit: number }): Fault {
    return new Fault('conflict', detail, { context: { quota, limit } });
  }

  /** For what is absent and what is forbidden: the two must be indistinguishable. */
  static notFound(): Fault {
    return new Fault('not_found', 'Not found.');
  }

  /** An outage, or a limit that the operator should know to be reached: the cause is logged. */
  static unavailable(cause: object): Fault {
    return new Fault('service_unavailable', UNAVAILABLE, { cause, retryAfterSeconds: 1 });
  }

  /** A state that is to be expected and passes by itself: `why` is for whoever reads the code, and nothing is logged. */
  static tryLater(why: string): Fault {
    return new Fault('service_unavailable', UNAVAILABLE, { cause: why, retryAfterSeconds: 1 });
  }

  /** A bug of ours. The client learns nothing of the cause. */
  static internal(cause: unknown): Fault {
    return new Fault('internal_error', 'An internal error occurred.', { cause });
  }
}
