import type { PGlite } from '@electric-sql/pglite';
import { PrismaClient } from '../generated/prisma/client.ts';
import type { Lifecycle } from '../kernel/lifecycle.ts';
import type { PoolState } from './driver.ts';
import { openPostgres, type PostgresOptions } from './postgres.ts';
import { createAscendingQuery, createQuery, type Query, type RunStatement } from './query.ts';

/** Runs handwritten SQL statements: each by itself, or all of them within one transaction. */
export interface SqlClient {
  readonly query: Query;
  /** Runs `work` in one transaction, or in the one that is open: commits when it returns, rolls back when it throws. */
  readonly transact: <Result>(work: (query: Query, within: SqlClient) => Promise<Result>) => Promise<Result>;
  /** Runs the callback after the commit; without a transaction at once. */
  readonly afterCommit: (callback: () => void) => void;
}

/** Prisma's client, and the handwritten statements that bypass it, on the same connections. */
export interface Database extends SqlClient {
  readonly prisma: PrismaClient;
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

export interface DatabaseOptions extends PostgresOptions {
  /** For tests: opens an embedded database instead of the one in the data folder. It is closed with the app. */
  readonly openEmbedded?: () => Promise<PGlite>;
  /** For tests: called with every SQL statement, COMMIT included, and its values; Prisma's are converted to JSON and back. */
  readonly onStatement?: (sql: string, values: readonly unknown[]) => void;
}

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
    ? await openPostgres(settings.database, lifecycle, options)
    : await (await import('./embedded.ts')).openEmbedded(settings.dataDir, lifecycle, options.openEmbedded);
  const prisma = new PrismaClient({
    adapter,
    // Events cost Prisma work even without a listener.
    log: onStatement ? [{ emit: 'event', level: 'query' }] : [],
    transactionOptions: { maxWait: 3_000, timeout: 5_000 },
  });
  lifecycle.onClose(() => prisma.$disconnect());
  if (onStatement) prisma.$on('query', ({ query, params }) => onStatement(query, JSON.parse(params)));
  const observed =
    (run: RunStatement): RunStatement =>
    (statement, values) => {
      onStatement?.(statement.text, values);
      return run(statement, values);
    };
  const query = createQuery(observed(run));
  const ascendingQuery = createAscendingQuery(observed(run));
  const database: Database = {
    prisma,
    get shared() {
      return database;
    },
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
  return { database, pool };
}

function withinTransaction(query: Query, callbacks: Array<() => void>): SqlClient {
  const within: SqlClient = {
    query,
    transact: (work) => work(query, within),
    afterCommit: (callback) => void callbacks.push(callback),
  };
  return within;
}

/** Does the work of PostgreSQL's background processes, which the embedded database lacks: removes dead rows, and keeps its log short. */
export async function vacuumEmbedded(database: Database): Promise<void> {
  await database.query`VACUUM`;
  await database.query`CHECKPOINT`;
}
