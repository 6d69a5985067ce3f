import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DATABASE_AWAY } from '../../src/platform/errors.ts';
import { copyTemplate, isPostgres, startApp, type TestApp, type TestResponse } from '../support/app.ts';
import { openPlainFeed, openSocket, publish } from '../support/feed.ts';
import { openProxy, type TcpProxy } from '../support/proxy.ts';

const sleep = (milliseconds: number) => new Promise((resolve) => setTimeout(resolve, milliseconds));

const subscription = 'subscription ($o: ID!, $p: ID!) { notificationFeed(organizationId: $o, projectId: $p) { __typename } }';
const hash = createHash('sha256').update(subscription).digest('hex');

/** The embedded database runs in the process, so it cannot be unreachable. */
describe.runIf(isPostgres)('a PostgreSQL whose connections break and are refused', () => {
  let app: TestApp;
  let proxy: TcpProxy;
  const dataDir = mkdtempSync(join(tmpdir(), 'portico-test-'));
  beforeAll(async () => {
    const url = new URL(await copyTemplate());
    proxy = await openProxy({ host: url.hostname, port: Number(url.port || 5432) });
    url.hostname = '127.0.0.1';
    url.port = String(proxy.port);
    const documents = join(dataDir, 'documents.json');
    writeFileSync(documents, JSON.stringify({ [hash]: subscription }));
    app = await startApp({ DATABASE_URL: url.href, DATA_DIR: dataDir, RATE_LIMIT_USER: '100000000', TRUSTED_DOCUMENTS: documents });
  });
  afterAll(async () => {
    await app.close();
    await proxy.close();
    rmSync(dataDir, { recursive: true, force: true });
  });

  it('is 503 with Retry-After within 1.5 s over every transport, loses no socket, and is over by itself', async () => {
    const feed = openPlainFeed(app);
    await feed.until(({ type }) => type === 'ready');
    const graphql = openSocket(app, '/graphql', {
      protocol: 'graphql-transport-ws',
      headers: { authorization: `Bearer ${app.demo.users.owner.token}` },
    });
    const persisted = openSocket(app, '/graphql', {
      protocol: 'graphql-transport-ws',
      headers: { authorization: `Bearer ${app.demo.users.owner.token}` },
    });
    for (const { socket } of [graphql, persisted]) socket.once('open', () => socket.send('{"type":"connection_init"}'));
    for (const { until } of [graphql, persisted]) await until(({ type }) => type === 'connection_ack');
    const ask = async (question: () => Promise<TestResponse>) => {
      const began = performance.now();
      const { status, headers, json } = await question();
      return {
        status,
        retryAfter: headers['retry-after'],
        code: json.code ?? json.errors?.[0].extensions.code,
        took: performance.now() - began,
      };
    };
    const questions = Array.from({ length: 30 }, (_, index) =>
      index % 3 === 0
        ? () => app.graphql('{ viewer { organizations { nodes { id } } } }')
        : index % 3 === 1
          ? () => app.ask('GET', `${app.projectPath}/compute/overview`)
          : () => app.ask('POST', `${app.projectPath}/notifications/read`, { body: {} }),
    );
    // The same number of good responses shows how busy the machine is.
    const askAll = () => Promise.all(questions.map(ask));
    const noise = Math.max(...(await askAll()).map(({ took }) => took));
    proxy.cut();
    const outcomes = await askAll();
    for (const { status, retryAfter, code, took } of outcomes) {
      expect({ status, retryAfter, code }).toEqual({ status: 503, retryAfter: '1', code: 'service_unavailable' });
      expect(took).toBeLessThan(5_000 + noise);
    }
    expect(feed.socket.readyState).toBe(feed.socket.OPEN);
    // A subscription that cannot begin closes its socket, because a client would take an error as its permanent end.
    const variables = { o: app.demo.organization_id, p: app.demo.project_id };
    const extensions = { persistedQuery: { version: 1, sha256Hash: hash } };
    graphql.socket.send(JSON.stringify({ id: '1', type: 'subscribe', payload: { query: subscription, variables } }));
    persisted.socket.send(JSON.stringify({ id: '1', type: 'subscribe', payload: { query: '', extensions, variables } }));
    for (const { closed } of [graphql, persisted]) expect(await closed).toEqual({ code: 1013, reason: 'service_unavailable' });
    proxy.mend();
    const mended = Date.now();
    while ((await app.ask('GET', `${app.projectPath}/compute/overview`)).status !== 200) await sleep(50);
    expect(Date.now() - mended).toBeLessThan(10_000 + noise);
    const sequence = await publish(app, 'after the outage');
    await feed.until((frame) => frame.sequence === sequence);
    feed.socket.terminate();
  });

  it('is unavailable as long as it is silent, at any rate of requests', async () => {
    const overview = () => app.ask('GET', `${app.projectPath}/compute/overview`);
    expect((await overview()).status).toBe(200);
    const lines = app.logLines.length;
    proxy.freeze();
    while ((await overview()).status !== 503) await sleep(50);
    for (let time = 0; time < 40; time += 1) {
      const { status } = await overview();
      expect(status).toBe(503);
      expect((await app.ask('GET', '/health/ready', { as: null })).status).toBe(503);
      await sleep(time % 2 === 0 ? 50 : 250);
    }
    const told = () => app.logLines.slice(lines).filter((line) => line.includes('"a dependency is'));
    expect(told().map((line) => JSON.parse(line).msg)).toEqual(['a dependency is away']);
    // The requests of an outage say nothing more: a stack trace for each would bury that line.
    expect(app.logLines.slice(lines).filter((line) => line.includes('"unavailable"') && line.includes(DATABASE_AWAY))).toEqual([]);
    proxy.thaw();
    await expect.poll(async () => (await overview()).status).toBe(200);
    expect(told().map((line) => JSON.parse(line).msg)).toEqual(['a dependency is away', 'a dependency is back']);
  });
});
