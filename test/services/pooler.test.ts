import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { copyTemplate, startApp, type TestApp } from '../support/app.ts';
import { findLowPort } from '../support/ports.ts';
import { openProxy, type TcpProxy } from '../support/proxy.ts';

/** A PgBouncer between the app and PostgreSQL, which it reaches through a proxy. */
interface Pooler {
  readonly url: string;
  close(): Promise<void>;
}

/** By session, as Debian 12's PgBouncer (1.18) has no prepared statements by transaction. */
async function openPooler(database: string, target: { readonly port: number }): Promise<Pooler> {
  const folder = mkdtempSync(join(tmpdir(), 'portico-pooler-'));
  const file = join(folder, 'pgbouncer.ini');
  const port = await findLowPort();
  const settings = `[databases]
    ${database} = host=127.0.0.1 port=${target.port} user=postgres
    [pgbouncer]
    listen_addr = 127.0.0.1
    listen_port = ${port}
    unix_socket_dir =
    auth_type = any
    pool_mode = session
    server_login_retry = 1
    ignore_startup_parameters = options,statement_timeout,idle_in_transaction_session_timeout`;
  writeFileSync(file, settings.replaceAll(/^ +/gm, ''));
  // PgBouncer refuses to run as root.
  const user = process.getuid?.() === 0 ? ['-u', 'postgres'] : [];
  const pooler = spawn('pgbouncer', [...user, file], { stdio: 'ignore' });
  return {
    url: `postgresql://postgres@127.0.0.1:${port}/${database}`,
    async close() {
      const exit = once(pooler, 'exit');
      pooler.kill('SIGKILL');
      await exit;
      rmSync(folder, { recursive: true });
    },
  };
}

let app: TestApp;
let proxy: TcpProxy;
let pooler: Pooler;
beforeAll(async () => {
  const { hostname, port, pathname } = new URL(await copyTemplate());
  proxy = await openProxy({ host: hostname, port: Number(port || 5432) });
  pooler = await openPooler(pathname.slice(1), proxy);
  app = await startApp({ DATABASE_URL: pooler.url, RATE_LIMIT_USER: '100000000' });
});
afterAll(async () => {
  await app?.close();
  await pooler?.close();
  await proxy?.close();
});

it('an outage of PostgreSQL behind PgBouncer has one line in the log, and requests fail without a connection', async () => {
  const statuses = new Set<number>();
  let isOver = false;
  const keepAsking = async () => {
    while (!isOver) statuses.add((await app.ask('GET', `${app.projectPath}/compute/overview`)).status);
  };
  const linesWith = (message: string) => app.logLines.filter((line) => line.includes(`"${message}"`)).length;
  const crowd = Promise.all(Array.from({ length: 20 }, keepAsking));
  await expect.poll(() => [...statuses]).toEqual([200]);
  await proxy.refuse();
  await expect.poll(() => linesWith('a dependency is away')).toBe(1);
  await expect.poll(async () => (await app.ask('GET', '/health/ready', { as: null })).status).toBe(503);
  const before = linesWith('unavailable');
  for (let time = 0; time < 50; time += 1) expect((await app.ask('GET', `${app.projectPath}/compute/overview`)).status).toBe(503);
  expect(linesWith('unavailable')).toBe(before);
  await proxy.mend();
  await expect.poll(() => linesWith('a dependency is back')).toBe(1);
  isOver = true;
  await crowd;
  // PgBouncer waits a second before it logs in again where a login has failed.
  await expect.poll(async () => (await app.ask('GET', `${app.projectPath}/compute/overview`)).status).toBe(200);
  expect(statuses).toEqual(new Set([200, 503]));
});
