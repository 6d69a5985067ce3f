import { Fault } from '../kernel/fault.ts';

/**
 * Prisma's codes of an outage: the server cannot be reached (P1001), does not answer in time (P1002, P1008) or has closed the
 * connection (P1017), the pool is exhausted (P2024), a transaction could not start (P2028) or conflicts with another (P2034), too
 * many clients (P2037).
 */
const outageCodes = new Set(['P1001', 'P1002', 'P1008', 'P1017', 'P2024', 'P2028', 'P2034', 'P2037']);
/**
 * SQLSTATEs of an outage, after which the same request may succeed, in the order of the pattern: shutdown, startup and idle session
 * timeout (57P01 to 57P05), insufficient resources such as disk, memory and connections (53), I/O error (58030), object not in
 * prerequisite state (55000), lock timeout (55P03), statement timeout (57014), serialization failure (40001), deadlock (40P01),
 * transaction timeouts (25P03, 25P04), a read-only server (25006), connection failure (08), a rejected role (28) or database
 * (3D000). 0A000, feature not supported, occurs only for a statement that was prepared before a column changed its type: a new
 * connection prepares it again. A right that the role lacks (42501) is to be granted.
 */
const outageStates = /^(57P0[1-5]|53...|58030|55000|55P03|57014|40001|40P01|25P0[34]|25006|08...|28...|3D000|0A000|42501)$/;
const outageErrnos = new Set(['ECONNREFUSED', 'ECONNRESET', 'EPIPE', 'ETIMEDOUT', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH']);
/** Node's codes for a certificate that it rejects. */
export const rejectedCertificate = /CERT|UNABLE_TO_VERIFY|HOSTNAME_MISMATCH/;
/** The driver's message where a statement was not answered in time: PostgreSQL may still be working on it. */
export const READ_TIMEOUT = 'Query read timeout';

/** The driver's message where PostgreSQL has no TLS, though it is asked for. */
export const WITHOUT_TLS = 'server does not support SSL connections';

/**
 * The messages of driver errors without a code. `is not queryable` is the one for a statement on a connection that broke, or was
 * being closed, since the statement before.
 */
const outageMessages = new RegExp(
  'timeout exceeded when trying to connect|Connection terminated|DriverAdapterError: Timed out|is not queryable|' +
    `error establishing an SSL connection|${READ_TIMEOUT}|${WITHOUT_TLS}`,
);

/** The message of the error for a statement that was not sent because the breaker is open. */
export const DATABASE_AWAY = 'the database is away';

/** The message of the error for a connection that could not be opened for a cause that none of these lists names. */
export const NO_CONNECTION = 'no connection to the database can be opened';

/** A layer of an error of the database: Prisma's client, its adapter, the driver, the socket. */
interface ErrorLayer {
  readonly code?: unknown;
  readonly originalCode?: unknown;
  readonly kind?: unknown;
  readonly syscall?: unknown;
  readonly message?: unknown;
  readonly originalMessage?: unknown;
  readonly cause?: unknown;
  readonly meta?: { readonly driverAdapterError?: unknown };
}

/** An error and those that it wraps, the outermost first. */
export function layersOf(thrown: unknown): ErrorLayer[] {
  if (typeof thrown !== 'object' || thrown === null) return [];
  const layer: ErrorLayer = thrown;
  return [layer, ...layersOf(layer.meta?.driverAdapterError), ...layersOf(layer.cause)];
}

/** Converts any thrown value to a fault: what is neither a Fault nor an error of the database is an `internal_error`. */
export function toFault(thrown: unknown): Fault {
  if (thrown instanceof Fault) return thrown;
  if (isOutage(thrown)) return Fault.unavailable(thrown);
  return findDataFault(thrown) ?? Fault.internal(thrown);
}

/** A failure to open a connection is an outage, whatever its cause: a key that does not fit its certificate, a right that was revoked. */
export function toConnectionFailure(failure: Error): Error {
  return isOutage(failure) ? failure : new Error(NO_CONNECTION, { cause: failure });
}

/** The SQLSTATE of a write to a server that takes none: a standby, perhaps a former primary, or one that was set so. */
export const readOnlyServer = new Set(['25006']);

/** The SQLSTATE of a right that the role lacks: the operator may grant it at any time. */
export const missingRight = new Set(['42501']);

/**
 * SQLSTATEs of a statement that refers to what does not exist: a table, schema, type, function or unique key, or a right to one.
 * XX000, internal error, occurs where PostgreSQL has the table in its cache, but no longer in its catalogue.
 */
export const missingCodes = new Set(['42P01', '3F000', '42704', '42883', '42P10', '42501', 'XX000']);

/** Whether an error of the database, or one that it wraps, has one of the codes. */
export function hasCode(thrown: unknown, codes: ReadonlySet<string>): boolean {
  return layersOf(thrown).some((layer) => codesOf(layer).some((code) => codes.has(code)));
}

export function isAway(thrown: unknown): boolean {
  return layersOf(thrown).some(({ message }) => message === DATABASE_AWAY);
}

/** Whether the database is out of reach, as opposed to a wrong statement. Looks into what Prisma wraps. */
function isOutage(thrown: unknown): thrown is object {
  return layersOf(thrown).some(isOutageLayer);
}

function isOutageLayer(layer: ErrorLayer): boolean {
  const { kind, syscall, message } = layer;
  const codes = codesOf(layer);
  if (codes.some((code) => outageCodes.has(code) || outageStates.test(code) || outageErrnos.has(code))) return true;
  if (codes.some((code) => rejectedCertificate.test(code))) return true;
  // The file of a Unix socket is missing while its server is stopped.
  if (syscall === 'connect') return true;
  if (kind === 'DatabaseNotReachable' || kind === 'ConnectionClosed' || kind === 'SocketTimeout') return true;
  return typeof message === 'string' && (outageMessages.test(message) || message === DATABASE_AWAY || message === NO_CONNECTION);
}

/** Violated constraints and rejected values: Prisma's code or SQLSTATE → the fault. */
const dataFaults: ReadonlyArray<readonly [RegExp, () => Fault]> = [
  // A referenced row does not exist: it was removed while the request was under way.
  [/^(P2003|P2025|P2001|P2018|23503|23001)$/, () => Fault.notFound()],
  [/^(P2002|23505|23P01)$/, () => new Fault('conflict', 'Something else has it already.')],
  // Raised by `number_notification`.
  [/^2200H$/, () => Fault.quotaReached('The log of the project is full.', { quota: 'notifications_per_project', limit: 2_147_483_647 })],
  // Raised by `mark_notifications_read`.
  [
    /^QU001$/,
    () => {
      const detail = 'Too many notifications are read one by one while an older one is unread: mark all of them.';
      return Fault.quotaReached(detail, { quota: 'single_reads_per_project', limit: 100_000 });
    },
  ],
  // Values that a column rejects: too long, out of range, malformed, text with NUL or a lone surrogate, a violated constraint.
  [
    /^(P2000|P2005|P2006|P2007|P2011|P2019|P2020|P2023|P2033|P2039|22...|23502|23514)$/,
    () => Fault.invalidRequest('A value cannot be stored.'),
  ],
];

/** The innermost code counts: Prisma wraps every error of a raw statement in its own P2010. */
function findDataFault(thrown: unknown): Fault | null {
  for (const layer of layersOf(thrown).reverse()) {
    const codes = codesOf(layer);
    const [, make] = dataFaults.find(([pattern]) => codes.some((code) => pattern.test(code))) ?? [];
    if (make) return make();
  }
  return null;
}

function codesOf({ code, originalCode }: ErrorLayer): string[] {
  return [code, originalCode].filter((one) => typeof one === 'string');
}
