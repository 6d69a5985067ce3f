import { afterAll, beforeAll, expect, it } from 'vitest';
import WebSocket from 'ws';
import { isPostgres, startApp, type TestApp } from '../support/app.ts';
import { countCases } from '../support/cases.ts';
import { openPlainFeed } from '../support/feed.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startApp({ RATE_LIMIT_USER: '100000000', LOG_LEVEL: 'error' });
});
afterAll(() => app.close());

const sleep = (milliseconds: number) => new Promise((resolve) => setTimeout(resolve, milliseconds));
const countTimers = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;

/** Subscribes and goes away at a random moment: while the credential is looked up, the hub opens, the log is read, or live. */
async function comeAndGo(run: number): Promise<void> {
  const { demo, baseUrl } = app;
  const isGraphql = run % 2 === 0;
  const path = isGraphql ? '/graphql' : `${app.projectPath}/notifications/ws?after=${run % 150}`;
  const headers = { authorization: `Bearer ${demo.users.owner.token}` };
  const socket = new WebSocket(baseUrl.replace('http', 'ws') + path, isGraphql ? ['graphql-transport-ws'] : [], { headers });
  const closed = new Promise((resolve) => socket.once('close', resolve));
  socket.on('error', () => {});
  socket.once('open', () => {
    if (!isGraphql) return;
    socket.send('{"type":"connection_init"}');
    const query = `subscription { notificationFeed(organizationId: "${demo.organization_id}", projectId: "${demo.project_id}", after: ${run % 150}) { __typename } }`;
    socket.on('message', (data) => {
      if (!String(data).includes('connection_ack')) return;
      socket.send(JSON.stringify({ id: '1', type: 'subscribe', payload: { query } }));
      if (run % 4 === 0)
        setTimeout(() => socket.readyState === WebSocket.OPEN && socket.send('{"id":"1","type":"complete"}'), Math.random() * 10);
    });
  });
  await sleep(Math.random() * 25);
  if (run % 3 === 0) socket.terminate();
  else socket.close();
  await closed;
}

it('sockets that close at any moment of their subscribing leave no feed, lease or timer behind', { timeout: 300_000 }, async () => {
  const runs = isPostgres ? countCases(10_000) : 1_000;
  const keeper = openPlainFeed(app);
  await keeper.until(({ type }) => type === 'ready');
  const before = { ...app.app.count(), timers: countTimers() };
  // Each idle connection of the pool has a timer of its own, and there may be more of them now than before.
  const mostTimers = before.timers + (app.config.database?.poolSize ?? 0);
  expect(before).toMatchObject({ sockets: 1, hubs: 1, followers: 1, leases: 2 });
  let next = 0;
  const lane = async () => {
    while (next < runs) await comeAndGo(next++);
  };
  await Promise.all(Array.from({ length: 16 }, lane));
  // A subscription that was being looked up when its socket closed ends with its statement.
  for (let tries = 0; tries < 1_000 && app.app.count().leases > 2; tries += 1) await sleep(50);
  const idle = () => ({ ...app.app.count(), timers: countTimers() });
  for (let tries = 0; tries < 1_000 && idle().timers > mostTimers; tries += 1) await sleep(100);
  const { timers, ...counts } = idle();
  expect(counts).toEqual({ executing: 0, sockets: 1, hubs: 1, followers: 1, leases: 2 });
  expect(timers).toBeLessThanOrEqual(mostTimers);
  keeper.socket.terminate();
  // Also an upgrade that was still being looked at, for a client that had gone.
  for (let tries = 0; tries < 1_000 && app.app.count().leases > 0; tries += 1) await sleep(50);
  expect(app.app.count()).toEqual({ executing: 0, sockets: 0, hubs: 0, followers: 0, leases: 0 });
});
