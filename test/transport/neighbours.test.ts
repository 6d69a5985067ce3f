import { connect, type Socket } from 'node:net';
import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { Fault } from '../../src/kernel/fault.ts';
import { Pauses } from '../../src/kernel/pauses.ts';
import { KeyedSemaphore } from '../../src/kernel/semaphore.ts';
import { turns } from '../../src/kernel/turns.ts';
import { EventRenderer } from '../../src/transport/delivery/renderer.ts';
import { isPostgres, startApp, type TestApp } from '../support/app.ts';
import { countCases } from '../support/cases.ts';
import { openConsole, openConsoleSocket, openGuest, setEndpoint } from '../support/console.ts';
import { openCrowd, type Sending } from '../support/crowd.ts';
import { runUnlimited } from '../support/large.ts';
import { seededRandom } from '../support/random.ts';
import { openRawSocket, type RawSocket } from '../support/raw.ts';
import { type Connection, openConnection } from '../support/sql.ts';
import { openWire } from '../support/wire.ts';

const json = { 'content-type': 'application/json' };
const AT_ONCE = 8;
const CONNECTIONS = 64;

let portico: TestApp;
let closers: Array<() => void> = [];

/**
 * How far the monotonic clock is ahead of the real one: operations have then taken long without a test waiting. It is never set
 * back, as what has been measured before would be in the future.
 */
let aheadMs = 0;
const { now } = performance;

beforeAll(async () => {
  vi.spyOn(performance, 'now').mockImplementation(() => now.call(performance) + aheadMs);
  portico = await startApp({ REDIS_URL: '', RATE_LIMIT_USER: '100000', DATABASE_POOL: '4' });
});
afterAll(async () => {
  await portico.close();
  vi.mocked(performance.now).mockRestore();
});
afterEach(() => {
  for (const close of closers) close();
  closers = [];
});

/** Begins as many requests of a user as may be executed at once: each lasts until its body is complete. */
async function keepBusy(token = portico.demo.users.owner.token): Promise<() => void> {
  const { hostname, port } = new URL(portico.baseUrl);
  const body = JSON.stringify({ query: '{ __typename }', variables: { unused: 'x'.repeat(20_000) } });
  const head = [
    'POST /graphql HTTP/1.1',
    'Host: x',
    `Authorization: Bearer ${token}`,
    'Content-Type: application/json',
    `Content-Length: ${body.length}`,
  ];
  const sockets: Socket[] = [];
  for (let index = 0; index < AT_ONCE; index += 1) {
    const socket = connect(Number(port), hostname).on('error', () => {});
    socket.write(`${head.join('\r\n')}\r\n\r\n${body.slice(0, 1_000)}`);
    sockets.push(socket);
  }
  closers.push(() => sockets.forEach((socket) => void socket.destroy()));
  // A ninth request waits once all eight have begun.
  for (let attempt = 0; attempt < 100; attempt += 1) {
    const probe = connect(Number(port), hostname).on('error', () => {});
    probe.write(`GET /graphql?query={__typename} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\n\r\n`);
    const isAnswered = await Promise.race([
      new Promise((resolve) => probe.once('data', () => resolve(true))),
      waitsFor(1).then(() => false),
    ]);
    probe.destroy();
    if (isAnswered) continue;
    await waitsFor(0);
    // One of another test may take a moment more.
    await executesOnly(AT_ONCE);
    return () => sockets.forEach((socket) => void socket.write(body.slice(1_000)));
  }
  throw new Error('no request waits');
}

/** A socket that is ready for operations. */
async function openReady(token = portico.demo.users.owner.token): Promise<RawSocket> {
  const headers = { authorization: `Bearer ${token}` };
  const socket = await openRawSocket(portico.baseUrl, '/graphql', { protocol: 'graphql-transport-ws', headers });
  closers.push(socket.destroy);
  socket.say({ type: 'connection_init' });
  await socket.until(({ type }) => type === 'connection_ack');
  return socket;
}

async function readGauge(name: string): Promise<number> {
  const { text } = await portico.ask('GET', '/metrics', { as: null });
  return Number(new RegExp(`^portico_${name} (\\d+)$`, 'm').exec(text)?.[1]);
}

/** Resolves when it is so. */
const until = (isSo: () => boolean | Promise<boolean>) => vi.waitUntil(isSo, { timeout: 60_000, interval: 10 });

/** Resolves when as many operations wait. */
async function waitsFor(count: number): Promise<void> {
  await until(async () => (await readGauge('operations_waiting')) === count);
}

/** Resolves when as many operations are under way. */
async function executesOnly(count: number): Promise<void> {
  await until(async () => (await readGauge('operations_executing')) === count);
}

