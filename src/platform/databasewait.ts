import { setTimeout as sleep } from 'node:timers/promises';
import { hasCode, missingRight, toFault } from './errors.ts';
import type { Logger } from './logger.ts';
import { describeReason, isRejectedConnection, TableInUse } from './operatorerror.ts';

/** How long a starting process waits for its database, which may be starting, too. */
const START_TIMEOUT_MS = 60_000;
const START_RETRY_MS = 500;
/** All statements that need a table wait behind a migration that waits for it, so it leaves them most of the time. */
const TABLE_RETRY_MS = 4_000;
/** The time between two reports of the wait. */
const WAIT_LINES_INTERVAL_MS = 10_000;

/** The server that a start waits for, and why. */
export interface DatabaseWait {
  /** Null where only the caller knows it. */
  readonly server: string | null;
  readonly cause: string;
  /** For how much longer it waits at most; null for a wait without a limit. */
  readonly secondsLeft: number | null;
}

/** Logs what a start waits for, without the stack of the failure, which says nothing more. */
export function logWait(log: Logger): (wait: DatabaseWait) => void {
  return ({ server, cause, secondsLeft }) =>
    log.warn({ server: server ?? undefined, cause, seconds_left: secondsLeft ?? undefined }, 'waiting for the database');
}

/** The callbacks by which an attempt to reach the database reports before it ends. */
export interface Attempt {
  /** The database does not answer, though nothing has failed yet. */
  readonly onSilence: () => void;
  /** A part of the work is done, and need not be done again: the minute begins anew. */
  readonly onProgress: () => void;
  /** Another process migrates the database, which may take long: the minute begins anew. */
  readonly onQueued: () => void;
}

/**
 * Retries `work` while the database is out of reach, until it has made no progress for a minute; then throws its last error. A rejection
 * is thrown at once. Reports the wait when it begins, and then every ten seconds.
 */
export async function retryUntilDatabaseAnswers<Result>(
  work: (attempt: Attempt) => Promise<Result>,
  report: (wait: DatabaseWait) => void,
): Promise<Result> {
  let deadline = performance.now() + START_TIMEOUT_MS;
  let reportedAt = Number.NEGATIVE_INFINITY;
  const reportSometimes = (cause: string, isLimited = true) => {
    const now = performance.now();
    if (now - reportedAt < WAIT_LINES_INTERVAL_MS) return;
    reportedAt = now;
    report({ server: null, cause, secondsLeft: isLimited ? Math.max(0, Math.round((deadline - now) / 1000)) : null });
  };
  const extend = () => {
    deadline = performance.now() + START_TIMEOUT_MS;
  };
  const attempt: Attempt = {
    onSilence: () => reportSometimes('no answer'),
    onProgress: extend,
    onQueued() {
      extend();
      reportSometimes('another process is migrating the database', false);
    },
  };
  for (;;) {
    try {
      return await work(attempt);
    } catch (failure) {
      const isRejected = isRejectedConnection(failure as Error) || hasCode(failure, missingRight);
      const isAway = toFault(failure).code === 'service_unavailable' && !isRejected;
      if (!isAway || performance.now() > deadline) throw failure;
      reportSometimes(describeReason(failure));
      await sleep(failure instanceof TableInUse ? TABLE_RETRY_MS * (0.5 + Math.random()) : START_RETRY_MS);
    }
  }
}
