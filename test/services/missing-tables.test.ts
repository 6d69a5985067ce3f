import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { needPostgres, startApp, type TestApp } from '../support/app.ts';
import { execute } from '../support/sql.ts';

const run = promisify(execFile);

let app: TestApp;
let url: string;
beforeAll(async () => {
  app = await startApp();
  url = app.databaseUrl ?? '';
});
afterAll(() => app.close());

const tasks = 'query ($id: ID!) { project(id: $id) { name tasks(first: 1) { nodes { id } } } }';
const requests = {
  v1: () => app.ask('GET', `${app.projectPath}/compute/overview`),
  'a write of v1': () => app.ask('POST', `${app.projectPath}/notifications/read`, { body: {} }),
  GraphQL: () => app.graphql(tasks, { id: app.demo.project_id }),
};

async function expectOutage(): Promise<void> {
  for (const [name, send] of Object.entries(requests)) {
    const { status, headers, text } = await send();
    expect([name, status, headers['retry-after'], text]).toEqual([name, 503, '1', expect.stringContaining('service_unavailable')]);
  }
  const { status, headers, json } = await readiness();
  expect([status, headers['retry-after'], json.status, json.checks.database]).toEqual([503, '1', 'unavailable', 'incomplete']);
}

const readiness = () => app.ask('GET', '/health/ready', { as: null });
const logged = (message: string) => app.logLines.map((line) => JSON.parse(line)).filter(({ msg }) => msg === message);

async function expectService(): Promise<void> {
  await expect.poll(async () => (await readiness()).json.status).toBe('ready');
  for (const [name, send] of Object.entries(requests)) {
    const { status, json } = await send();
    expect([name, status, json.errors]).toEqual([name, 200, undefined]);
  }
}

it('a dropped database is an outage, with one line in the log, and none for each request', async () => {
  const { server, template } = needPostgres();
  const name = new URL(url).pathname.slice(1);
  app.logLines.length = 0;
  await execute(server, `DROP DATABASE ${name} WITH (FORCE)`);
  const sendAndCount = async () => {
    await requests.v1();
    return logged('a dependency is away').length;
  };
  await expect.poll(sendAndCount).toBe(1);
  const before = logged('unavailable').length;
  for (let sent = 0; sent < 5; sent += 1) for (const send of Object.values(requests)) expect((await send()).status).toBe(503);
  expect(logged('unavailable')).toHaveLength(before);
  expect((await readiness()).json).toMatchObject({ status: 'unavailable', checks: { database: 'down' } });
  await expect.poll(() => execute(server, `CREATE DATABASE ${name} TEMPLATE ${template}`).catch(String)).toEqual([]);
  await expectService();
});

it('a database without tables is an outage with one line in the log, and ends when they are back', async () => {
  await expectService();
  app.logLines.length = 0;
  await execute(url, 'ALTER SCHEMA public RENAME TO kept; CREATE SCHEMA public');
  await expectOutage();
  expect(logged('internal error')).toEqual([]);
  expect(logged('a dependency is away')).toMatchObject([
    { dependency: 'database', err: { message: expect.stringContaining('the database lacks') } },
  ]);
  await execute(url, 'DROP SCHEMA public; ALTER SCHEMA kept RENAME TO public');
  await expectService();
  expect(logged('a dependency is back')).toHaveLength(1);
});

it('tables without their rows are an outage, and no key is rejected as unknown', async () => {
  const names = (await execute(url, `SELECT tablename FROM pg_tables WHERE schemaname = 'public'`)).map(({ tablename }) => tablename);
  const copies = names.map((name) => `CREATE TABLE public.${name} (LIKE kept.${name})`).join(';');
  await execute(url, `ALTER SCHEMA public RENAME TO kept; CREATE SCHEMA public; ${copies}`);
  // A balancer polls the readiness.
  await readiness();
  await expectOutage();
  await execute(url, 'DROP SCHEMA public CASCADE; ALTER SCHEMA kept RENAME TO public');
  await expectService();
});

it('requests during pg_restore --clean are unavailable, without internal errors, and succeed afterwards', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'portico-test-'));
  const file = join(folder, 'dump');
  await run('pg_dump', ['--format=custom', `--file=${file}`, url]);
  let isRestoring = true;
  const statuses = new Set<string>();
  const restoring = run('pg_restore', ['--clean', '--if-exists', `--dbname=${url}`, file]).finally(() => {
    isRestoring = false;
  });
  // Statements that wait for a table in the meantime may end in a deadlock with pg_restore.
  while (isRestoring && (await readiness()).json.checks.database !== 'incomplete');
  while (isRestoring) {
    for (const send of Object.values(requests)) {
      const { status, json } = await send();
      statuses.add(`${status} ${json?.errors?.[0]?.extensions.code ?? json?.code ?? ''}`);
    }
  }
  await restoring;
  rmSync(folder, { recursive: true });
  statuses.delete('200 ');
  expect([...statuses]).toEqual(['503 service_unavailable']);
  await expectService();
});

it('a statement with a table or a column that never existed stays a defect, and the server ready', async () => {
  await execute(url, 'ALTER TABLE tasks RENAME COLUMN created TO made');
  app.logLines.length = 0;
  const { status, json } = await requests.GraphQL();
  expect([status, json.errors?.[0]?.extensions.code]).toEqual([200, 'internal_error']);
  expect(logged('internal error')).toHaveLength(1);
  const failure = await app.app.database.query`SELECT 1 FROM unknown_table`.catch((thrown: unknown) => thrown);
  expect(failure).toMatchObject({ code: '42P01' });
  expect((await readiness()).json.status).toBe('ready');
  await execute(url, 'ALTER TABLE tasks RENAME COLUMN made TO created');
});
