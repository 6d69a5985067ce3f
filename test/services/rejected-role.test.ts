import { randomBytes } from 'node:crypto';
import { expect, it, onTestFinished } from 'vitest';
import { copyTemplate, startApp } from '../support/app.ts';
import { execute } from '../support/sql.ts';

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
  const readState = async () => {
    const [ready, metrics] = await Promise.all(['/health/ready', '/metrics'].map((path) => app.ask('GET', path, { as: null })));
    const [, up] = /^portico_dependency_up\{dependency="database"\} (\d)$/m.exec(metrics?.text ?? '') ?? [];
    return [ready?.status, up];
  };
  const readOverview = async () => (await app.ask('GET', `${app.projectPath}/compute/overview`)).status;
  const linesOf = (...messages: string[]) =>
    app.logLines.map((line) => JSON.parse(line)).filter(({ level, msg }) => level === 'warn' && messages.includes(msg));
  // As many connections as the pool may have: none has to be opened below.
  await Promise.all(Array.from({ length: 20 }, readOverview));
  expect([await readOverview(), await readState()]).toEqual([200, [200, '1']]);

  // Connections that are open go on working, as during a rotation of the password.
  await administer(`ALTER ROLE ${role} NOLOGIN`);
  expect([await readOverview(), await readState()]).toEqual([200, [200, '1']]);

  // Those of the pool end; that of the probe stays open, and says nothing about new ones.
  const ofPool = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '${role}' AND application_name = 'portico'`;
  await administer(ofPool);
  await expect.poll(async () => [await readOverview(), await readState()]).toEqual([503, [503, '0']]);
  await expect.poll(() => linesOf('a dependency is away', 'a dependency is away by another cause').at(-1)?.err.code).toBe('28000');
  const before = app.logLines.length;
  for (let count = 0; count < 20; count += 1) expect(await readOverview()).toBe(503);
  expect(await readState()).toEqual([503, '0']);
  // The cause is in one line, not in one for each request.
  expect(app.logLines.slice(before).filter((line) => JSON.parse(line).level === 'warn')).toEqual([]);

  await administer(`ALTER ROLE ${role} LOGIN`);
  await expect.poll(async () => [await readOverview(), await readState()]).toEqual([200, [200, '1']]);
});
