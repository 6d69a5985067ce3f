import { setTimeout as sleep } from 'node:timers/promises';
import { PrismaPg } from '@prisma/adapter-pg';
import pg from 'pg';
import { PrismaClient } from '../generated/prisma/client.ts';
import { Fault } from '../kernel/fault.ts';
import type { Lifecycle } from '../kernel/lifecycle.ts';
import type { Connections, Driver } from './driver.ts';
import { createLog, type Log } from './log.ts';
import { migrate } from './migrate.ts';
import { Pool } from './pool.ts';
import { createQuery, type Query } from './query.ts';

/** Prisma's client, and a shorter way for the statements that are written by hand. */
export type Database = PrismaClient & { readonly query: Query };

export interface OpenedDatabase {
  readonly database: Database;
  /** Null: the embedded database has no connections. */
  readonly connections: Connections | null;
}

interface DatabaseSettings {
  readonly dataDir: string;
  readonly database: { readonly url: string; readonly pool: number } | null;
}

export interface DatabaseOptions {
  /** A copy of a data folder to start from (PGlite's `dumpDataDir`), in memory: for tests. */
  readonly snapshot?: Blob;
  readonly log?: Log;
  /** Called with every SQL statement and its values: for tests. Prisma tells its values as JSON has them. */
  readonly onStatement?: (sql: string, values: readonly unknown[]) => void;
}

/** Keeps quiet: for commands and tests that have no log. */
const noLog = createLog('silent');

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
  const { adapter, run, connections } = settings.database
    ? describePool(await openPool(settings.database, lifecycle, options.log ?? noLog))
    : await (await import('./embedded.ts')).openEmbedded(settings.dataDir, lifecycle, options.snapshot);
  const client = new PrismaClient({
    adapter,
    // Each event costs Prisma work, also where nobody listens.
    log: onStatement ? [{ emit: 'event', level: 'query' }] : [],
    transactionOptions: { maxWait: 3_000, timeout: 5_000 },
  });
  lifecycle.onClose(() => client.$disconnect());
  if (onStatement) client.$on('query', ({ query, params }) => onStatement(query, JSON.parse(params)));
  const query = createQuery((statement, values) => {
    onStatement?.(statement.text, values);
    return run(statement, values);
  });
  return { database: Object.assign(client, { query }), connections };
}

function describePool(pool: Pool): Driver {
  return {
    adapter: new PrismaPg(pool),
    run: (statement, values) => pool.run(statement, values),
    connections: {
      get isAway() {
        return pool.breaker.isOpen;
      },
      count: () => ({ busy: pool.totalCount - pool.idleCount, idle: pool.idleCount, waiting: pool.waitingCount }),
    },
  };
}

async function openPool({ url, pool: size }: { url: string; pool: number }, lifecycle: Lifecycle, log: Log): Promise<Pool> {
  await whenDatabaseAnswers(() => migratePostgres(url), log);
  const pool = new Pool({ url, size, log });
  lifecycle.onClose(() => pool.end());
  return pool;
}

/** How long a starting process waits for its database: both may have been started at once. */
const START_PATIENCE_MS = 60_000;
const START_RETRY_MS = 500;

/** Work of the start, which may be done more than once: again, as long as the database is out of reach. */
export async function whenDatabaseAnswers<Result>(work: () => Promise<Result>, log: Log): Promise<Result> {
  const deadline = Date.now() + START_PATIENCE_MS;
  for (;;) {
    try {
      return await work();
    } catch (failure) {
      if (Fault.from(failure).code !== 'service_unavailable' || Date.now() > deadline) throw failure;
      log.warn({ err: failure }, 'waiting for the database');
      await sleep(START_RETRY_MS);
    }
  }
}

/** On a connection of its own, without the timeouts of the pool: a migration may take long. */
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
