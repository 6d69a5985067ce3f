import { statfsSync, statSync } from 'node:fs';
import { hasCode, layersOf, NO_CONNECTION, readOnlyServer, rejectedCertificate, toFault, WITHOUT_TLS } from './errors.ts';

/** An error of a start or a command for the operator: the message names the problem and its remedy. */
export class OperatorError extends Error {}

/** Explains a failed start to the operator. Null for a bug of ours, whose stack is printed instead. */
export function describeFailure(failure: unknown): string | null {
  if (failure instanceof OperatorError) return failure.message;
  const { code, port } = failure as { code?: unknown; port?: unknown };
  if (code === 'EADDRINUSE') return `Port ${port} is in use: stop what listens there, or set PORT.`;
  const explanation = describeRejection(failure) ?? describeFileFailure(failure);
  if (explanation !== null) return explanation;
  if (toFault(failure).code !== 'service_unavailable') return null;
  const reason = describeReason(failure);
  if (failure instanceof TableInUse) return `The database cannot be migrated: ${failure.message}. Start again when that has ended.`;
  if ((failure as Error).message === NO_CONNECTION)
    return `PostgreSQL cannot be reached as DATABASE_URL asks: ${describeReason((failure as Error).cause)}.`;
  if (hasCode(failure, readOnlyServer))
    return 'PostgreSQL takes no writes: DATABASE_URL has to lead to a primary, and to a role and a database without default_transaction_read_only.';
  if (hasCode(failure, diskFullStates)) return `The database has no space left: make some, and start again. (${reason})`;
  return `PostgreSQL does not answer: ${reason}`;
}

/** A migration needs a table that another session uses for long, as a dump does. */
export class TableInUse extends Error {
  constructor(name: string, options: ErrorOptions) {
    super(`the migration ${name} waits for a table that another session holds`, options);
  }
}

/** The SQLSTATE of a full disk: the message is in the language of the server. */
const diskFullStates = new Set(['53100']);

/** The SQLSTATE of a database without the schema of the tables, or of a role that may not use it. */
const SCHEMA_MISSING = '3F000';

/** SQLSTATEs: invalid role, wrong password, unknown database, missing privilege. */
const rejectionStates = new Set<unknown>(['28000', '28P01', '3D000', '42501']);

/**
 * Whether PostgreSQL rejects the role or the database of a connection, or has no TLS, or its certificate is rejected, or there is
 * another cause that is not an outage: waiting does not help a start.
 */
export function isRejectedConnection({ code, message }: { code?: unknown; message?: unknown }): boolean {
  if (String(message).includes(WITHOUT_TLS) || message === NO_CONNECTION) return true;
  return rejectionStates.has(code) || rejectedCertificate.test(String(code));
}

/** Why PostgreSQL rejects the connection or a statement, though a server answers: by a code if there is one, else by the innermost message. */
function describeRejection(failure: unknown): string | null {
  const layers = layersOf(failure);
  for (const { code, originalCode, message, originalMessage } of layers) {
    if (rejectionStates.has(code) || rejectionStates.has(originalCode))
      return `PostgreSQL refuses: ${originalMessage ?? message}. See the role and the database that DATABASE_URL names.`;
    if (typeof code === 'string' && rejectedCertificate.test(code))
      return `The certificate of PostgreSQL is refused: ${message} (${code}). See the host, sslmode and sslrootcert of DATABASE_URL.`;
    if (code === SCHEMA_MISSING)
      return 'DATABASE_URL names a database without a schema public that its role may use: create one, or grant USAGE on it.';
  }
  const messages = layers.filter((layer) => layer instanceof Error).map(({ message }) => message);
  const refusal = messages.findLast((message) => message.includes(WITHOUT_TLS) || message === 'timeout expired');
  return refusal === undefined ? null : `PostgreSQL does not answer as DATABASE_URL asks: ${refusal}.`;
}

const remedies: Readonly<Record<string, string>> = {
  ENOSPC: 'there is no space left: make some, and start again.',
  EDQUOT: 'the quota is used up: raise it or make space, and start again.',
  EROFS: 'the file system is read-only: make it writable, or choose another DATA_DIR.',
  ENOTDIR: 'a part of the path is a file, where a folder should be: choose another DATA_DIR.',
  EEXIST: 'a file is where a folder should be: choose another DATA_DIR.',
  EISDIR: 'a folder is where a file should be: move it away.',
};

/** Explains an error of the file system. Null for any other error, and for one that names no file. */
export function describeFileFailure(failure: unknown, path = pathOfFailure(failure)): string | null {
  const { code } = failure as { code?: unknown };
  if (path === null || typeof code !== 'string') return null;
  const remedy = isForeign(path)
    ? 'it belongs to another user: start as that user, or choose another DATA_DIR.'
    : 'let this process read and write it, or choose another DATA_DIR.';
  return `${path} cannot be used (${code}): ${remedies[code] ?? remedy}`;
}

/** Whether a file or folder belongs to another user. */
function isForeign(path: string): boolean {
  try {
    return process.getuid !== undefined && statSync(path).uid !== process.getuid();
  } catch {
    return false;
  }
}

function pathOfFailure(failure: unknown): string | null {
  const { path, dest, syscall } = failure as { path?: unknown; dest?: unknown; syscall?: unknown };
  // For a Unix socket, `path` is the server's address.
  if (syscall === 'connect') return null;
  return [path, dest].find((name) => typeof name === 'string') ?? null;
}

/** The messages of an error and its causes. A connection attempt has one error for each address; OpenSSL's has a shorter text. */
export function describeReason(failure: unknown): string {
  if (failure instanceof AggregateError) return failure.errors.map(describeReason).join(', ');
  if (!(failure instanceof Error)) return String(failure);
  const { library, reason } = failure as { library?: unknown; reason?: unknown };
  if (typeof reason === 'string') return `${library}: ${reason}`;
  return failure.cause instanceof Error ? `${failure.message}: ${describeReason(failure.cause)}` : failure.message;
}

/** The size of one segment of PostgreSQL's write-ahead log: without space for the next one, PostgreSQL ends. */
const SEGMENT_BYTES = 16 * 2 ** 20;

/** Whether the disk lacks space for the next log segment of a database in the folder. */
export function isDiskFull(folder: string): boolean {
  try {
    const { bavail, bsize } = statfsSync(folder);
    return bavail * bsize < SEGMENT_BYTES;
  } catch {
    return false;
  }
}
