import { setTimeout as sleep } from 'node:timers/promises';
import type { PGlite } from '@electric-sql/pglite';
import { PrismaPg } from '@prisma/adapter-pg';
import pg from 'pg';
import { PrismaClient } from '../generated/prisma/client.ts';
import type { Lifecycle } from '../kernel/lifecycle.ts';
import { describeServer } from './address.ts';
import type { Driver, PoolState } from './driver.ts';
import { limitDriverReads } from './driverreads.ts';
import { hasCode, missingRight, toConnectionFailure, toFault } from './errors.ts';
import { createLogger, type Logger } from './logger.ts';
import { migrate } from './migrate.ts';
import { describeReason, isRejectedConnection, OperatorError, TableInUse } from './operatorerror.ts';
import { Pool } from './pool.ts';
import { createAscendingQuery, createQuery, type Query, type RunStatement } from './query.ts';
import { type Right, requireRights } from './rights.ts';
import { sessionOptions, withSession } from './sessionoptions.ts';
import { runTransaction } from './transaction.ts';

/** Runs handwritten SQL statements: each by itself, or all of them within one transaction. */
export interface SqlClient {
  readonly query: Query;
  /** Runs `work` in one transaction, or in the one that is open: commits when it returns, rolls back when it throws. */
  readonly transact: <Result>(work: (query: Query, within: SqlClient) => Promise<Result>) => Promise<Result>;
  /** Runs the callback after the commit; without a transaction at once. */
  readonly afterCommit: (callback: () => void) => void;
}

/** Prisma's client, and the handwritten statements that bypass it, on the same connections. */
export type Database = PrismaClient & SqlClient & ListClient;

interface ListClient {
  /** The database of the process, whose statements are shared by all requests; a user's own one may be derived from it. */
  readonly shared: Database;
  /**
   * The query for a list that is read from either end. Its statement is written in descending order: ascending, it runs without each
   * `DESC` in it.
   */
  queryInOrder(isAscending: boolean): Query;
}

interface OpenedDatabase {
  readonly database: Database;
  /** Null for the embedded database, which has no connections. */
  readonly pool: PoolState | null;
}

interface DatabaseSettings {
  readonly dataDir: string;
  readonly database: { readonly url: string; readonly poolSize: number } | null;
}

export interface DatabaseOptions {
  /** For tests: opens an embedded database instead of the one in the data folder. It is closed with the app. */
  readonly openEmbedded?: () => Promise<PGlite>;
  readonly log?: Logger;
  /** What the role has to be granted. The embedded database has no roles. */
  readonly rights?: readonly Right[];
  /** Called, instead of the log, while the start waits for the database. */
  readonly onWait?: (wait: DatabaseWait) => void;
  /** For tests: called with every SQL statement, COMMIT included, and its values; Prisma's are converted to JSON and back. */
  readonly onStatement?: (sql: string, values: readonly unknown[]) => void;
}

/** What a start waits for. */
export interface DatabaseWait {
  /** Null where only the caller knows it. */
  readonly server: string | null;
  readonly cause: string;
  /** For how much longer it waits at most. */
  readonly secondsLeft: number;
}

/** The log of tests that give none. */
const noLog = createLogger('silent');

/**
 * Opens the database, applies missing migrations, and registers its closing. Without a URL it is PGlite in `dataDir`, owned by
 * this process alone: throws a FolderLockedError where another process has it.
 */
export async function openDatabase(
  settings: DatabaseSettings,
  lifecycle: Lifecycle,
  options: DatabaseOptions = {},
): Promise<OpenedDatabase> {
  const { onStatement } = options;
  const { adapter, run, transact, pool } = settings.database
    ? openPoolDriver(await openPool(settings.database, lifecycle, options))
    : await (await import('./embedded.ts')).openEmbedded(settings.dataDir, lifecycle, options.openEmbedded);
  const client = new PrismaClient({
    adapter,
    // Events cost Prisma work even without a listener.
    log: onStatement ? [{ emit: 'event', level: 'query' }] : [],
    transactionOptions: { maxWait: 3_000, timeout: 5_000 },
  });
  lifecycle.onClose(() => client.$disconnect());
  if (onStatement) client.$on('query', ({ query, params }) => onStatement(query, JSON.parse(params)));
  const observed =
    (run: RunStatement): RunStatement =>
    (statement, values) => {
      onStatement?.(statement.text, values);
      return run(statement, values);
    };
  const query = createQuery(observed(run));
  const ascendingQuery = createAscendingQuery(observed(run));
  const own: SqlClient & ListClient = {
    shared: client as Database,
    query,
    queryInOrder: (isAscending) => (isAscending ? ascendingQuery : query),
    transact: async (work) => {
      const callbacks: Array<() => void> = [];
      const result = await transact((run) => {
        const within = withinTransaction(createQuery(observed(run)), callbacks);
        return work(within.query, within);
      });
      onStatement?.('COMMIT', []);
      for (const callback of callbacks) callback();
      return result;
    },
    afterCommit: (callback) => callback(),
  };
  return { database: Object.assign(client, own), pool };
}

function withinTransaction(query: Query, callbacks: Array<() => void>): SqlClient {
  const within: SqlClient = {
    query,
    transact: (work) => work(query, within),
    afterCommit: (callback) => void callbacks.push(callback),
  };
  return within;
}

function openPoolDriver(pool: Pool): Driver {
  return {
    adapter: new PrismaPg(pool),
    run: (statement, values) => pool.run(statement, values),
    transact: (work) => runTransaction(pool, work),
    pool: {
      get isAway() {
        return pool.breaker.isOpen;
      },
      get lacksTables() {
        return pool.lacksTables;
      },
      checkTables: () => pool.checkTables(),
      count: () => ({ busy: pool.totalCount - pool.idleCount, idle: pool.idleCount, waiting: pool.waitingCount }),
    },
  };
}

