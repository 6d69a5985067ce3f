import { tmpdir } from 'node:os';
import pg from 'pg';
import { expect, inject, it } from 'vitest';
import { Lifecycle } from '../src/kernel/lifecycle.ts';
import { openDatabase } from '../src/platform/database.ts';
import { OperatorError } from '../src/platform/failure.ts';
import { createLogger } from '../src/platform/logger.ts';
import { LOCK_KEY } from '../src/platform/migrate.ts';
import { databaseUrl, execute } from './support/database.ts';

const open = (url: string) => openDatabase({ dataDir: tmpdir(), database: { url, pool: 1 } }, new Lifecycle());

it('a certificate that cannot be read is named, as part of DATABASE_URL', async () => {
  const opening = open('postgresql://portico:secret@127.0.0.1/portico?sslmode=verify-full&sslrootcert=/nowhere/ca.crt');
  await expect(opening).rejects.toThrow(new OperatorError('DATABASE_URL names /nowhere/ca.crt, which cannot be read (ENOENT).'));
});

const origin = inject('origin');

it.runIf('server' in origin)('a migration whose connection is lost while it waits for another one begins again', async () => {
  if (!('server' in origin)) return;
  const name = `${origin.template}_lost`;
  await execute(origin.server, `CREATE DATABASE ${name}`);
  const url = databaseUrl(origin.server, name);
  const other = new pg.Client({ connectionString: url });
  await other.connect();
  await other.query(`SELECT pg_advisory_lock(${LOCK_KEY})`);
  const lifecycle = new Lifecycle();
  const opening = openDatabase({ dataDir: tmpdir(), database: { url, pool: 1 } }, lifecycle, { log: createLogger('silent') });
  const cut = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '${name}' AND wait_event = 'advisory'`;
  await expect.poll(async () => (await execute(origin.server, cut)).length).toBe(1);
  await other.end();
  await opening;
  expect((await execute(url, 'SELECT count(*)::int AS count FROM _prisma_migrations'))[0]?.count).toBeGreaterThan(0);
  await lifecycle.close();
});

it.runIf('server' in origin)('a database in another encoding is refused before anything is migrated', async () => {
  if (!('server' in origin)) return;
  const name = `${origin.template}_ascii`;
  await execute(origin.server, `CREATE DATABASE ${name} TEMPLATE template0 ENCODING 'SQL_ASCII' LC_COLLATE 'C' LC_CTYPE 'C'`);
  const url = databaseUrl(origin.server, name);
  const refusal = 'DATABASE_URL names a database in SQL_ASCII: create one in the encoding UTF8.';
  await expect(open(url)).rejects.toThrow(new OperatorError(refusal));
  expect(await execute(url, "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace")).toEqual([]);
});
