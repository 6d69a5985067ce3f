import { Cooldown } from '../kernel/cooldown.ts';
import type { Fault } from '../kernel/fault.ts';
import { hasCode, isAway, missingRight, readOnlyServer } from './errors.ts';
import type { Logger } from './logger.ts';

const SHARED_LINES_INTERVAL_MS = 10_000;

/** The codes for a server, a database or a role that has reached its maximum of connections: PostgreSQL's SQLSTATE, and Prisma's. */
const exhaustedCodes = new Set(['53300', 'P2037']);

let internalErrors = 0;

/** Logs one cause of many requests, at most every ten seconds, with the count of the requests since the line before. */
class SharedCause {
  #count = 0;
  readonly #lines = new Cooldown(SHARED_LINES_INTERVAL_MS);

  constructor(
    readonly codes: ReadonlySet<string>,
    private readonly message: string,
  ) {}

  record(err: Error, log: Logger): void {
    this.#count += 1;
    if (!this.#lines.begin()) return;
    log.warn({ err, count: this.#count }, this.message);
    this.#count = 0;
  }
}

const sharedCauses = [
  new SharedCause(exhaustedCodes, 'the connections of PostgreSQL are exhausted'),
  new SharedCause(readOnlyServer, 'PostgreSQL takes no writes'),
  new SharedCause(missingRight, 'the role lacks a right: run the script of docs/operations.md (Roles)'),
];

/**
 * Logs the cause of a fault, which the client does not see, and counts an `internal_error`. In an outage of the database there is no
 * line for each request, as the breaker has logged the cause once. While PostgreSQL has no connection left or takes no writes, or the
 * role lacks a right, there is a line every ten seconds at most.
 */
export function logCause(fault: Fault, context: { readonly log: Logger }): void {
  const { code, cause } = fault;
  if (code === 'service_unavailable' && cause instanceof Error && !isAway(cause)) {
    const shared = sharedCauses.find(({ codes }) => hasCode(cause, codes));
    if (shared) shared.record(cause, context.log);
    else context.log.warn({ err: cause }, 'unavailable');
  }
  if (code !== 'internal_error') return;
  internalErrors += 1;
  context.log.error({ err: cause }, 'internal error');
}

/** The number of internal errors in this process so far. */
export function countInternalErrors(): number {
  return internalErrors;
}
