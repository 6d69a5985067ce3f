import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { startApp, type TestApp } from '../support/app.ts';
import { countCases } from '../support/cases.ts';
import { stopClock } from '../support/clock.ts';
import { type Crowd, openCrowd, type Reply, type Sending } from '../support/crowd.ts';

const PANEL = 'https://panel.example';
/** A user's hourly budget; test/platform/config.test.ts checks the default. */
const HOURLY = countCases(5_000);

let portico: TestApp;
let crowds: Crowd[] = [];

beforeAll(async () => {
  // The test controls the clock, and Redis has its own.
  portico = await startApp({ ALLOWED_ORIGINS: PANEL, REDIS_URL: '', RATE_LIMIT_USER: String(HOURLY) });
});
afterAll(() => portico.close());
afterEach(() => {
  for (const crowd of crowds) crowd.close();
  crowds = [];
  vi.useRealTimers();
});

/** Every test uses its own address and therefore its own anonymous budget. */
function crowdAt(address: string, app = portico): Crowd {
  const crowd = openCrowd(app.baseUrl, address);
  crowds.push(crowd);
  return crowd;
}

const bearer = (credential: string) => ({ authorization: `Bearer ${credential}` });
const json = { 'content-type': 'application/json' };
const typename: Sending = { method: 'POST', path: '/graphql', headers: json, body: '{"query":"{ __typename }"}' };
const typenameAs = (credential: string): Sending => ({ ...typename, headers: { ...json, ...bearer(credential) } });
const nothing = (credential: string): Sending => ({ path: '/v1/nothing', headers: bearer(credential) });

function repeat(count: number, kinds: readonly Sending[]): Sending[] {
  return Array.from({ length: count }, (_, index) => kinds[index % kinds.length] as Sending);
}

/** Parses the two rate-limit headers; NaN if one is missing or malformed. */
function readAllowance({ headers }: Pick<Reply, 'headers'>) {
  const [, name, limit, window] = /^"(\w+)";q=(\d+);w=(\d+)$/.exec(String(headers['ratelimit-policy'])) ?? [];
  const [, sameName, remaining, reset] = /^"(\w+)";r=(\d+);t=(\d+)$/.exec(String(headers.ratelimit)) ?? [];
  const isOnePolicy = name === sameName;
  return {
    name: isOnePolicy ? name : undefined,
    limit: Number(limit),
    window: Number(window),
    left: Number(remaining),
    reset: Number(reset),
  };
}

/** Checks that exactly `limit` replies were admitted, each for a different unit of the budget, and all others rejected. */
function expectExactly(limit: number, replies: readonly Reply[]) {
  const admitted = replies.filter(({ status }) => status !== 429);
  const refused = replies.filter(({ status }) => status === 429);
  expect(admitted.length).toBe(limit);
  const left = admitted.map((reply) => readAllowance(reply).left).sort((a, b) => b - a);
  expect(left).toEqual(Array.from({ length: limit }, (_, index) => limit - 1 - index));
  expect(refused.length).toBe(replies.length - limit);
  expect(refused.filter((reply) => readAllowance(reply).left !== 0)).toEqual([]);
}

function refusal(limit: number, windowSeconds: number, retryAfterSeconds: number) {
  const context = { limit, window_seconds: windowSeconds, retry_after_seconds: retryAfterSeconds };
  return { detail: 'Request was throttled.', code: 'rate_limited', error: 'Request was throttled.', context };
}

function graphqlRefusal(limit: number, windowSeconds: number, retryAfterSeconds: number) {
  const { context } = refusal(limit, windowSeconds, retryAfterSeconds);
  return { errors: [{ message: 'Request was throttled.', extensions: { code: 'rate_limited', context } }] };
}