/** Sends as fast as the connections allow, each the next request once its last one is answered. */
function startFlood(address: string, connections: number, make: (number: number) => Sending) {
  const crowd = openCrowd(portico.baseUrl, address, connections);
  let sent = 0;
  let isOver = false;
  const leave = () => {
    isOver = true;
    crowd.close();
  };
  closers.push(leave);
  const sendOn = async () => {
    while (!isOver) {
      sent += 1;
      const reply = await crowd.send(make(sent)).catch((failure) => {
        if (!isOver) throw failure;
      });
      if (!reply) return;
      expect(reply.text).toMatch(/^{"data"/);
      flood.answered += 1;
    }
  };
  const sending = Array.from({ length: connections }, sendOn);
  const flood = {
    answered: 0,
    countConnections: crowd.countConnections,
    /** Leaves what has not been answered: what waits is then not carried out. */
    async end() {
      leave();
      await Promise.all(sending);
      await executesOnly(0);
    },
  };
  return flood;
}

it('operations over many connections of one user delay other users by a few of them', async () => {
  const fields = 'nodes { id name status tasks(first: 5) { nodes { id status } } }';
  const lists = Array.from({ length: 8 }, (_, index) => `a${index}: instances(first: 100) { ${fields} }`).join(' ');
  const body = JSON.stringify({
    query: `query ($id: ID!) { project(id: $id) { ${lists} } }`,
    variables: { id: portico.demo.project_id },
  });
  const heavy = { method: 'POST', path: '/graphql', headers: { ...json, authorization: `Bearer ${portico.demo.users.owner.token}` }, body };
  const flood = startFlood('127.0.3.1', CONNECTIONS, () => heavy);
  // Node.js accepts one connection in each iteration of the event loop: the last ones come while the first are answered.
  await until(() => flood.answered >= AT_ONCE);
  const before = flood.answered;
  const { status } = await portico.ask('GET', `${portico.projectPath}/compute/overview`, { as: 'viewer' });
  const meanwhile = flood.answered - before;
  await flood.end();
  expect(status).toBe(200);
  expect(meanwhile).toBeLessThan(CONNECTIONS / 4);
});

it.each([
  ['long documents', (unique: number) => ({ query: `query q${unique} { ${'viewer { id name email created __typename } '.repeat(80)} }` })],
  ['large bodies', () => ({ query: '{ viewer { id } }', variables: { unused: Array.from({ length: 120_000 }, (_, index) => index) } })],
])('%s of one user take turns, and delay others by a few of them', async (_label, makeBody) => {
  const headers = { ...json, authorization: `Bearer ${portico.demo.users.owner.token}` };
  const make = (number: number) => ({ method: 'POST', path: '/graphql', headers, body: JSON.stringify(makeBody(number)) });
  const flood = startFlood('127.0.3.2', AT_ONCE, make);
  await until(() => flood.answered > 0 && flood.countConnections() === AT_ONCE);
  const before = flood.answered;
  for (let asked = 0; asked < 4; asked += 1) {
    const { status } = await portico.ask('GET', `${portico.projectPath}/compute/overview`, { as: 'viewer' });
    expect(status).toBe(200);
  }
  const meanwhile = flood.answered - before;
  await flood.end();
  expect(meanwhile).toBeLessThan(AT_ONCE);
});

it('a large body, which keeps one of few places, does not wait for the events and documents of its user', async () => {
  const { users } = portico.demo;
  const count = 200;
  let begun = 0;
  let isAnswered = false;
  const taken = Array.from({ length: count }, async () => {
    await turns.take(users.owner.id);
    begun += 1;
    for (const startedAt = performance.now(); !isAnswered && performance.now() - startedAt < 5; );
  });
  const body = { name: 'large', description: '', widgets: [{ text: 'x'.repeat(20_000) }] };
  const { status } = await portico.ask('POST', `${portico.projectPath}/monitoring/dashboards`, { body });
  const before = begun;
  isAnswered = true;
  await Promise.all(taken);
  expect(status).toBe(201);
  expect(before).toBeLessThan(count / 4);
});

it('a key that is revoked while its request waits for the turn of its document reads nothing', async () => {
  const created = await portico.graphql('mutation { createApiKey(input: { name: "waiting" }) { key apiKey { id } } }', {}, { as: 'admin' });
  const { key, apiKey } = created.json.data.createApiKey;
  const document = `{ viewer { ${'email '.repeat(100)} } }`;
  let begin = () => {};
  const take = vi.spyOn(turns, 'take').mockReturnValueOnce(new Promise((resolve) => (begin = resolve)));
  closers.push(() => take.mockRestore());
  const asking = portico.graphql(document, {}, { as: { bearer: key } });
  await until(() => take.mock.calls.length > 0);
  expect(take.mock.calls).toEqual([[portico.demo.users.admin.id]]);
  await portico.app.database.prisma.apiKey.update({ where: { id: apiKey.id }, data: { revoked: new Date() } });
  aheadMs += 1_500;
  begin();
  const { status, json } = await asking;
  expect({ status, code: json.errors[0].extensions.code }).toEqual({ status: 401, code: 'not_authenticated' });
});

it('costly operations of one user leave half of the time to others', async () => {
  const busyMs = 600;
  const utilization = vi.spyOn(performance, 'eventLoopUtilization').mockReturnValue({ active: busyMs, idle: 0, utilization: 1 });
  closers.push(() => utilization.mockRestore());
  const ids = Array.from({ length: 100 }, () => portico.demo.project_id);
  const fields = Array.from({ length: 20 }, (_, index) => `a${index}: nodes(ids: $ids) { id }`);
  const startedAt = performance.now();
  const ask = () => portico.graphql(`query ($ids: [ID!]!) { ${fields.join(' ')} }`, { ids });
  for (const { json: answer } of await Promise.all([ask(), ask(), ask()])) expect(answer.errors).toBeUndefined();
  expect(performance.now() - startedAt).toBeGreaterThanOrEqual(2 * busyMs - 10);
});

it('a credential that was revoked while a costly operation paused for the one before it is refused', async () => {
  const create = 'mutation { createApiKey(input: { name: "pauses" }) { key apiKey { id } } }';
  const { key, apiKey } = (await portico.graphql(create)).json.data.createApiKey;
  const utilization = vi.spyOn(performance, 'eventLoopUtilization').mockReturnValue({ active: 1_500, idle: 0, utilization: 1 });
  closers.push(() => utilization.mockRestore());
  const ids = Array.from({ length: 100 }, () => portico.demo.project_id);
  const fields = Array.from({ length: 20 }, (_, index) => `a${index}: nodes(ids: $ids) { id }`);
  const ask = () => portico.graphql(`query ($ids: [ID!]!) { ${fields.join(' ')} }`, { ids }, { as: { bearer: key } });
  expect((await ask()).status).toBe(200);
  const find = vi.spyOn(Pauses.prototype, 'find');
  closers.push(() => find.mockRestore());
  const paused = ask();
  await until(() => find.mock.calls.length > 0);
  await portico.app.database.prisma.apiKey.update({ where: { id: apiKey.id }, data: { revoked: new Date() } });
  expect((await paused).status).toBe(401);
});

it('a costly operation on a socket that cannot begin is refused alone, and the others of the socket continue', async () => {
  const { organization_id: organizationId, project_id: projectId } = portico.demo;
  const { acquire } = KeyedSemaphore.prototype;
  const spy = vi.spyOn(KeyedSemaphore.prototype, 'acquire').mockImplementation(function (this: KeyedSemaphore, owner, measure) {
    const permit = acquire.call(this, owner, measure);
    const isCostly = new Error().stack?.includes('executeWithPermit');
    return isCostly ? { ...permit, acquired: Promise.reject(Fault.unavailable(new Error('too many wait'))) } : permit;
  });
  closers.push(() => spy.mockRestore());
  const socket = await openReady();
  const feed = `subscription { notificationFeed(organizationId: "${organizationId}", projectId: "${projectId}") { __typename } }`;
  socket.say({ type: 'subscribe', id: 'feed', payload: { query: feed } });
  await socket.until(({ type, id }) => type === 'next' && id === 'feed');
  const ids = Array.from({ length: 100 }, () => projectId);
  const fields = Array.from({ length: 20 }, (_, index) => `a${index}: nodes(ids: $ids) { id }`);
  const query = `query ($ids: [ID!]!) { ${fields.join(' ')} }`;
  socket.say({ type: 'subscribe', id: 'costly', payload: { query, variables: { ids } } });
  await socket.until(({ type, id }) => type === 'complete' && id === 'costly');
  const answer = socket.messages.find(({ type, id }) => type === 'next' && id === 'costly');
  expect(answer.payload.errors).toMatchObject([{ extensions: { code: 'service_unavailable' } }]);
  socket.say({ type: 'subscribe', id: 'next', payload: { query: '{ __typename }' } });
  await socket.until(({ type, id }) => type === 'complete' && id === 'next');
  expect(portico.logLines.filter((line) => /a socket message failed/.test(line))).toEqual([]);
});

it('live events that are slow to render leave half of the time to others', async () => {
  const { organization_id: organizationId, project_id: projectId } = portico.demo;
  const sockets = 10;
  for (let index = 0; index < sockets; index += 1) {
    const socket = await openReady();
    const query = `subscription { notificationFeed(organizationId: "${organizationId}", projectId: "${projectId}") { __typename } }`;
    socket.say({ type: 'subscribe', id: 'a', payload: { query } });
    await socket.until(({ type }) => type === 'next');
  }
  const { render } = EventRenderer.prototype;
  const slowMs = 10;
  const begins: number[] = [];
  EventRenderer.prototype.render = function (...args) {
    const startedAt = performance.now();
    begins.push(startedAt);
    while (performance.now() - startedAt < slowMs);
    return render.apply(this, args);
  };
  closers.push(() => Object.assign(EventRenderer.prototype, { render }));
  const input = { organizationId, projectId, kind: 'test', severity: 'info', title: 't' };
  const text = 'mutation ($input: PublishNotificationInput!) { publishNotification(input: $input) { notification { id } } }';
  expect((await portico.graphql(text, { input })).json.errors).toBeUndefined();
  await until(() => begins.length >= sockets);
  // Without pauses it would be half as long.
  expect((begins[sockets - 1] ?? 0) - (begins[0] ?? 0)).toBeGreaterThan(1.6 * slowMs * (sockets - 1));
});

it('a credential that was revoked while its request waited is refused, over every transport', async () => {
  const create = 'mutation { createApiKey(input: { name: "waits" }) { key apiKey { id } } }';
  const { key, apiKey } = (await portico.graphql(create, {}, { as: 'viewer' })).json.data.createApiKey;
  const finish = await keepBusy(portico.demo.users.viewer.token);
  const socket = await openReady(key);
  socket.say({ type: 'subscribe', id: 'a', payload: { query: '{ viewer { id } }' } });
  const asked = [
    portico.ask('GET', `${portico.projectPath}/compute/overview`, { as: { bearer: key } }),
    portico.graphql('{ viewer { id } }', {}, { as: { bearer: key } }),
  ];
  await waitsFor(3);
  await portico.app.database.prisma.apiKey.update({ where: { id: apiKey.id }, data: { revoked: new Date() } });
  finish();
  expect((await Promise.all(asked)).map(({ status }) => status)).toEqual([401, 401]);
  expect((await socket.refused).code).toBe(4403);
  expect(socket.messages.filter(({ type }) => type === 'next')).toEqual([]);
});

it('the log has the wait of a request that waited, and none of one that did not', async () => {
  const finish = await keepBusy();
  portico.logLines.length = 0;
  const overview = () => portico.ask('GET', `${portico.projectPath}/compute/overview`);
  const waiting = overview();
  await waitsFor(1);
  finish();
  expect((await waiting).status).toBe(200);
  await executesOnly(0);
  expect((await overview()).status).toBe(200);
  const logged = () => portico.logLines.map((line) => JSON.parse(line)).filter(({ operation }) => operation === 'compute_overview');
  await until(() => logged().length === 2);
  const [waited, next] = logged();
  expect(waited.waited_ms).toBeLessThanOrEqual(waited.duration_ms);
  expect(waited.waited_ms).toBeGreaterThan(0);
  expect(next).not.toHaveProperty('waited_ms');
});

const linesOf = (message: string) => portico.logLines.map((line) => JSON.parse(line)).filter(({ msg }) => msg === message);

it('the log has the wait of a slow operation on a socket', async () => {
  const socket = await openReady();
  const finish = await keepBusy();
  portico.logLines.length = 0;
  socket.say({ type: 'subscribe', id: 'a', payload: { query: '{ viewer { id } }' } });
  await waitsFor(1);
  aheadMs += 1_100;
  finish();
  await socket.until(({ type }) => type === 'complete');
  const [line] = linesOf('a slow operation');
  const waited = {
    operation: 'query viewer',
    request_id: expect.any(String),
    user_id: portico.demo.users.owner.id,
    waited_ms: expect.any(Number),
  };
  expect(line).toMatchObject(waited);
  expect(line.waited_ms).toBeGreaterThan(1_000);
  expect(line.duration_ms).toBeGreaterThanOrEqual(line.waited_ms);
});

it('the log has the errors of a slow operation on a socket', async () => {
  const socket = await openReady();
  const finish = await keepBusy();
  portico.logLines.length = 0;
  const query = '{ node(id: "x") { id } organization(id: "00000000-0000-7000-8000-000000000000") { name } }';
  socket.say({ type: 'subscribe', id: 'a', payload: { query } });
  await waitsFor(1);
  aheadMs += 1_100;
  finish();
  await socket.until(({ type }) => type === 'complete');
  expect(linesOf('a slow operation')).toMatchObject([{ operation: 'query several', error_codes: ['not_found'] }]);
});

it('slow operations of a socket have one line a second, however many there are', async () => {
  const socket = await openReady();
  const finish = await keepBusy();
  portico.logLines.length = 0;
  for (let id = 0; id < 40; id += 1) socket.say({ type: 'subscribe', id: String(id), payload: { query: '{ viewer { id } }' } });
  await waitsFor(40);
  aheadMs += 1_100;
  finish();
  await until(() => socket.messages.filter(({ type }) => type === 'complete').length === 40);
  expect(linesOf('a slow operation').length).toBeGreaterThan(0);
  expect(linesOf('a slow operation').length).toBeLessThan(5);
});

it.runIf(isPostgres)('the log has the user whose statements waited long for others of the same user', async () => {
  const { holder, observer } = await openLock('LOCK TABLE notifications');
  const asked = askMany('notificationPage(pageSize: $n) { count }');
  await until(async () => (await countLocked(observer)) >= 2);
  portico.logLines.length = 0;
  await sleep(1_100);
  await holder.run('ROLLBACK');
  await asked;
  const [line] = linesOf('a long wait for other statements of the user');
  expect(line).toMatchObject({ level: 'warn', user_id: portico.demo.users.owner.id, duration_ms: expect.any(Number) });
});

it('a request whose client disconnects while it waits is not executed, and takes no place', async () => {
  const finish = await keepBusy();
  const { hostname, port } = new URL(portico.baseUrl);
  const body = JSON.stringify({ name: 'of nobody', widgets: [] });
  const client = connect(Number(port), hostname);
  client.write(
    [
      `POST ${portico.projectPath}/monitoring/dashboards HTTP/1.1`,
      'Host: x',
      `Authorization: Bearer ${portico.demo.users.owner.token}`,
      'Content-Type: application/json',
      `Content-Length: ${body.length}\r\n\r\n${body}`,
    ].join('\r\n'),
  );
  const socket = await openReady();
  const id = portico.demo.project_id;
  const query = `mutation { createDashboard(input: { projectId: "${id}", name: "of nobody", widgets: [] }) { dashboard { id } } }`;
  socket.say({ type: 'subscribe', id: 'a', payload: { query } });
  await waitsFor(2);
  client.destroy();
  socket.destroy();
  await waitsFor(0);
  finish();
  expect((await portico.graphql('{ viewer { id } }')).status).toBe(200);
  await sleep(50);
  expect(await portico.app.database.prisma.dashboard.count({ where: { name: 'of nobody' } })).toBe(0);
});

it('subscriptions are not operations under way, over server-sent events and on a socket', async () => {
  const query = `subscription { notifications(projectId: "${portico.demo.project_id}") { __typename } }`;
  const { token } = portico.demo.users.owner;
  const abort = new AbortController();
  closers.push(() => abort.abort());
  for (let index = 0; index < AT_ONCE + 1; index += 1) {
    const response = await fetch(`${portico.baseUrl}/graphql`, {
      method: 'POST',
      headers: { ...json, accept: 'text/event-stream', authorization: `Bearer ${token}` },
      body: JSON.stringify({ query }),
      signal: abort.signal,
    });
    expect(response.status).toBe(200);
  }
  const socket = await openReady();
  for (let index = 0; index < AT_ONCE + 1; index += 1) socket.say({ type: 'subscribe', id: String(index), payload: { query } });
  socket.say({ type: 'subscribe', id: 'query', payload: { query: '{ viewer { id } }' } });
  await socket.until(({ id, type }) => id === 'query' && type === 'next');
  await executesOnly(0);
  expect(await readGauge('operations_waiting')).toBe(0);
});

it.each([
  ['in chunks', ['Transfer-Encoding: chunked'], '1\r\n{\r\n1\r\n}\r\n0\r\n\r\n'],
  ['with an encoding that changes nothing', ['Content-Encoding: identity', 'Content-Length: 2'], '{}'],
])('a small body %s counts for its connection only until it has been read', async (_how, headers, body) => {
  const wire = await openWire(portico.baseUrl);
  closers.push(() => wire.socket.destroy());
  const head = [
    'POST /graphql HTTP/1.1',
    'Host: x',
    `Authorization: Bearer ${portico.demo.users.owner.token}`,
    'Content-Type: application/json',
  ];
  wire.write(`${[...head, ...headers].join('\r\n')}\r\n\r\n${body}`.repeat(5));
  expect((await wire.receive(5)).map(({ status }) => status)).toEqual(Array(5).fill(400));
  expect(await readGauge('unread_bytes')).toBe(0);
});

/** A query with a response of six megabytes, more than the kernel takes from a server whose client does not read. */
async function addUnread(): Promise<string> {
  const { project_id: id, users } = portico.demo;
  const sql = `INSERT INTO dashboards (project_id, created_by, name, description)
    SELECT $1::uuid, $2::uuid, 'Unread ' || number, repeat('x', 750000) FROM generate_series(1, 8) AS number`;
  await runUnlimited(portico, 'dashboards', sql, id, users.owner.id);
  return `{ project(id: "${id}") { dashboards(first: 100) { nodes { description } } } }`;
}

describe('an unread response takes no place', () => {
  let query: string;
  beforeAll(async () => {
    query = await addUnread();
  });
  afterAll(() => portico.app.database.prisma.dashboard.deleteMany({ where: { name: { startsWith: 'Unread ' } } }));

  beforeEach(() => until(async () => (await readGauge('unread_bytes')) === 0));

  /** Resolves when a response is being sent, and none executed. */
  async function isUnread(): Promise<void> {
    await expect.poll(() => readGauge('unread_bytes')).toBeGreaterThan(0);
    await executesOnly(0);
  }

  it.each(['application/json', 'text/event-stream'])('over HTTP by GET, as %s', async (type) => {
    const { hostname, port } = new URL(portico.baseUrl);
    const client = connect(Number(port), hostname).pause();
    closers.push(() => client.destroy());
    const head = ['Host: x', `Authorization: Bearer ${portico.demo.users.owner.token}`, `Accept: ${type}`];
    client.write(`GET /graphql?query=${encodeURIComponent(query)} HTTP/1.1\r\n${head.join('\r\n')}\r\n\r\n`);
    await isUnread();
  });

  it('on a socket', async () => {
    const socket = await openReady();
    socket.pause();
    socket.say({ type: 'subscribe', id: 'a', payload: { query } });
    await isUnread();
  });
});

it('an operation that is completed while it waits releases its place and its id', async () => {
  const finish = await keepBusy();
  const socket = await openReady();
  const subscribe = { type: 'subscribe', id: 'a', payload: { query: '{ viewer { id } }' } };
  socket.say(subscribe);
  await waitsFor(1);
  socket.say({ type: 'complete', id: 'a' });
  await waitsFor(0);
  socket.say(subscribe, { ...subscribe, id: 'b' }, { type: 'complete', id: 'b' });
  await waitsFor(1);
  finish();
  await socket.until(({ type }) => type === 'complete');
  expect(socket.messages.slice(1).map(({ id, type }) => [id, type])).toEqual([
    ['a', 'next'],
    ['a', 'complete'],
  ]);
});

it('the waiting operations of a user are bounded in bytes: more is refused with 503, and the rest is served', async () => {
  const finish = await keepBusy();
  // Large messages count as several: one socket may not send all of them at once.
  const sockets = [await openReady(), await openReady()] as const;
  const received = (wanted: string) => sockets.flatMap(({ messages }) => messages).filter(({ type }) => type === wanted);
  const payloadOf = (bytes: number) => {
    const payload = { query: '{ viewer { id } }', variables: { unused: '' } };
    return { ...payload, variables: { unused: 'x'.repeat(bytes - JSON.stringify(payload).length) } };
  };
  const [COUNT, BYTES, EACH, LIMIT] = [20, 60_000, 1_024, 2 ** 20];
  for (let index = 0; index < COUNT; index += 1)
    sockets[index % 2]?.say({ type: 'subscribe', id: String(index), payload: payloadOf(BYTES) });
  const fits = Math.floor(LIMIT / (BYTES + EACH));
  await until(() => received('error').length === COUNT - fits);
  expect(received('error').map((message) => message.payload[0].extensions.code)).toEqual(
    Array.from({ length: COUNT - fits }, () => 'service_unavailable'),
  );
  sockets[0].say({ type: 'subscribe', id: 'rest', payload: payloadOf(LIMIT - fits * (BYTES + EACH) - EACH - 100) });
  await waitsFor(fits + 1);
  const refused = await portico.ask('GET', `${portico.projectPath}/compute/overview`);
  expect([refused.status, refused.headers['retry-after'], refused.json.code]).toEqual([503, '1', 'service_unavailable']);
  const asked = await portico.graphql('{ viewer { id } }');
  expect([asked.status, asked.headers['cache-control']]).toEqual([503, 'no-store']);
  const logged = portico.logLines.map((line) => JSON.parse(line)).filter(({ status }) => status === 503);
  expect(logged.slice(-2).map(({ operation }) => operation)).toEqual(['compute_overview', 'graphql']);
  finish();
  await until(() => received('next').length === fits + 1);
});

/** Sends a request whose small body is not complete. Resolves when its credential is being checked. */
async function sendHalf(): Promise<Socket> {
  const { hostname, port } = new URL(portico.baseUrl);
  const client = connect(Number(port), hostname);
  closers.push(() => client.destroy());
  const authorization = `Authorization: Bearer ${portico.demo.users.owner.token}`;
  const head = ['POST /graphql HTTP/1.1', 'Host: x', authorization, 'Content-Type: application/json', 'Content-Length: 50'];
  portico.statements.length = 0;
  client.write(`${head.join('\r\n')}\r\n\r\n{`);
  await until(() => portico.statements.length > 0);
  return client;
}

it('a request with an incomplete small body does not wait, nor hold up others', async () => {
  const finish = await keepBusy();
  await sendHalf();
  const asked = portico.graphql('{ viewer { id } }');
  await waitsFor(1);
  finish();
  expect((await asked).status).toBe(200);
  await executesOnly(0);
});

it('a request whose client disconnects before it waits takes no place', async () => {
  const finish = await keepBusy();
  const client = await sendHalf();
  portico.logLines.length = 0;
  client.destroy();
  await until(() => portico.logLines.some((line) => JSON.parse(line).method === 'POST'));
  expect(await readGauge('operations_waiting')).toBe(0);
  finish();
  await executesOnly(0);
});

it('small bodies of requests that wait are counted, as they are in memory', async () => {
  const finish = await keepBusy();
  const [COUNT, BYTES, EACH, LIMIT] = [80, 15_000, 1_024, 2 ** 20];
  const body = { query: '{ viewer { id } }', variables: { unused: '' } };
  body.variables.unused = 'x'.repeat(BYTES - JSON.stringify(body).length);
  let answered = 0;
  const asked = Array.from({ length: COUNT }, () => portico.ask('POST', '/graphql', { body }).finally(() => (answered += 1)));
  const fits = Math.floor(LIMIT / (BYTES + EACH));
  await waitsFor(fits);
  await until(() => answered === COUNT - fits);
  finish();
  const refused = (await Promise.all(asked)).filter(({ status }) => status !== 200);
  expect(refused.map(({ status }) => status)).toEqual(Array.from({ length: COUNT - fits }, () => 503));
});

it.runIf(isPostgres).each([
  { name: 'lists of one document', lock: 'LOCK TABLE notifications', ask: () => askMany('notificationPage(pageSize: $n) { count }') },
  { name: 'lists by Prisma', lock: 'LOCK TABLE tasks', ask: () => askMany('tasks(first: $n) { nodes { id } }') },
  { name: 'transactions', lock: 'LOCK TABLE dashboards', ask: askManyWrites },
  { name: 'consoles that open', lock: 'LOCK TABLE console_sessions', ask: openManyConsoles },
])('a user whose $name wait for the database holds half of its connections, and others the rest', async ({ lock, ask }) => {
  const { holder, observer } = await openLock(lock);
  const asked = ask();
  await until(async () => (await countLocked(observer)) >= 2);
  const { status } = await portico.ask('GET', '/v1/organizations', { as: 'viewer' });
  expect([status, await countLocked(observer)]).toEqual([200, 2]);
  await holder.run('ROLLBACK');
  for (const { json } of await asked) expect(json.errors).toBeUndefined();
});

it.runIf(isPostgres)('a credential that was revoked while its costly operation waited for another one is refused', async () => {
  const create = 'mutation { createApiKey(input: { name: "costs" }) { key apiKey { id } } }';
  const { key, apiKey } = (await portico.graphql(create)).json.data.createApiKey;
  const { holder, observer } = await openLock('LOCK TABLE tasks');
  const query = 'query ($id: ID!) { project(id: $id) { instances(first: 100) { nodes { id tasks(first: 11) { nodes { id } } } } } }';
  const variables = { id: portico.demo.project_id };
  const first = portico.graphql(query, variables);
  await until(async () => (await countLocked(observer)) > 0);
  const socket = await openReady(key);
  socket.say({ type: 'subscribe', id: 'a', payload: { query, variables } });
  const path = `/graphql?${new URLSearchParams({ query, variables: JSON.stringify(variables) })}`;
  portico.logLines.length = 0;
  const later = [portico.graphql(query, variables, { as: { bearer: key } }), portico.ask('GET', path, { as: { bearer: key } })];
  await executesOnly(4);
  await portico.app.database.prisma.apiKey.update({ where: { id: apiKey.id }, data: { revoked: new Date() } });
  await holder.run('ROLLBACK');
  expect((await first).json.errors).toBeUndefined();
  for (const { status, headers, json } of await Promise.all(later)) {
    expect([status, headers['www-authenticate'], headers['cache-control']]).toEqual([401, 'Bearer', 'no-store']);
    expect(json).toEqual({ errors: [{ message: expect.any(String), extensions: { code: 'not_authenticated' } }] });
  }
  expect((await socket.refused).code).toBe(4403);
  expect(socket.messages.filter(({ type }) => type === 'next')).toEqual([]);
  await until(() => linesOf('request').length === 3);
  const waits = linesOf('request').filter(({ status }) => status === 401);
  for (const { waited_ms: waited, duration_ms: duration } of waits) expect([waited > 0, waited <= duration]).toEqual([true, true]);
});

/** Takes a lock by a connection, until its transaction is rolled back; another one observes who waits for it. */
async function openLock(lock: string): Promise<{ holder: Connection; observer: Connection }> {
  const [holder, observer] = [await openConnection(portico), await openConnection(portico)];
  closers.push(
    () => void holder.close(),
    () => void observer.close(),
  );
  await holder.run('BEGIN');
  await holder.run(lock);
  return { holder, observer };
}

/** The number of the database's statements that wait for a lock. */
async function countLocked(observer: Connection): Promise<number> {
  const sql = `SELECT count(*)::int FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`;
  const [row] = await observer.run(sql);
  return (row as { count: number }).count;
}

it.runIf(isPostgres)('forged tickets are looked up together, however many are sent', async () => {
  const { organization_id: organizationId, project_id: projectId } = portico.demo;
  const path = `/v1/organizations/${organizationId}/projects/${projectId}/notifications/ws`;
  const { holder, observer } = await openLock('LOCK TABLE websocket_tickets');
  const sockets = Array.from({ length: 2 * AT_ONCE }, (_, index) => openConsoleSocket(portico.baseUrl, `${path}?ticket=forged-${index}`));
  closers.push(() => sockets.forEach(({ socket }) => void socket.terminate()));
  await until(async () => (await countLocked(observer)) >= 1);
  const { status } = await portico.ask('GET', '/v1/organizations', { as: 'viewer' });
  expect([status, (await countLocked(observer)) < 4]).toEqual([200, true]);
  await holder.run('ROLLBACK');
  const closed = await Promise.all(sockets.map(({ closed }) => closed));
  expect(new Set(closed.map(({ reason }) => reason))).toEqual(new Set(['ticket_unknown']));
});

/** Asks for a list many times in one document, each time as a list of its own. */
function askMany(list: string) {
  const lists = Array.from({ length: 40 }, (_, index) => `a${index}: ${list.replace('$n', String(1 + (index % 20)))}`).join(' ');
  return Promise.all([portico.graphql(`query ($id: ID!) { project(id: $id) { ${lists} } }`, { id: portico.demo.project_id })]);
}

/** Opens sessions of one console, each of which ends the one before. */
async function openManyConsoles() {
  const guest = await openGuest();
  const instance = portico.demo.instances.console;
  await setEndpoint(portico, instance, { port: guest.port });
  const consoles = await Promise.all(Array.from({ length: AT_ONCE }, () => openConsole(portico, instance)));
  closers.push(() => {
    for (const { socket } of consoles) socket.terminate();
    void guest.close();
  });
  await Promise.all(consoles.map(({ opened }) => opened));
  return [];
}

function askManyWrites() {
  const { organization_id: organizationId, project_id: projectId } = portico.demo;
  const query = 'mutation ($input: CreateDashboardInput!) { createDashboard(input: $input) { dashboard { id } } }';
  const write = (_: unknown, index: number) =>
    portico.graphql(query, { input: { organizationId, projectId, name: 'waits', idempotencyKey: `neighbours-write-${index}` } });
  return Promise.all(Array.from({ length: AT_ONCE }, write));
}

it('operations begin in the order of their arrival, and one that is given up releases its place to the next', async () => {
  const semaphore = new KeyedSemaphore(1);
  const begun: string[] = [];
  const acquire = (user: string, name = user) => {
    const permit = semaphore.acquire(user, () => 0);
    void permit.acquired?.then(
      () => begun.push(name),
      () => begun.push(`${name} is given up`),
    );
    if (!permit.acquired) begun.push(name);
    return permit;
  };
  const [first, second, third, fourth, other] = [
    acquire('one', '1'),
    acquire('one', '2'),
    acquire('one', '3'),
    acquire('one', '4'),
    acquire('other'),
  ];
  expect([begun, semaphore.waiting, semaphore.mustWait('one'), semaphore.mustWait('nobody')]).toEqual([['1', 'other'], 3, true, false]);
  third.release();
  first.release();
  first.release();
  await sleep(0);
  expect([begun.slice(2), semaphore.waiting]).toEqual([['3 is given up', '2'], 1]);
  second.release();
  await sleep(0);
  fourth.release();
  other.release();
  third.release();
  expect([begun.slice(4), semaphore.waiting, semaphore.mustWait('one'), semaphore.mustWait('other')]).toEqual([['4'], 0, false, false]);
});

it('an operation waits for 20 seconds', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  try {
    const semaphore = new KeyedSemaphore(1);
    const first = semaphore.acquire('one', () => 0);
    const [second, third] = [semaphore.acquire('one', () => 0), semaphore.acquire('one', () => 0)];
    const outcomes = [second, third].map(({ acquired }) => acquired?.then(() => 'begun', String));
    vi.advanceTimersByTime(19_999);
    first.release();
    expect(await outcomes[0]).toBe('begun');
    vi.advanceTimersByTime(1);
    expect(await outcomes[1]).toMatch('unavailable');
    expect([semaphore.executing, semaphore.waiting, vi.getTimerCount()]).toEqual([1, 0, 0]);
    second.release();
    third.release();
    expect(semaphore.mustWait('one')).toBe(false);
  } finally {
    vi.useRealTimers();
  }
});

