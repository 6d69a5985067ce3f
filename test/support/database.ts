import { randomBytes } from 'node:crypto';
import { cpSync, existsSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { setFlagsFromString } from 'node:v8';
import { PGlite } from '@electric-sql/pglite';
import type { TestProject } from 'vitest/node';
import { seedDemo } from '../../demo/seed.ts';
import { Lifecycle } from '../../src/kernel/lifecycle.ts';
import { openDatabase } from '../../src/platform/database.ts';
import { connectTo, databaseUrl, execute } from './sql.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** The source of each test's database: a file to load into PGlite, or a PostgreSQL database to copy. */
    origin: { readonly snapshot: string } | { readonly server: string; readonly template: string };
  }
}

/** Migrates and seeds one database before all tests; every test app starts from a copy of it. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const server = process.env.TEST_DATABASE_URL;
  return server ? prepareTemplate(project, server) : prepareSnapshot(project);
}

async function prepareSnapshot(project: TestProject) {
  // The optimizing compiler would take longer than its code saves; Vitest's `execArgv` is for its workers alone.
  setFlagsFromString('--liftoff-only');
  const folder = mkdtempSync(join(tmpdir(), 'portico-test-'));
  const lifecycle = new Lifecycle();
  const embedded = await PGlite.create(copyMigrated(join(folder, 'database')));
  const { database } = await openDatabase({ dataDir: folder, database: null }, lifecycle, { openEmbedded: async () => embedded });
  await seedDemo(database);
  await slim(embedded);
  const dump = await embedded.dumpDataDir('none');
  await lifecycle.close();
  const snapshot = join(folder, 'snapshot.tar');
  writeFileSync(snapshot, Buffer.from(await dump.arrayBuffer()));
  project.provide('origin', { snapshot });
  return async () => rmSync(folder, { recursive: true, force: true });
}

/** Copies the empty, migrated database that the build has made, which takes a tenth of the time of making one; its path. */
function copyMigrated(path: string): string {
  const migrated = fileURLToPath(new URL('../../dist/current/database', import.meta.url));
  if (!existsSync(migrated)) return 'memory://';
  cpSync(realpathSync(migrated), path, { recursive: true });
  return path;
}

/** Shrinks the dump that every test app loads: drops unused databases and leaves no write-ahead log to replay. */
async function slim(embedded: PGlite): Promise<void> {
  await embedded.exec(`UPDATE pg_database SET datistemplate = false, datallowconn = true`);
  const { rows } = await embedded.query<{ datname: string }>('SELECT datname FROM pg_database WHERE datname <> current_database()');
  for (const { datname } of rows) await embedded.exec(`DROP DATABASE ${datname}`);
  await embedded.exec('CHECKPOINT');
}

/** The first project of a run prepares the template for all, and is the last to be torn down. */
async function prepareTemplate(project: TestProject, server: string) {
  const isFirst = process.env.TESTS_TEMPLATE === undefined;
  process.env.TESTS_TEMPLATE ??= `portico_test_${randomBytes(6).toString('hex')}`;
  const template = process.env.TESTS_TEMPLATE;
  project.provide('origin', { server, template });
  if (!isFirst) return async () => {};
  const release = await reserve(server, template);
  await dropAbandoned(server);
  await execute(server, `CREATE DATABASE ${template}`);
  await fillDemo(databaseUrl(server, template));
  // Neither a copy can be made while somebody is connected to the template, nor a connection while a copy is made.
  await execute(server, `ALTER DATABASE ${template} ALLOW_CONNECTIONS false`);
  return async () => {
    await drop(server, template);
    await release();
  };
}

/** Opens the connection that tells other runs that this one still needs its databases; returns what closes it. */
export async function reserve(server: string, template: string): Promise<() => Promise<void>> {
  const client = await connectTo(server, { application_name: template });
  // A server that ends says so to every connection.
  client.on('error', () => {});
  return () => client.end();
}

/** Drops the databases of runs that were interrupted: nobody is connected under the name of their template. */
export async function dropAbandoned(server: string): Promise<void> {
  const rows = await execute(
    server,
    `WITH templates AS (SELECT DISTINCT substring(datname FROM '^(portico_test_[0-9a-f]{12})(?:_|$)') AS template FROM pg_database)
     SELECT template FROM templates
     WHERE template IS NOT NULL AND NOT EXISTS (SELECT FROM pg_stat_activity WHERE application_name = template)`,
  );
  for (const { template } of rows) await drop(server, String(template));
}

/** Drops a template and all databases of its run. */
export async function drop(server: string, template: string): Promise<void> {
  const names = `SELECT datname FROM pg_database WHERE datname = $1 OR starts_with(datname, $1 || '_')`;
  for (const { datname } of await execute(server, names, [template]))
    await execute(server, `DROP DATABASE IF EXISTS ${datname} WITH (FORCE)`);
}

/** Migrates an empty PostgreSQL database, and fills it with the demo. */
export async function fillDemo(url: string): Promise<void> {
  const lifecycle = new Lifecycle();
  const { database } = await openDatabase({ dataDir: tmpdir(), database: { url, poolSize: 2 } }, lifecycle);
  await seedDemo(database);
  await lifecycle.close();
}