describe('anonymous: 60 a minute for an address', () => {
  test('over 64 connections 60 are admitted, with no credential or a bad one, in both APIs', async () => {
    stopClock();
    const crowd = crowdAt('127.0.1.1');
    const kinds = [typename, { path: '/v1/%ff' }, nothing('garbage'), typenameAs('sk-portico-mistyped'), { path: '/nowhere' }];
    const replies = await crowd.sendAll(repeat(200, kinds));
    expect(crowd.countConnections()).toBe(64);
    expectExactly(60, replies);
    expect(new Set(replies.map(({ status }) => status))).toEqual(new Set([200, 401, 404, 429]));
    expect(new Set(replies.map((reply) => readAllowance(reply).name))).toEqual(new Set(['anonymous']));
  });

  test('one after the other: the budget counts down, and the 61st is refused with any credential', async () => {
    stopClock();
    const crowd = crowdAt('127.0.1.2');
    for (let left = 59; left >= 0; left -= 1) {
      const reply = await crowd.send(nothing('garbage'));
      expect([reply.status, readAllowance(reply)]).toEqual([401, { name: 'anonymous', limit: 60, window: 60, left, reset: 60 }]);
      expect(reply.headers['retry-after']).toBeUndefined();
    }
    for (const sending of [nothing('garbage'), typename, { path: '/v1/nothing' }, { path: '/nowhere' }]) {
      expect((await crowd.send(sending)).status).toBe(429);
    }
    const good = await crowd.send(nothing(portico.demo.users.viewer.api_key));
    expect([good.status, readAllowance(good).name]).toEqual([404, 'user']);
    const neighbour = await crowdAt('127.0.1.3').send(typename);
    expect([neighbour.status, readAllowance(neighbour).left]).toEqual([200, 59]);
  });

  test('the refusal has the body of its API, and a Retry-After that is honest', async () => {
    const setClock = stopClock();
    const crowd = crowdAt('127.0.1.4');
    await crowd.sendAll(repeat(60, [typename]));
    const rest = { path: '/v1/nothing' };
    for (const [later, seconds] of [
      [0, 60],
      [12_345, 48],
      [59_000, 1],
      [59_999, 1],
    ] as const) {
      setClock(later);
      const refused = await crowd.send(rest);
      expect([refused.status, refused.headers['retry-after'], JSON.parse(refused.text)]).toEqual([
        429,
        String(seconds),
        refusal(60, 60, seconds),
      ]);
      expect(readAllowance(refused)).toEqual({ name: 'anonymous', limit: 60, window: 60, left: 0, reset: seconds });
      const graphql = await crowd.send(typename);
      expect([graphql.status, graphql.headers['retry-after'], JSON.parse(graphql.text)]).toEqual([
        429,
        String(seconds),
        graphqlRefusal(60, 60, seconds),
      ]);
    }
    // A client rejected at 12,345 ms that waits as told returns at 60,345 ms: a new window begins there with the full budget.
    setClock(12_345 + 48_000);
    expectExactly(60, await crowd.sendAll(repeat(100, [rest])));
    setClock(12_345 + 48_000 + 59_999);
    expect((await crowd.send(rest)).status).toBe(429);
    setClock(12_345 + 48_000 + 60_000);
    expectExactly(60, await crowd.sendAll(repeat(61, [rest])));
  });
});

describe(`authenticated: ${HOURLY} an hour for a user`, () => {
  test('all sessions and keys together, REST and GraphQL together, over 64 connections', async () => {
    const setClock = stopClock();
    const { id, token = '', api_key } = portico.demo.users.admin;
    const second = (await portico.app.tokens.local?.sign(id, 7_200)) ?? '';
    const kinds = [nothing(token), typenameAs(second), nothing(api_key), typenameAs(token), nothing(second), typenameAs(api_key)];
    const crowd = crowdAt('127.0.2.1');
    const replies = await crowd.sendAll(repeat(HOURLY + 100, kinds));
    expect(crowd.countConnections()).toBe(64);
    expectExactly(HOURLY, replies);
    expect(new Set(replies.map((reply) => readAllowance(reply).name))).toEqual(new Set(['user']));

    for (const [later, seconds] of [
      [0, 3_600],
      [1_000_001, 2_600],
      [3_599_999, 1],
    ] as const) {
      setClock(later);
      const [rest, graphql] = await crowd.sendAll([nothing(second), typenameAs(api_key)]);
      expect([rest?.status, rest?.headers['retry-after'], JSON.parse(rest?.text ?? '')]).toEqual([
        429,
        String(seconds),
        refusal(HOURLY, 3_600, seconds),
      ]);
      expect([graphql?.status, graphql?.headers['retry-after'], JSON.parse(graphql?.text ?? '')]).toEqual([
        429,
        String(seconds),
        graphqlRefusal(HOURLY, 3_600, seconds),
      ]);
    }
    const another = await crowd.send(nothing(portico.demo.users.outsider.api_key));
    expect([another.status, readAllowance(another).left]).toEqual([404, HOURLY - 1]);
    setClock(3_600_000);
    const again = await crowd.send(nothing(token));
    expect([again.status, readAllowance(again)]).toEqual([
      404,
      { name: 'user', limit: HOURLY, window: 3_600, left: HOURLY - 1, reset: 3_600 },
    ]);
  });
});