it('an operation that never ends is under way for a minute', async () => {
  vi.useFakeTimers({ toFake: ['performance'] });
  try {
    const semaphore = new KeyedSemaphore(1);
    const lost = semaphore.acquire('one', () => 0);
    const second = semaphore.acquire('one', () => 0);
    vi.advanceTimersByTime(59_999);
    const third = semaphore.acquire('one', () => 0);
    expect([semaphore.executing, semaphore.waiting]).toEqual([1, 2]);
    vi.advanceTimersByTime(1);
    const fourth = semaphore.acquire('one', () => 0);
    await second.acquired;
    expect([semaphore.executing, semaphore.waiting]).toEqual([1, 2]);
    lost.release();
    expect([semaphore.executing, semaphore.waiting]).toEqual([1, 2]);
    for (const { release } of [second, third, fourth]) release();
    expect([semaphore.executing, semaphore.waiting, semaphore.mustWait('one')]).toEqual([0, 0, false]);
    semaphore.acquire('one', () => 0);
    vi.advanceTimersByTime(60_000);
    expect(semaphore.acquire('one', () => 0).acquired).toBeNull();
    const large = semaphore.acquire('one', () => 2 ** 20 - 1_024);
    expect(() => semaphore.acquire('one', () => 0)).toThrow('unavailable');
    vi.advanceTimersByTime(60_000);
    const last = semaphore.acquire('one', () => 0);
    large.release();
    await last.acquired;
  } finally {
    vi.useRealTimers();
  }
});

