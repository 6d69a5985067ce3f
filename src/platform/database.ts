import { setTimeout as sleep } from 'node:timers/promises';
import type { PGlite } from '@electric-sql/pglite';
import { PrismaPg } from '@prisma/adapter-pg';
import pg from 'pg';
import { PrismaClient } from '../generated/prisma/client.ts';
import type { Lifecycle } from '../kernel/lifecycle.ts';
import type { Driver, PoolState, RunStatement } from './driver.ts';
import { toFault } from './errors.ts';
import { createLogger, type Logger } from './logger.ts';
import { migrate } from './migrate.ts';
import { Pool } from './pool.ts';
import { createQuery, type Query } from './query.ts';
import { runTransaction } from './transaction.ts';

/** The way of statements by hand to the database: each for itself, or all within one transaction. */
export interface Statements {
  readonly query: Query;
  /** Runs statements in one transaction, which may be under way: what `work` returns is committed, what it throws undoes all. */
  readonly transact: <Result>(work: (query: Query, within: Statements) => Promise<Result>) => Promise<Result>;
  /** Calls back when what was written is committed: without a transaction at once. */
  readonly afterCommit: (callBack: () => void) => void;
}

/** Prisma's client, and a shorter way for the statements that are written by hand: on the same connections, with one decoder. */
export type Database = PrismaClient & Statements;

interface OpenedDatabase {
  readonly database: Database;
  /** Null: the embedded database has no connections. */
  readonly connections: PoolState | null;
}

interface DatabaseSettings {
  readonly dataDir: string;
  readonly database: { readonly url: string; readonly pool: number } | null;
}

export interface DatabaseOptions {
  /** Opens an embedded database in the place of the one in the data folder; it is closed with the app. For tests. */
  readonly openEmbedded?: () => Promise<PGlite>;
  readonly log?: Logger;
  /** Called with every SQL statement and its values, COMMIT among them: for tests. Prisma's values come as JSON has them. */
  readonly onStatement?: (sql: string, values: readonly unknown[]) => void;
}

/** The logger of commands and tests that have none. */
const noLog = createLogger('silent');

/**
 * Opens the database, brings it up to the newest migration, and registers its closing.
 * Without a URL it is PGlite in `dataDir`, owned by this process alone; throws a FolderOwnedError where another has it.
 */
export async function openDatabase(
  settings: DatabaseSettings,
  lifecycle: Lifecycle,
  options: DatabaseOptions = {},
): Promise<OpenedDatabase> {
  const { onStatement } = options;
  const { adapter, run, transact, connections } = settings.database
    ? openPoolDriver(await openPool(settings.database, lifecycle, options.log ?? noLog))
    : await (await import('./embedded.ts')).openEmbedded(settings.dataDir, lifecycle, options.openEmbedded);
  const client = new PrismaClient({
    adapter,
    // Each event costs Prisma work, also without a listener.
    log: onStatement ? [{ emit: 'event', level: 'query' }] : [],
    transactionOptions: { maxWait: 3_000, timeout: 5_000 },
  });
  lifecycle.onClose(() => client.$disconnect());
  if (onStatement) client.$on('query', ({ query, params }) => onStatement(query, JSON.parse(params)));
  const createQueryOn = (run: RunStatement) =>
    createQuery((statement, values) => {
      onStatement?.(statement.text, values);
      return run(statement, values);
    });
  const own: Statements = {
    query: createQueryOn(run),
    transact: async (work) => {
      const callBacks: Array<() => void> = [];
      const result = await transact((run) => {
        const within = withinTransaction(createQueryOn(run), callBacks);
        return work(within.query, within);
      });
      onStatement?.('COMMIT', []);
      for (const callBack of callBacks) callBack();
      return result;
    },
    afterCommit: (callBack) => callBack(),
  };
  return { database: Object.assign(client, own), connections };
}

function withinTransaction(query: Query, callBacks: Array<() => void>): Statements {
  const within: Statements = {
    query,
    transact: (work) => work(query, within),
    afterCommit: (callBack) => void callBacks.push(callBack),
  };
  return within;
}

function openPoolDriver(pool: Pool): Driver {
  return {
    adapter: new PrismaPg(pool),
    run: (statement, values) => pool.run(statement, values),
    transact: (work) => runTransaction(pool, work),
    connections: {
      get isAway() {
        return pool.breaker.isOpen;
      },
      count: () => ({ busy: pool.totalCount - pool.idleCount, idle: pool.idleCount, waiting: pool.waitingCount }),
    },
  };
}

async function openPool({ url, pool: size }: { url: string; pool: number }, lifecycle: Lifecycle, log: Logger): Promise<Pool> {
  await whenDatabaseAnswers(() => migratePostgres(url), log);
  const pool = new Pool({ url, size, log });
  lifecycle.onClose(() => pool.end());
  return pool;
}

/** How long a starting process waits for its database, which may be starting too. */
const START_PATIENCE_MS = 60_000;
const START_RETRY_MS = 500;

/** Retries the work of a start as long as the database is out of reach: the work may run more than once. */
export async function whenDatabaseAnswers<Result>(work: () => Promise<Result>, log: Logger): Promise<Result> {
  const deadline = performance.now() + START_PATIENCE_MS;
  for (;;) {
    try {
      return await work();
    } catch (failure) {
      if (toFault(failure).code !== 'service_unavailable' || performance.now() > deadline) throw failure;
      log.warn({ err: failure }, 'waiting for the database');
      await sleep(START_RETRY_MS);
    }
  }
}

/** Migrates on a connection of its own, without the timeouts of the pool: a migration may take long. */
async function migratePostgres(url: string): Promise<void> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 5_000, options: '-c timezone=UTC' });
  await client.connect();
  try {
    await migrate({
      runScript: async (sql) => void (await client.query(sql)),
      query: async (sql, values) => (await client.query(sql, [...values])).rows,
    });
  } finally {
    await client.end();
  }
}
