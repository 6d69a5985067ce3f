import { PrismaPg } from '@prisma/adapter-pg';
import pg from 'pg';
import type { Lifecycle } from '../kernel/lifecycle.ts';
import { describeServer } from './databaseurl.ts';
import { type Attempt, type DatabaseWait, logWait, retryUntilDatabaseAnswers } from './databasewait.ts';
import type { Driver } from './driver.ts';
import { limitDriverReads } from './driverreads.ts';
import { toConnectionFailure } from './errors.ts';
import { createLogger, type Logger } from './logger.ts';
import { migrate } from './migrate.ts';
import { OperatorError } from './operatorerror.ts';
import { Pool } from './pool.ts';
import { type Right, requireRights } from './rights.ts';
import { sessionOptions, withSession } from './sessionoptions.ts';
import { runTransaction } from './transaction.ts';

/** The time limit of a start's connection attempt, and of its first query. */
const LOOK_UP_TIMEOUT_MS = 5_000;
/** After this time without a reply to a connection attempt, the start says so: the attempt itself fails only after five seconds. */
const SILENCE_MS = 1_000;

export interface PostgresOptions {
  readonly log?: Logger;
  /** The rights that the role has to be granted. */
  readonly rights?: readonly Right[];
  /** Called, instead of the log, while the start waits for the database. */
  readonly onWait?: (wait: DatabaseWait) => void;
}

/** The log of tests that give none. */
const noLog = createLogger('silent');

/** Waits for the database, applies missing migrations, and opens a pool of connections, which is closed with the process. */
export async function openPostgres(
  { url, poolSize }: { readonly url: string; readonly poolSize: number },
  lifecycle: Lifecycle,
  { log = noLog, onWait = logWait(log), rights = [] }: PostgresOptions,
): Promise<Driver> {
  limitDriverReads();
  const server = describeServer(new URL(url));
  const report = (wait: DatabaseWait) => onWait({ ...wait, server });
  const session = await retryUntilDatabaseAnswers((attempt) => migratePostgres(url, rights, attempt), report);
  const pool = new Pool({ url, size: poolSize, log, session });
  lifecycle.onClose(() => pool.end());
  return poolDriver(pool);
}

function poolDriver(pool: Pool): Driver {
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

/**
 * Migrates on a separate connection, without the pool's timeouts: a migration may take long. Returns the settings of a session,
 * as far as this version of PostgreSQL has them. Throws an OperatorError for a database that is not in UTF8, or whose sessions run
 * without triggers, and for a role that lacks one of the rights.
 */
async function migratePostgres(url: string, rights: readonly Right[], { onSilence, onProgress, onQueued }: Attempt): Promise<string> {
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
    await migrate({ runScript, query }, { onProgress, onQueued });
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
