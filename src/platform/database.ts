import { existsSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { PGlite } from '@electric-sql/pglite';
import { PrismaPg } from '@prisma/adapter-pg';
import pg from 'pg';
import { PrismaPGlite } from 'pglite-prisma-adapter';
import { PrismaClient } from '../generated/prisma/client.ts';
import type { Lifecycle } from '../kernel/lifecycle.ts';
import { migrate } from './migrate.ts';
import { ownFolder } from './ownership.ts';

export type Database = PrismaClient;

interface DatabaseSettings {
  readonly dataDir: string;
  readonly database: { readonly url: string; readonly pool: number } | null;
}

export interface DatabaseOptions {
  /** A copy of a data folder to start from (PGlite's `dumpDataDir`), in memory: for tests. */
  readonly snapshot?: Blob;
  /** Called with every SQL statement: for tests that count them. */
  readonly onStatement?: (sql: string) => void;
}

/**
 * Opens the database, brings it up to the newest migration, and registers its closing.
 * Without a URL it is PGlite in `dataDir`, owned by this process alone; throws a FolderOwnedError where another has it.
 */
export async function openDatabase(settings: DatabaseSettings, lifecycle: Lifecycle, options: DatabaseOptions = {}): Promise<Database> {
  const adapter = settings.database
    ? await openPostgres(settings.database, lifecycle)
    : await openEmbedded(settings.dataDir, lifecycle, options.snapshot);
  const client = new PrismaClient({
    adapter,
    log: [{ emit: 'event', level: 'query' }],
    transactionOptions: { maxWait: 1_000, timeout: 5_000 },
  });
  lifecycle.onClose(() => client.$disconnect());
  const { onStatement } = options;
  if (onStatement) client.$on('query', (event) => onStatement(event.query));
  return client;
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

async function openPostgres({ url, pool: max }: { url: string; pool: number }, lifecycle: Lifecycle) {
  await migratePostgres(url);
  const pool = new pg.Pool({
    connectionString: url,
    max,
    connectionTimeoutMillis: 1_000,
    idleTimeoutMillis: 30_000,
    statement_timeout: 5_000,
    query_timeout: 6_000,
    idle_in_transaction_session_timeout: 5_000,
    options: '-c timezone=UTC',
    application_name: 'portico',
  });
  // Without a listener, an idle connection that breaks would end the process; the next query reports it.
  pool.on('error', () => {});
  lifecycle.onClose(() => pool.end());
  return new PrismaPg(pool);
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
