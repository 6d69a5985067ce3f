import { randomBytes } from 'node:crypto';
import { expect, it, onTestFinished } from 'vitest';
import { copyTemplate, startApp, type TestApp } from '../support/app.ts';
import { databaseUrl, execute } from '../support/sql.ts';

const readOverview = async (app: TestApp) => (await app.ask('GET', `${app.projectPath}/compute/overview`)).status;

/** Whether the replica says that it is ready, and that it has its database. */
async function readState(app: TestApp): Promise<unknown[]> {
  const [ready, metrics] = await Promise.all(['/health/ready', '/metrics'].map((path) => app.ask('GET', path, { as: null })));
  const [, up] = /^portico_dependency_up\{dependency="database"\} (\d)$/m.exec(metrics?.text ?? '') ?? [];
  return [ready?.status, up];
}

/** The warnings of the log from a line on. */
const warningsOf = ({ logLines }: TestApp, from = 0) =>
  logLines
    .slice(from)
    .map((line) => JSON.parse(line))
    .filter(({ level }) => level === 'warn');

/** Expects the replica to be without its database, and to say so in one line with this code. */
async function expectOutage(app: TestApp, code: string): Promise<void> {
  await expect.poll(async () => [await readOverview(app), await readState(app)]).toEqual([503, [503, '0']]);
  const lastCode = () => warningsOf(app).findLast(({ msg }) => msg.startsWith('a dependency is away'))?.err.code;
  await expect.poll(lastCode).toBe(code);
  const before = app.logLines.length;
  for (let count = 0; count < 20; count += 1) expect(await readOverview(app)).toBe(503);
  expect(await readState(app)).toEqual([503, '0']);
  // The cause is in one line, not in one for each request.
  expect(warningsOf(app, before)).toEqual([]);
}

it('a role that may no longer log in is an outage once no connection is open, and over when it may', async () => {
  const url = await copyTemplate();
  const role = `portico_rejected_${randomBytes(6).toString('hex')}`;
  const administer = (sql: string) => execute(url, sql);
  await administer(`CREATE ROLE ${role} SUPERUSER LOGIN`);
  const address = new URL(url);
  address.username = role;
  const app = await startApp({ DATABASE_URL: address.href, REDIS_URL: '' });
  onTestFinished(async () => {
    await app.close();
    await administer(`DROP ROLE ${role}`);
  });
  // As many connections as the pool may have: none has to be opened below.
  await Promise.all(Array.from({ length: 20 }, () => readOverview(app)));
  expect([await readOverview(app), await readState(app)]).toEqual([200, [200, '1']]);

  // Connections that are open go on working, as during a rotation of the password.
  await administer(`ALTER ROLE ${role} NOLOGIN`);
  expect([await readOverview(app), await readState(app)]).toEqual([200, [200, '1']]);

  // Those of the pool end; that of the probe stays open, and says nothing about new ones.
  const ofPool = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '${role}' AND application_name = 'portico'`;
  await administer(ofPool);
  await expectOutage(app, '28000');

  await administer(`ALTER ROLE ${role} LOGIN`);
  await expect.poll(async () => [await readOverview(app), await readState(app)]).toEqual([200, [200, '1']]);
});

it('a database that accepts no connections is an outage once none is open, and over when it does', async () => {
  const url = await copyTemplate();
  const name = new URL(url).pathname.slice(1);
  const administer = (sql: string) => execute(databaseUrl(url, 'postgres'), sql);
  const app = await startApp({ DATABASE_URL: url, REDIS_URL: '' });
  onTestFinished(() => app.close());
  expect([await readOverview(app), await readState(app)]).toEqual([200, [200, '1']]);

  await administer(`ALTER DATABASE "${name}" ALLOW_CONNECTIONS false`);
  await administer(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '${name}'`);
  await expectOutage(app, '55000');
  expect(warningsOf(app).filter(({ msg }) => msg === 'a dependency is back')).toEqual([]);

  await administer(`ALTER DATABASE "${name}" ALLOW_CONNECTIONS true`);
  await expect.poll(async () => [await readOverview(app), await readState(app)]).toEqual([200, [200, '1']]);
});

it('a refused write to a read-only server replaces every connection, as they may lead to its successor', async () => {
  const url = await copyTemplate();
  const name = new URL(url).pathname.slice(1);
  const administer = (sql: string) => execute(databaseUrl(url, 'postgres'), sql);
  const app = await startApp({ DATABASE_URL: url, REDIS_URL: '' });
  onTestFinished(() => app.close());
  await administer(`ALTER DATABASE "${name}" SET default_transaction_read_only = on`);
  await administer(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '${name}'`);
  await expect.poll(() => readOverview(app)).toBe(200);
  await Promise.all(Array.from({ length: 20 }, () => readOverview(app)));
  await administer(`ALTER DATABASE "${name}" RESET default_transaction_read_only`);
  const publish = `mutation { publishNotification(input: { organizationId: "${app.demo.organization_id}", projectId: "${app.demo.project_id}",
    kind: "k", title: "t", severity: info }) { notification { sequence } } }`;
  const codes: string[] = [];
  for (let count = 0; count < 12; count += 1) codes.push((await app.graphql(publish)).json.errors?.[0].extensions.code ?? 'published');
  expect(codes).toEqual(['service_unavailable', ...Array.from({ length: 11 }, () => 'published')]);
  expect(warningsOf(app).filter(({ msg }) => msg === 'unavailable')).toEqual([]);
});