async function openPool(
  { url, poolSize }: { url: string; poolSize: number },
  lifecycle: Lifecycle,
  { log = noLog, onWait = logWait(log), rights = [] }: DatabaseOptions,
): Promise<Pool> {
  limitDriverReads();
  const server = describeServer(new URL(url));
  const report = (wait: DatabaseWait) => onWait({ ...wait, server });
  const session = await retryUntilDatabaseAnswers((attempt) => migratePostgres(url, rights, attempt), report);
  const pool = new Pool({ url, size: poolSize, log, session });
  lifecycle.onClose(() => pool.end());
  return pool;
}

/** How long a starting process waits for its database, which may be starting, too. */
const START_TIMEOUT_MS = 60_000;
const START_RETRY_MS = 500;
/** All statements that need a table wait behind a migration that waits for it, so it leaves them most of the time. */
const TABLE_RETRY_MS = 4_000;
/** How often it says so. */
const WAIT_LINES_INTERVAL_MS = 10_000;
/** After this time without a reply to a connection attempt, it says so, too: the attempt itself fails only after five seconds. */
const SILENCE_MS = 1_000;

/** How long it waits for a connection, and for the answer to its first question. */
const LOOK_UP_TIMEOUT_MS = 5_000;

/** Logs what a start waits for, without the stack of the failure, which says nothing more. */
export function logWait(log: Logger): (wait: DatabaseWait) => void {
  return ({ server, cause, secondsLeft }) =>
    log.warn({ server: server ?? undefined, cause, seconds_left: secondsLeft }, 'waiting for the database');
}

/** What an attempt to reach the database may tell before it ends. */
export interface Attempt {
  /** The database does not answer, though nothing has failed yet. */
  readonly onSilence: () => void;
  /** A part of the work is done, and need not be done again: the minute begins anew. */
  readonly onProgress: () => void;
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
  const reportSometimes = (cause: string) => {
    const now = performance.now();
    if (now - reportedAt < WAIT_LINES_INTERVAL_MS) return;
    reportedAt = now;
    report({ server: null, cause, secondsLeft: Math.max(0, Math.round((deadline - now) / 1000)) });
  };
  const attempt: Attempt = {
    onSilence: () => reportSometimes('no answer'),
    onProgress() {
      deadline = performance.now() + START_TIMEOUT_MS;
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

/** Does the work of PostgreSQL's background processes, which the embedded database lacks: removes dead rows, and keeps its log short. */
export async function vacuumEmbedded(database: Database): Promise<void> {
  await database.query`VACUUM`;
  await database.query`CHECKPOINT`;
}

/**
 * Migrates on a separate connection, without the pool's timeouts: a migration may take long. Returns the settings of a session,
 * as far as this version of PostgreSQL has them. Throws an OperatorError for a database that is not in UTF8, or whose sessions run
 * without triggers, and for a role that lacks one of the rights.
 */
async function migratePostgres(url: string, rights: readonly Right[], { onSilence, onProgress }: Attempt): Promise<string> {
  const client = await connect(url, onSilence);
  try {
    const question: pg.QueryConfig & Pick<pg.ClientConfig, 'query_timeout'> = {
      text: `SELECT current_setting('server_encoding') AS encoding, current_setting('session_replication_role') AS "replicationRole",
        current_setting('transaction_timeout', true) AS "transactionTimeout"`,
      query_timeout: LOOK_UP_TIMEOUT_MS,
    };
    const { rows } = await client.query<{ encoding: string; replicationRole: string; transactionTimeout: string | null }>(question);
    const { encoding, replicationRole, transactionTimeout = null } = rows[0] ?? {};
    if (encoding !== 'UTF8') throw new OperatorError(`DATABASE_URL names a database in ${encoding}: create one in the encoding UTF8.`);
    // Only a superuser may set it, so it cannot be set here.
    if (replicationRole === 'replica')
      throw new OperatorError(
        'DATABASE_URL leads to sessions without triggers: reset session_replication_role of the role and the database.',
      );
    const runScript = async (sql: string) => void (await client.query(sql));
    const query = async (sql: string, values: readonly unknown[]) => (await client.query(sql, [...values])).rows;
    await migrate({ runScript, query }, onProgress);
    await requireRights(query, rights);
    return transactionTimeout === null ? sessionOptions : `${sessionOptions} -c transaction_timeout=0`;
  } finally {
    await client.end();
  }
}

async function connect(url: string, onSilence: () => void): Promise<pg.Client> {
  const client = createClient(url);
  // The statement under way rejects with the same failure; without a listener it would end the process.
  client.on('error', () => {});
  const timer = setTimeout(onSilence, SILENCE_MS);
  await client
    .connect()
    .catch((failure) => Promise.reject(toConnectionFailure(failure)))
    .finally(() => clearTimeout(timer));
  return client;
}

/** The driver reads the certificates that the URL names at once. Throws an OperatorError for one that it cannot read. */
function createClient(url: string): pg.Client {
  try {
    return new pg.Client({
      ...withSession(url, sessionOptions),
      application_name: 'portico migration',
      connectionTimeoutMillis: LOOK_UP_TIMEOUT_MS,
      // A migration waits for others without a limit, but not for a server that is gone.
      keepAlive: true,
      keepAliveInitialDelayMillis: 10_000,
    });
  } catch (failure) {
    const { code, path } = failure as NodeJS.ErrnoException;
    throw path === undefined
      ? toConnectionFailure(failure as Error)
      : new OperatorError(`DATABASE_URL names ${path}, which cannot be read (${code}).`, { cause: failure });
  }
}