it('the operations of a client end, for any input and any disconnect', async () => {
  const random = seededRandom(11);
  const { hostname, port } = new URL(portico.baseUrl);
  const { project_id: id, users } = portico.demo;
  const lists = Array.from(
    { length: 8 },
    (_, index) => `a${index}: instances(first: 100) { nodes { id tasks(first: 5) { nodes { id } } } }`,
  );
  const documents = [
    '{ viewer { id } }',
    `{ project(id: "${id}") { ${lists.join(' ')} } }`,
    `subscription { notifications(projectId: "${id}") { __typename } }`,
    '{ nothing }',
    '{',
  ];
  const write = (head: string, body: string | Buffer = '', ...headers: string[]) => {
    const all = [`${head} HTTP/1.1`, 'Host: x', `Authorization: Bearer ${users.owner.token}`, 'Content-Type: application/json', ...headers];
    return Buffer.concat([Buffer.from(`${all.join('\r\n')}\r\n\r\n`), Buffer.from(body)]);
  };
  const withLength = (body: string | Buffer, ...headers: string[]) =>
    write('POST /graphql', body, `Content-Length: ${body.length}`, ...headers);
  const forms = documents.flatMap((query) => {
    const small = JSON.stringify({ query });
    const large = JSON.stringify({ query, variables: { unused: 'x'.repeat(100_000) } });
    const inUrl = `/graphql?query=${encodeURIComponent(query)}`;
    return [
      withLength(small),
      withLength(large),
      withLength(small, 'Accept: text/event-stream'),
      withLength(large, 'Expect: 100-continue'),
      withLength(gzipSync(large), 'Content-Encoding: gzip'),
      withLength(small, 'Connection: Upgrade', 'Upgrade: h2c'),
      write('POST /graphql', `${large.length.toString(16)}\r\n${large}\r\n0\r\n\r\n`, 'Transfer-Encoding: chunked'),
      write(`GET ${inUrl}`),
      write(`GET ${inUrl}`, small, `Content-Length: ${small.length}`, 'Accept: text/event-stream'),
      write(`HEAD ${inUrl}`),
      Buffer.concat([withLength(small), write(`GET ${inUrl}`), withLength(large)]),
      write(`GET ${portico.projectPath}/compute/instances`),
      write(`POST ${portico.projectPath}/monitoring/dashboards`, small, `Content-Length: ${small.length}`),
    ];
  });
  const breakOff = async (bytes: Buffer) => {
    const client = connect(Number(port), hostname).on('error', () => {});
    closers.push(() => client.destroy());
    if (random.chance(0.5)) client.resume();
    const length = random.chance(0.3) ? random.below(bytes.length) : bytes.length;
    client.write(bytes.subarray(0, length));
    await sleep(random.below(30));
    if (random.chance(0.5)) client.end();
    else client.destroy();
  };
  const speak = async () => {
    const socket = await openReady();
    for (let count = 0; count < 30; count += 1) {
      const payload = { query: random.pick(documents) };
      const name = String(random.below(40));
      if (random.chance(0.6)) socket.say({ type: 'subscribe', id: name, payload });
      else socket.say({ type: 'complete', id: name });
      if (random.chance(0.3)) await sleep(random.below(10));
    }
    if (random.chance(0.5)) socket.pause();
    await sleep(random.below(50));
    socket.destroy();
  };
  for (let round = countCases(40); round > 0; round -= 1) await Promise.all([...forms.map(breakOff), ...Array.from({ length: 6 }, speak)]);
  await executesOnly(0);
  expect(await readGauge('operations_waiting')).toBe(0);
  expect((await portico.graphql('{ viewer { id } }')).status).toBe(200);
  expect(portico.logLines.filter((line) => ['error', 'fatal'].includes(JSON.parse(line).level))).toEqual([]);
});

it.runIf(isPostgres)('a key whose row another session has locked is accepted at once, though its last use cannot be written', async () => {
  const { holder } = await openLock('SELECT FROM api_keys FOR UPDATE');
  try {
    const startedAt = performance.now();
    const { status } = await portico.ask('GET', `${portico.projectPath}/compute/overview`, {
      as: { bearer: portico.demo.users.viewer.api_key },
    });
    expect({ status, isLate: performance.now() - startedAt > 3_000 }).toEqual({ status: 200, isLate: false });
  } finally {
    await holder.run('ROLLBACK');
  }
});