describe('the headers', () => {
  test('are on every response, of any status, and readable by browsers', async () => {
    stopClock();
    const { demo, projectPath } = portico;
    const dashboards = `${projectPath}/monitoring/dashboards`;
    const origin = { origin: PANEL };
    const mine = { ...origin, ...bearer(demo.users.member.api_key) };
    const body = { ...mine, ...json };
    const graphql = (query: string) => ({ method: 'POST', path: '/graphql', headers: body, body: JSON.stringify({ query }) });
    const foreign = `/v1/organizations/${demo.foreign.organization_id}/projects/${demo.foreign.project_id}/compute/overview`;
    const stale = { method: 'PUT', headers: { ...body, 'if-match': '"999"' }, body: '{"name":"new"}' };
    const created = await crowdAt('127.0.3.1').send({ method: 'POST', path: dashboards, headers: body, body: '{"name":"mine"}' });
    const own = `${dashboards}/${JSON.parse(created.text).id}`;
    const cases: ReadonlyArray<readonly [number, Sending]> = [
      [200, { path: `${projectPath}/compute/overview`, headers: mine }],
      [200, { method: 'HEAD', path: `${projectPath}/compute/overview`, headers: mine }],
      [400, { method: 'POST', path: dashboards, headers: body, body: '{' }],
      [400, { method: 'POST', path: dashboards, headers: body, body: '{"name":1}' }],
      [403, { method: 'POST', path: `${projectPath}/websocket-tickets`, headers: body, body: '{"target":"notifications"}' }],
      [404, { path: foreign, headers: mine }],
      [404, { path: '/v1/%ff', headers: mine }],
      [404, { path: '/nowhere', headers: mine }],
      [404, { method: 'PATCH', path: own, headers: mine }],
      [409, { ...stale, path: own }],
      [200, graphql('{ viewer { id } }')],
      [200, graphql('{ project(organizationId: "x", id: "x") { id } }')],
      [400, { ...graphql(''), body: '[]' }],
      [200, { path: '/graphql?query=%7B__typename%7D', headers: mine }],
      [204, { method: 'DELETE', path: own, headers: mine }],
    ];
    let left = HOURLY - 1;
    expect([created.status, readAllowance(created).left]).toEqual([201, left]);
    for (const [status, sending] of cases) {
      const reply = await crowdAt('127.0.3.1').send(sending);
      left -= 1;
      const what = `${sending.method ?? 'GET'} ${sending.path}`;
      expect([what, reply.status, readAllowance(reply)]).toEqual([
        what,
        status,
        { name: 'user', limit: HOURLY, window: 3_600, left, reset: 3_600 },
      ]);
      expectExposed(reply);
    }
    const [unknown, refused] = (await crowdAt('127.0.3.2').sendAll(repeat(61, [{ path: '/v1/nothing', headers: origin }]))).slice(-2);
    for (const [reply, status] of [
      [unknown, 401],
      [refused, 429],
    ] as const) {
      expect([reply?.status, readAllowance(reply as Reply).left]).toEqual([status, 0]);
      expectExposed(reply as Reply);
    }
  });
});

function expectExposed({ headers }: Reply) {
  expect(headers['access-control-allow-origin']).toBe(PANEL);
  const exposed = String(headers['access-control-expose-headers']).split(',');
  expect(exposed).toEqual(expect.arrayContaining(['RateLimit', 'RateLimit-Policy', 'Retry-After']));
}

test('an operation that counts as several requests has the remaining budget after all of them, also where it is refused', async () => {
  const app = await startApp({ RATE_LIMIT_USER: '10', REDIS_URL: '' });
  try {
    const read = (name: string) =>
      `${name}: markNotificationsRead(input: { organizationId: "${app.demo.organization_id}", projectId: "${app.demo.project_id}" }) { marked }`;
    const ask = async (fields: number) => {
      const names = Array.from({ length: fields }, (_, index) => read(`m${index}`));
      const { status, headers } = await app.graphql(`mutation { ${names.join(' ')} }`, {}, { as: 'owner' });
      return [status, readAllowance({ headers: headers as Reply['headers'] }).left];
    };
    expect(await ask(4)).toEqual([200, 6]);
    expect(await ask(8)).toEqual([429, 0]);
    const place = `project(organizationId: "${app.demo.organization_id}", id: "${app.demo.project_id}")`;
    const lists = Array.from({ length: 3 }, (_, index) => `n${index}: notifications(filter: { unread: true }, first: 1) { totalCount }`);
    const query = encodeURIComponent(`{ ${place} { ${lists.join(' ')} } }`);
    const { status, headers } = await app.ask('GET', `/graphql?query=${query}`, { as: 'member' });
    expect([status, readAllowance({ headers: headers as Reply['headers'] }).left]).toEqual([200, 7]);
  } finally {
    await app.close();
  }
});

