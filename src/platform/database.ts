import { existsSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { PGlite } from '@electric-sql/pglite';
import { PrismaPg } from '@prisma/adapter-pg';
import pg from 'pg';
import { PrismaPGlite } from 'pglite-prisma-adapter';
import { PrismaClient } from '../generated/prisma/client.ts';
import { Fault } from '../kernel/fault.ts';
import type { Lifecycle } from '../kernel/lifecycle.ts';
import { createLog, type Log } from './log.ts';
import { migrate } from './migrate.ts';
import { ownFolder } from './ownership.ts';
import { Pool } from './pool.ts';

export type Database = PrismaClient;

/** The connections to PostgreSQL, for those who look after them. */
export interface Connections {
  readonly isAway: boolean;
  count(): { busy: number; idle: number; waiting: number };
}

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
  /** Called with every SQL statement: for tests that count them. */
  readonly onStatement?: (sql: string) => void;
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
  const pool = settings.database ? await openPool(settings.database, lifecycle, options.log ?? noLog) : null;
  const adapter = pool ? new PrismaPg(pool) : await openEmbedded(settings.dataDir, lifecycle, options.snapshot);
  const client = new PrismaClient({
    adapter,
    log: [{ emit: 'event', level: 'query' }],
    transactionOptions: { maxWait: 3_000, timeout: 5_000 },
  });
  lifecycle.onClose(() => client.$disconnect());
  const { onStatement } = options;
  if (onStatement) client.$on('query', (event) => onStatement(event.query));
  return { database: client, connections: pool && describe(pool) };
}

function describe(pool: Pool): Connections {
  return {
    get isAway() {
      return pool.breaker.isOpen;
    },
    count: () => ({ busy: pool.totalCount - pool.idleCount, idle: pool.idleCount, waiting: pool.waitingCount }),
  };
}

async function openEmbedded(dataDir: string, lifecycle: Lifecycle, snapshot: Blob | undefined) {
  const folder = join(dataDir, 'database');
  if (!snapshot) {
    mkdirSync(dataDir, { recursive: true, mode: 0o700 });
    lifecycle.onClose(await ownFolder(dataDir));
    if (!existsSync(folder)) await createEmbedded(folder);
  }
  const embedded = await PGlite.create({ dataDir: snapshot ? 'memory://' : folder, loadDataDir: snapshot });
  lifecycle.onClose(() => embedded.close());
  await migrate({
    runScript: async (sql) => void (await embedded.exec(sql)),
    query: async (sql, values) => (await embedded.query<Record<string, unknown>>(sql, [...values])).rows,
  });
  return new PrismaPGlite(embedded);
}

/** An empty database that appears whole: PGlite could not go on with one whose making was broken off. */
async function createEmbedded(folder: string): Promise<void> {
  const draft = `${folder}.draft`;
  rmSync(draft, { recursive: true, force: true });
  const embedded = await PGlite.create(draft);
  await embedded.close();
  renameSync(draft, folder);
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
