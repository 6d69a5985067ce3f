import { createHash, randomUUID } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { hasCode, missingRight, toFault } from './errors.ts';
import { OperatorError, TableInUse } from './operatorerror.ts';
import { packageRoot } from './packageroot.ts';

/** A database connection for migrations: runs whole scripts, and single statements with values. */
export interface MigrationConnection {
  runScript(sql: string): Promise<void>;
  query(sql: string, values: readonly unknown[]): Promise<Array<Record<string, unknown>>>;
}

interface Migration {
  readonly name: string;
  readonly script: string;
  readonly checksum: string;
}

/** The key of the advisory lock: any number, but the same in every replica. */
export const LOCK_KEY = 7_046_029_254;

/**
 * A migration waits for a table that another session holds for long enough that PostgreSQL cancels an autovacuum of that table, which
 * it does after `deadlock_timeout` (1 s), and not longer than requests wait; after a much longer pause it starts from the beginning.
 */
const LIMIT_LOCK_WAITS = `
  SELECT set_config('lock_timeout', (least(setting::int, 2500) + 500)::text, true) FROM pg_settings WHERE name = 'deadlock_timeout'`;

/**
 * PostgreSQL looks whether the migration's client is still there while a statement runs: the locks of one that was killed would otherwise
 * last until its statement ends. PostgreSQL has it since version 14, and not on every system.
 */
const CHECK_CLIENT = `
  DO $$ BEGIN SET LOCAL client_connection_check_interval = '1s'; EXCEPTION WHEN OTHERS THEN NULL; END $$`;

/** A migration whose process is frozen, or whose network is gone, would hold up every start: between its statements is no pause. */
const LIMIT_PAUSES = "SET LOCAL idle_in_transaction_session_timeout = '1min'";

/** After this time behind another process, and as often, the caller is told of the wait. */
const WAIT_INTERVAL_MS = 1_000;

/** The ledger of `prisma migrate`, whose commands then find what is applied. Its `deploy` takes another lock than this module. */
const LEDGER = `
  CREATE TABLE IF NOT EXISTS _prisma_migrations (
    id VARCHAR(36) PRIMARY KEY NOT NULL,
    checksum VARCHAR(64) NOT NULL,
    finished_at TIMESTAMPTZ,
    migration_name VARCHAR(255) NOT NULL,
    logs TEXT,
    rolled_back_at TIMESTAMPTZ,
    started_at TIMESTAMPTZ NOT NULL DEFAULT now(),
    applied_steps_count INTEGER NOT NULL DEFAULT 0
  )`;

/**
 * Applies the missing migrations of prisma/migrations, each in a transaction of its own, under a lock that makes other replicas
 * wait. `prisma migrate deploy` needs an engine that is downloaded, and cannot reach PGlite. Returns the names of those that this
 * call has applied. `onProgress` is called after each, also after those that another replica has applied meanwhile, and `onQueued` every
 * second in which another replica holds the lock. Throws an OperatorError where an applied migration was changed afterwards.
 */
export async function migrate(
  connection: MigrationConnection,
  { onProgress = () => {}, onQueued = () => {} }: { readonly onProgress?: () => void; readonly onQueued?: () => void } = {},
): Promise<string[]> {
  const migrations = await readMigrations();
  const checksums = await readLedger(connection);
  const missing = migrations.filter(({ name }) => !checksums.has(name));
  const changed = migrations.find(({ name, checksum }) => checksums.has(name) && checksums.get(name) !== checksum);
  if (changed)
    throw new OperatorError(`The migration ${changed.name} is not the one that this database has: it was made by another build.`);
  const applied: string[] = [];
  for (const migration of missing) {
    if (await apply(connection, migration, onQueued)) applied.push(migration.name);
    onProgress();
  }
  return applied;
}

/** The checksums of the applied migrations, by name. */
async function readLedger(connection: MigrationConnection): Promise<Map<unknown, unknown>> {
  if (!(await hasLedger(connection))) return new Map();
  const rows = await connection.query(
    'SELECT migration_name, checksum FROM _prisma_migrations WHERE finished_at IS NOT NULL AND rolled_back_at IS NULL',
    [],
  );
  return new Map(rows.map((row) => [row.migration_name, row.checksum]));
}

async function hasLedger(connection: MigrationConnection): Promise<boolean> {
  const [ledger] = await connection.query("SELECT to_regclass('_prisma_migrations') IS NOT NULL AS exists", []);
  return ledger?.exists === true;
}

/** Returns false where another replica has applied the migration. The lock ends with the transaction, also behind a pooler. */
async function apply(connection: MigrationConnection, { name, script, checksum }: Migration, onQueued: () => void): Promise<boolean> {
  await connection.runScript('BEGIN');
  try {
    // A role may have limits that are meant for requests; PostgreSQL has the second one since version 17.
    await connection.runScript('SET LOCAL statement_timeout = 0');
    await connection.query(
      "SELECT set_config('transaction_timeout', '0', true) WHERE current_setting('transaction_timeout', true) IS NOT NULL",
      [],
    );
    await connection.runScript(CHECK_CLIENT);
    await connection.runScript(LIMIT_PAUSES);
    const queued = setInterval(onQueued, WAIT_INTERVAL_MS);
    await connection.query('SELECT pg_advisory_xact_lock($1)', [LOCK_KEY]).finally(() => clearInterval(queued));
    // A statement that waits for a table holds up all that come after it, also those that only read.
    await connection.query(LIMIT_LOCK_WAITS, []);
    // IF NOT EXISTS alone requires the privilege to create tables even where the table exists.
    if (!(await hasLedger(connection))) await connection.runScript(LEDGER);
    const isMissing = !(await readLedger(connection)).has(name);
    if (isMissing) {
      await connection.runScript(script).catch((cause) => Promise.reject(explain(name, cause)));
      await connection.query(
        `INSERT INTO _prisma_migrations (id, checksum, finished_at, migration_name, applied_steps_count)
         VALUES ($1, $2, now(), $3, 1)`,
        [randomUUID(), checksum, name],
      );
    }
    await connection.runScript('COMMIT');
    return isMissing;
  } catch (failure) {
    // Where the connection is lost, so is the transaction, and that failure is the one to report.
    await connection.runScript('ROLLBACK').catch(() => {});
    throw failure;
  }
}

/** The SQLSTATE of a statement that has waited for a lock for too long. */
const LOCK_NOT_AVAILABLE = '55P03';

/** A failed migration for the operator; an outage stays one, which a start waits for. */
function explain(name: string, cause: Error): Error {
  if ((cause as { code?: unknown }).code === LOCK_NOT_AVAILABLE) return new TableInUse(name, { cause });
  if (toFault(cause).code === 'service_unavailable' && !hasCode(cause, missingRight))
    return new Error(`migration ${name} failed`, { cause });
  return new OperatorError(`The migration ${name} cannot be applied, and nothing of it is kept: ${cause.message}.`, { cause });
}

async function readMigrations(): Promise<Migration[]> {
  const folder = new URL('prisma/migrations/', packageRoot);
  const entries = await readdir(folder, { withFileTypes: true });
  const names = entries.filter((entry) => entry.isDirectory()).map((entry) => entry.name);
  return Promise.all(
    names.sort().map(async (name) => {
      const script = await readFile(new URL(`${name}/migration.sql`, folder), 'utf8');
      return { name, script, checksum: createHash('sha256').update(script).digest('hex') };
    }),
  );
}