describe('requests that are not counted', () => {
  const page: Sending = { path: '/graphql', headers: { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' } };
  const free: ReadonlyArray<readonly [number, Sending]> = [
    [204, { method: 'OPTIONS', path: '/graphql' }],
    [204, { method: 'OPTIONS', path: '/v1/nothing', headers: { origin: PANEL, 'access-control-request-method': 'PUT' } }],
    [200, { path: '/' }],
    [200, { method: 'HEAD', path: '/' }],
    [200, { path: '/.well-known/jwks.json' }],
    [200, page],
    [200, { ...page, headers: { ...page.headers, ...bearer('garbage') } }],
  ];

  test('are preflights, the index, the keys and the GraphiQL page, which are served with a spent budget', async () => {
    stopClock();
    const crowd = crowdAt('127.0.4.1');
    const expectFree = async () => {
      for (const [status, sending] of free) {
        const reply = await crowd.send(sending);
        expect([sending.method, sending.path, reply.status, reply.headers.ratelimit]).toEqual([
          sending.method,
          sending.path,
          status,
          undefined,
        ]);
      }
    };
    for (let round = 0; round < 3; round += 1) await expectFree();
    expect(readAllowance(await crowd.send(typename)).left).toBe(59);
    await crowd.sendAll(repeat(60, [typename]));
    expect((await crowd.send(typename)).status).toBe(429);
    await expectFree();
  });
});

describe('the address of a client', () => {
  const from = (addresses: string): Sending => ({ path: '/v1/nothing', headers: { 'x-forwarded-for': addresses } });

  test('is that of the peer, regardless of X-Forwarded-For', async () => {
    stopClock();
    const crowd = crowdAt('127.0.5.1');
    expectExactly(60, await crowd.sendAll(Array.from({ length: 70 }, (_, index) => from(`203.0.113.${index}`))));
  });

  test('is the last untrusted one that a trusted peer forwards, and not one that the client has put before', async () => {
    stopClock();
    const behind = await startApp({ TRUST_PROXY: '127.0.5.2/31, 10.0.0.0/8', REDIS_URL: '' });
    try {
      const proxy = crowdAt('127.0.5.2', behind);
      expectExactly(60, await proxy.sendAll(Array.from({ length: 70 }, (_, index) => from(`203.0.113.${index}, 198.51.100.7`))));
      expect((await crowdAt('127.0.5.3', behind).send(from('198.51.100.7, 10.1.2.3'))).status).toBe(429);
      expect(readAllowance(await proxy.send(from('198.51.100.8'))).left).toBe(59);
      const stranger = crowdAt('127.0.5.4', behind);
      expectExactly(60, await stranger.sendAll(Array.from({ length: 61 }, () => from('198.51.100.9'))));
      expect(readAllowance(await proxy.send(from('198.51.100.9'))).left).toBe(59);
    } finally {
      await behind.close();
    }
  });
});

test('the many large responses of one user wait for each other, and delay another user by one of them', async () => {
  const path = `${portico.projectPath}/monitoring/dashboards`;
  for (let made = 0; made < 8; made += 1) {
    const response = await portico.ask('POST', path, { body: { name: `Large ${made}`, widgets: ['x'.repeat(250_000)], is_public: true } });
    expect(response.status).toBe(201);
  }
  let answered = 0;
  const many = Array.from({ length: 30 }, async () => {
    expect((await portico.ask('GET', path)).text.length).toBeGreaterThan(2_000_000);
    answered += 1;
  });
  await expect.poll(() => answered, { interval: 1 }).toBeGreaterThan(9);
  const before = answered;
  expect((await portico.ask('GET', path, { as: 'member' })).text.length).toBeGreaterThan(2_000_000);
  // Some more are answered while the access and the first page of the other user are read.
  expect(answered - before).toBeLessThan(15);
  await Promise.all(many);
});

test('v1 has its own message for an object that alone exceeds the limit of a response', async () => {
  const small = await startApp({ MAX_ANSWER_BYTES: '65536' });
  const path = `${small.projectPath}/monitoring/dashboards`;
  const made = await small.ask('POST', path, { body: { name: 'Large', widgets: ['x'.repeat(100_000)] } });
  expect(made.json.detail).toBe('The response would take more than 65536 bytes: it has no smaller form.');
  const [row] = await small.app.database.prisma.$queryRaw<Array<{ id: string }>>`SELECT id::text FROM dashboards WHERE name = 'Large'`;
  const read = await small.ask('GET', `${path}/${row?.id}`);
  expect([read.status, read.json.detail]).toEqual([400, 'The response would take more than 65536 bytes: it has no smaller form.']);
  const list = await small.ask('GET', path);
  expect(list.json.detail).toBe('The response would take more than 65536 bytes: ask for a smaller `page_size`.');
  await small.close();
});
