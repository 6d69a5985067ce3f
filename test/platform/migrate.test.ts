import { readdirSync } from 'node:fs';
import type { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { PGlite } from '@electric-sql/pglite';
import pg from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { toFault } from '../../src/platform/errors.ts';
import { LOCK_KEY, type MigrationConnection, migrate } from '../../src/platform/migrate.ts';
import { OperatorError } from '../../src/platform/operatorerror.ts';
import { isPostgres, needPostgres } from '../support/app.ts';
import { connectTo, databaseUrl, execute } from '../support/sql.ts';

/** A database used by this file alone, and connections to it. */
interface Own {
  /** Of a PostgreSQL. */
  readonly url: string;
  connect(): Promise<MigrationConnection>;
  remove(): Promise<void>;
}

const names = readdirSync(new URL('../../prisma/migrations/', import.meta.url), { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map((entry) => entry.name)
  .sort();

let own: Own;
let connection: MigrationConnection;

beforeAll(async () => {
  own = isPostgres ? await createPostgres() : await createEmbedded();
  connection = await own.connect();
});
beforeEach(() => connection.runScript('DROP SCHEMA public CASCADE; CREATE SCHEMA public'));
afterAll(() => own.remove());

async function createEmbedded(): Promise<Own> {
  const embedded = await PGlite.create();
  const only: MigrationConnection = {
    runScript: async (sql) => void (await embedded.exec(sql)),
    query: async (sql, values) => (await embedded.query<Record<string, unknown>>(sql, [...values])).rows,
  };
  return { url: '', connect: async () => only, remove: () => embedded.close() };
}

async function createPostgres(): Promise<Own> {
  const origin = needPostgres();
  const { server, template } = origin;
  const name = `${template}_migrate`;
  await execute(server, `CREATE DATABASE ${name}`);
  const url = databaseUrl(server, name);
  const clients: pg.Client[] = [];
  return {
    url,
    async connect() {
      const client = await connectTo(url);
      clients.push(client);
      return {
        runScript: async (sql) => void (await client.query(sql)),
        query: async (sql, values) => (await client.query(sql, [...values])).rows,
      };
    },
    async remove() {
      for (const client of clients) await client.end();
      await execute(server, `DROP DATABASE ${name} WITH (FORCE)`);
    },
  };
}

async function readLedger() {
  const rows = await connection.query('SELECT migration_name, applied_steps_count FROM _prisma_migrations ORDER BY migration_name', []);
  return rows.map((row) => [row.migration_name, row.applied_steps_count]);
}

const applied = names.map((name) => [name, 1]);

/** Portico's tables and types in the database. */
async function listObjects(): Promise<unknown[]> {
  const rows = await connection.query(
    `SELECT relname AS name FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' AND relname <> '_prisma_migrations'
     UNION ALL SELECT typname FROM pg_type WHERE typnamespace = 'public'::regnamespace AND typtype = 'e'
     UNION ALL SELECT proname FROM pg_proc WHERE pronamespace = 'public'::regnamespace`,
    [],
  );
  return rows.map(({ name }) => name);
}

describe('migrate', () => {
  test('applies the missing migrations in order, and none a second time', async () => {
    expect(names.length).toBeGreaterThanOrEqual(3);
    expect(await migrate(connection)).toEqual(names);
    expect(await readLedger()).toEqual(applied);
    expect(await migrate(connection)).toEqual([]);
    expect(await readLedger()).toEqual(applied);
  });

  test('runs a missing script alone, and ignores unknown migrations', async () => {
    await migrate(connection);
    const [forgotten = ''] = names.filter((name) => name.endsWith('task_lists'));
    await connection.query('DELETE FROM _prisma_migrations WHERE migration_name = $1', [forgotten]);
    await connection.query(
      "INSERT INTO _prisma_migrations (id, checksum, finished_at, migration_name) VALUES ('newer', 'x', now(), '99990101000000_newer')",
      [],
    );
    // The script's objects exist already, so its failure shows that it, and only it, was run.
    await expect(migrate(connection)).rejects.toThrow(`The migration ${forgotten} cannot be applied, and nothing of it is kept: `);
  });

  test('refuses when an applied migration was changed, and applies nothing', async () => {
    await migrate(connection);
    await connection.query("UPDATE _prisma_migrations SET checksum = 'other' WHERE migration_name = $1", [names[1]]);
    await connection.query('DELETE FROM _prisma_migrations WHERE migration_name = $1', [names[2]]);
    await expect(migrate(connection)).rejects.toThrow(
      new OperatorError(`The migration ${names[1]} is not the one that this database has: it was made by another build.`),
    );
    expect((await readLedger()).map(([name]) => name)).toEqual(names.filter((name) => name !== names[2]));
  });

  test('a script that fails leaves nothing behind, and is applied once its obstacle is gone', async () => {
    // The first script creates types, and other tables before this one.
    await connection.query('CREATE TABLE notification_reads (obstacle integer)', []);
    const failure = await migrate(connection).catch((reason) => reason);
    expect(failure.message).toMatch(`The migration ${names[0]} cannot be applied, and nothing of it is kept: `);
    expect(failure.cause.message).toContain('"notification_reads" already exists');
    expect(await listObjects()).toEqual(['notification_reads']);
    expect(await connection.query("SELECT to_regclass('_prisma_migrations')::text AS ledger", [])).toEqual([{ ledger: null }]);
    await connection.query('DROP TABLE notification_reads', []);
    expect(await migrate(connection)).toEqual(names);
  });

  test('applies each script once among concurrent runs, which wait for it', async () => {
    const connections = isPostgres ? await Promise.all(Array.from({ length: 5 }, () => own.connect())) : [connection];
    const outcomes = await Promise.all(connections.map((each) => migrate(each)));
    expect(outcomes.flat().sort()).toEqual(names);
    for (const outcome of outcomes) expect(outcome).toEqual(outcome.toSorted());
    expect(await readLedger()).toEqual(applied);
  });

  test('lets PostgreSQL end it after a minute in which its process sends nothing', async () => {
    const limits = new Set<unknown>();
    await migrate({
      ...connection,
      runScript: async (sql) => {
        const [row] = await connection.query("SELECT current_setting('idle_in_transaction_session_timeout') AS pause", []);
        if (sql.includes('CREATE TABLE')) limits.add(row?.pause);
        return connection.runScript(sql);
      },
    });
    expect([...limits]).toEqual(['1min']);
  });

  test('ignores the limits that the session has for requests', async () => {
    const limits = ['statement_timeout', 'transaction_timeout'];
    const known = await connection.query('SELECT name FROM pg_settings WHERE name = ANY ($1)', [limits]);
    const readLimits = () => connection.query('SELECT name, setting FROM pg_settings WHERE name = ANY ($1)', [limits]);
    for (const { name } of known) await connection.runScript(`SET ${name} = '1min'`);
    const seen: unknown[] = [];
    await migrate({
      ...connection,
      query: async (sql, values) => {
        if (sql.includes('advisory')) seen.push(...(await readLimits()));
        return connection.query(sql, values);
      },
    });
    for (const { name } of known) await connection.runScript(`RESET ${name}`);
    expect(seen).toEqual(names.flatMap(() => known.map(({ name }) => ({ name, setting: '0' }))));
  });

  // The embedded database has one session.
  test.runIf(isPostgres)('does not hold up readers of a table that another session has locked', async () => {
    await migrate(connection);
    const locking = names.find((name) => name.endsWith('_edges'));
    await connection.runScript('DROP TRIGGER keep_project_id ON projects; DROP FUNCTION keep_project_id');
    await connection.query('DELETE FROM _prisma_migrations WHERE migration_name = $1', [locking]);
    const [other, reader] = [await own.connect(), await own.connect()];
    await other.runScript('BEGIN; LOCK TABLE projects IN ROW EXCLUSIVE MODE');
    const failure = migrate(connection).catch((reason) => reason);
    await sleep(500);
    const startedAt = performance.now();
    await reader.query('SELECT count(*) FROM projects', []);
    await reader.query('UPDATE projects SET name = name', []);
    expect(performance.now() - startedAt).toBeLessThan(5_000);
    expect((await failure).message).toBe(`the migration ${locking} waits for a table that another session holds`);
    expect(toFault(await failure).code).toBe('service_unavailable');
    await other.runScript('COMMIT');
    expect(await migrate(connection)).toEqual([locking]);
  });

  test.runIf(isPostgres)('ends within seconds of its process, also while it waits', async () => {
    const [holder, killed] = [await own.connect(), new pg.Client({ connectionString: own.url })];
    await holder.query('SELECT pg_advisory_lock($1)', [LOCK_KEY]);
    killed.on('error', () => {});
    await killed.connect();
    const run = async (sql: string, values: readonly unknown[] = []) => (await killed.query(sql, [...values])).rows;
    const migrating = migrate({ runScript: async (sql) => void (await run(sql)), query: run }).catch((reason) => reason);
    const waiting = `SELECT count(*)::int AS waiting FROM pg_locks
      WHERE locktype = 'advisory' AND NOT granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`;
    const countWaiting = async () => (await connection.query(waiting, []))[0]?.waiting;
    await expect.poll(countWaiting).toBe(1);
    (killed as unknown as { connection: { stream: Socket } }).connection.stream.destroy();
    await migrating;
    await expect.poll(countWaiting, { timeout: 20_000 }).toBe(0);
    await holder.query('SELECT pg_advisory_unlock($1)', [LOCK_KEY]);
  });

  test('gives the lock back, also after a failure', async () => {
    await connection.query('CREATE TABLE users (obstacle integer)', []);
    await expect(migrate(connection)).rejects.toThrow();
    await connection.query('DROP TABLE users', []);
    const other = await own.connect();
    expect(await migrate(other)).toEqual(names);
    // pg_locks shows the locks of all databases of the server, and other tests run concurrently.
    const held = `SELECT count(*)::int AS held FROM pg_locks
      WHERE locktype = 'advisory' AND granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`;
    expect(await connection.query(held, [])).toEqual([{ held: 0 }]);
  });
});
