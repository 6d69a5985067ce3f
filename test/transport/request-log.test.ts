import { generateKeyPairSync, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { generateKey, hashSecret } from '../../src/access/apikey.ts';
import type { FaultCode } from '../../src/kernel/fault.ts';
import { startApp, type TestApp } from '../support/app.ts';
import { openSocket, takeTicket } from '../support/feed.ts';
import { type Forge, openForge } from '../support/forgery.ts';

let app: TestApp;
let forge: Forge;
let path: string;
beforeAll(async () => {
  app = await startApp({ RATE_LIMIT_ANONYMOUS: '100000' });
  forge = openForge(app);
  path = `${app.projectPath}/compute/overview`;
});
afterAll(() => app.close());

type Line = Readonly<Record<string, unknown>>;

/** The line of the log with this message about what was sent with this id. */
async function lineOf(requestId: string, message = 'request'): Promise<Line> {
  return vi.waitFor(() => {
    const found = app.logLines
      .map((line) => JSON.parse(line) as Line)
      .find((line) => line.request_id === requestId && line.msg === message);
    if (!found) throw new Error(`no line \`${message}\``);
    return found;
  }, 60_000);
}

type Sent = Parameters<TestApp['ask']>[2] & { readonly method?: string };

/** Sends a request; returns its line. */
async function logged(target: string, { method = 'GET', ...sent }: Sent = {}): Promise<Line> {
  const { headers } = await app.ask(method, target, sent);
  return lineOf(String(headers['x-request-id']));
}

const loggedQuery = (query: string, sent: Sent = {}, rest: object = {}) =>
  logged('/graphql', { ...sent, method: 'POST', body: { query, ...rest } });

/** Asks for an upgrade that is refused; returns its line. */
async function refusedUpgrade(target: string, headers: Record<string, string>): Promise<Line> {
  const id = randomUUID();
  await openSocket(app, target, { headers: { ...headers, 'x-request-id': id } }).closed;
  return lineOf(id, 'upgrade refused');
}

const now = () => Math.floor(Date.now() / 1000);
const withClaims = (claims: Record<string, unknown>) => forge.sign({ claims });

describe('the log has the reason why a credential is refused', () => {
  const other = generateKeyPairSync('ed25519').privateKey;

  /** Makes a user with a key that is not valid. */
  async function makeKey(data: { revoked?: Date; expires?: Date }, disabledAt: Date | null = null): Promise<string> {
    const { key, hint } = generateKey();
    const user = await app.app.database.prisma.user.create({
      data: { email: `${randomUUID()}@portico.example`, name: 'Made', disabledAt },
    });
    await app.app.database.prisma.apiKey.create({ data: { userId: user.id, name: 'made', secretHash: hashSecret(key), hint, ...data } });
    return key;
  }

  const refused: ReadonlyArray<readonly [string, string, () => string | Promise<string>]> = [
    ['no token', 'malformed', () => 'abc'],
    ['a token that is cut off', 'malformed', () => forge.sign().slice(0, -20).split('.').slice(0, 2).join('.')],
    ['an algorithm that is not accepted', 'algorithm', () => forge.hmac('secret', { header: { alg: 'HS256' } })],
    ['a key that the provider does not have', 'unknown_signing_key', () => forge.sign({ header: { kid: 'other' } })],
    ['the signature of another key', 'signature', () => forge.signWith(other)],
    ['another issuer', 'issuer', () => withClaims({ iss: 'https://login.example' })],
    ['no issuer', 'issuer', () => withClaims({ iss: undefined })],
    ['another audience', 'audience', () => withClaims({ aud: 'another' })],
    ['no audience', 'audience', () => withClaims({ aud: undefined })],
    ['expired for a second', 'expired', () => withClaims({ exp: now() - 1 })],
    ['expired for long', 'expired', () => withClaims({ exp: now() - 3_600 })],
    ['not valid yet', 'not_yet_valid', () => withClaims({ nbf: now() + 3_600 })],
    ['issued in the future', 'not_yet_valid', () => withClaims({ iat: now() + 3_600 })],
    ['a subject that is not a UUID', 'subject', () => withClaims({ sub: 'auth0|5f7c8ec7' })],
    ['no expiry', 'claims', () => withClaims({ exp: undefined })],
    ['a user who is not known', 'unknown_user', () => withClaims({ sub: randomUUID() })],
    [
      'a user who is disabled',
      'disabled',
      async () => {
        const data = { email: `${randomUUID()}@portico.example`, name: 'Gone', disabledAt: new Date() };
        const { id } = await app.app.database.prisma.user.create({ data });
        return withClaims({ sub: id });
      },
    ],
    ['a mistyped API key', 'malformed', () => `${generateKey().key.slice(0, -1)}x`],
    ['an unknown API key', 'unknown_key', () => generateKey().key],
    ['a revoked API key', 'revoked', () => makeKey({ revoked: new Date() })],
    ['an expired API key', 'expired_key', () => makeKey({ expires: new Date(Date.now() - 1_000) })],
    ['an API key of a disabled user', 'disabled', () => makeKey({}, new Date())],
  ];

  it.each(refused)('%s: %s, over every transport', async (_label, reason, make) => {
    const bearer = await make();
    expect(await logged(path, { as: { bearer } })).toMatchObject({ status: 401, reason });
    expect(await loggedQuery('{ viewer { id } }', { as: { bearer } })).toMatchObject({ status: 401, reason });
    expect(await refusedUpgrade(path.replace('compute/overview', 'notifications/ws'), { authorization: `Bearer ${bearer}` })).toMatchObject(
      {
        code: 'not_authenticated' satisfies FaultCode,
        reason,
      },
    );
    const id = randomUUID();
    const { socket, closed } = openSocket(app, '/graphql', { protocol: 'graphql-transport-ws', headers: { 'x-request-id': id } });
    socket.on('open', () => socket.send(JSON.stringify({ type: 'connection_init', payload: { authorization: `Bearer ${bearer}` } })));
    expect(await closed).toEqual({ code: 4403, reason: 'not_authenticated' });
    expect(await lineOf(id, 'connection_init refused')).toMatchObject({ code: 'not_authenticated', reason });
    // The client learns none of it, and no line has the credential.
    const { text } = await app.ask('GET', path, { as: { bearer } });
    expect(text).toContain('The credential is not valid.');
    expect(text).not.toContain(`"${reason}"`);
    if (bearer.length > 10) expect(app.logLines.join('')).not.toContain(bearer);
  });

  it('a request without one: missing', async () => {
    expect(await logged(path, { as: null })).toMatchObject({ status: 401, reason: 'missing' });
    expect(await logged('/v1/nothing', { as: null })).toMatchObject({ status: 401, reason: 'missing' });
    expect(await refusedUpgrade(`${app.projectPath}/notifications/ws`, {})).toMatchObject({ code: 'not_authenticated', reason: 'missing' });
    const id = randomUUID();
    const { socket, closed } = openSocket(app, '/graphql', { protocol: 'graphql-transport-ws', headers: { 'x-request-id': id } });
    socket.on('open', () => socket.send(JSON.stringify({ type: 'connection_init' })));
    expect((await closed).code).toBe(4401);
    expect(await lineOf(id, 'connection_init refused')).toMatchObject({ reason: 'missing' });
  });

  it('two of them, and another scheme: malformed', async () => {
    const token = app.demo.users.owner.token;
    const twice = ['Host', 'x', 'Authorization', `Bearer ${token}`, 'Authorization', `Bearer ${token}`];
    expect(await logged(path, { headers: twice })).toMatchObject({ status: 401, reason: 'malformed' });
    expect(await logged(path, { as: null, headers: { authorization: 'Basic YTpi' } })).toMatchObject({ status: 401, reason: 'malformed' });
  });

  it('no reason where the credential is valid', async () => {
    expect(await logged(path)).not.toHaveProperty('reason');
  });

  it('the reason is in no response, of v1 or GraphQL', async () => {
    const { json } = await app.graphql('{ viewer { id } }', {}, { as: { bearer: forge.signWith(other) } });
    expect(json).toEqual({ errors: [{ message: 'The credential is not valid.', extensions: { code: 'not_authenticated' } }] });
  });
});

describe('the log has the errors of a response', () => {
  const find = 'query ($project: ID!) { project(organizationId: $project, id: $project) { name } }';
  const ask = (query: string, variables: object = {}, sent: Sent = {}) => loggedQuery(query, sent, { variables });
  const counted = async (operation: string, code: string) => {
    const { text } = await app.ask('GET', '/metrics', { as: null });
    return Number(new RegExp(`^portico_errors_total\\{operation="${operation}",code="${code}"\\} (\\d+)$`, 'm').exec(text)?.[1] ?? 0);
  };

  it('by their codes for GraphQL, each once for any number of failed fields', async () => {
    const before = await counted('query project', 'not_found');
    const line = await ask(
      `query ($a: ID!) { first: project(organizationId: $a, id: $a) { name } second: project(organizationId: $a, id: $a) { name } }`,
      { a: randomUUID() },
    );
    expect(line).toMatchObject({ status: 200, operation: 'query project', error_codes: ['not_found'] });
    expect(line).not.toHaveProperty('code');
    expect(await counted('query project', 'not_found')).toBe(before + 1);
    expect(await ask('{ viewer { id } project(organizationId: 5, id: 5) { nothing } }')).toMatchObject({
      error_codes: ['invalid_request'],
    });
  });

  it('for documents that are rejected before and after parsing, over POST and GET', async () => {
    expect(await ask('{')).toMatchObject({ operation: 'graphql', error_codes: ['invalid_request'] });
    expect(await loggedQuery('', {}, { variables: 5 })).toMatchObject({ error_codes: ['invalid_request'] });
    const parameters = new URLSearchParams({ query: find, variables: JSON.stringify({ project: randomUUID() }) });
    expect(await logged(`/graphql?${parameters}`)).toMatchObject({ operation: 'query project', error_codes: ['not_found'] });
    const stream = { headers: { accept: 'text/event-stream' } };
    const subscription = 'subscription ($project: ID!) { notificationFeed(organizationId: $project, projectId: $project) { __typename } }';
    expect(await ask(subscription, { project: randomUUID() }, stream)).toMatchObject({ error_codes: ['not_found'] });
    const hash = { persistedQuery: { version: 1, sha256Hash: 'a'.repeat(64) } };
    expect(await logged('/graphql', { method: 'POST', body: { extensions: hash } })).toMatchObject({
      error_codes: ['PERSISTED_QUERY_NOT_SUPPORTED'],
    });
  });

  it('for the fields that a request without a credential does not get', async () => {
    const line = await ask(find, { project: randomUUID() }, { as: null });
    expect(line).toMatchObject({ error_codes: ['not_authenticated'], reason: 'missing' });
  });

  it('by its code for v1', async () => {
    const before = await counted('compute_overview', 'not_found');
    const line = await logged(path.replace(app.demo.project_id, randomUUID()));
    expect(line).toMatchObject({ status: 404, operation: 'compute_overview', code: 'not_found' });
    expect(line).not.toHaveProperty('error_codes');
    expect(await counted('compute_overview', 'not_found')).toBe(before + 1);
    const body = { target: 'nothing' };
    const invalid = await logged(`${app.projectPath}/websocket-tickets`, { method: 'POST', body });
    expect(invalid).toMatchObject({ status: 400, code: 'validation_failed' });
  });

  it('except for a response without errors', async () => {
    for (const line of [await logged(path), await ask('{ viewer { id } }')]) {
      expect(line.status).toBe(200);
      expect(line).not.toHaveProperty('code');
      expect(line).not.toHaveProperty('error_codes');
    }
  });

  it('for operations on sockets, which are counted', async () => {
    const headers = { authorization: `Bearer ${app.demo.users.owner.token}` };
    const { socket, until } = openSocket(app, '/graphql', { protocol: 'graphql-transport-ws', headers });
    const say = (message: object) => socket.send(JSON.stringify(message));
    socket.on('open', () => say({ type: 'connection_init' }));
    await until(({ type }) => type === 'connection_ack');
    const [found, unread] = [await counted('query project', 'not_found'), await counted('none', 'invalid_request')];
    say({ type: 'subscribe', id: '1', payload: { query: find, variables: { project: randomUUID() } } });
    await until(({ id, type }) => id === '1' && type === 'complete');
    say({ type: 'subscribe', id: '2', payload: { query: '{' } });
    await until(({ id, type }) => id === '2' && type === 'error');
    expect(await counted('query project', 'not_found')).toBe(found + 1);
    expect(await counted('none', 'invalid_request')).toBe(unread + 1);
    const subscription = 'subscription ($project: ID!) { notificationFeed(organizationId: $project, projectId: $project) { __typename } }';
    say({ type: 'subscribe', id: '3', payload: { query: subscription, variables: { project: randomUUID() } } });
    await until(({ id, type }) => id === '3' && (type === 'error' || type === 'complete'));
    expect(await counted('subscription notificationFeed', 'not_found')).toBeGreaterThan(0);
    socket.close();
  });
});

describe('the log has the path of a request', () => {
  it('by the template of its route, or by its kind where there is none', async () => {
    const template = '/v1/organizations/:organization_id/projects/:project_id/compute/overview';
    expect(await logged(`${path}?page=secret`, { as: null })).toMatchObject({ status: 401, operation: null, route: template });
    expect(await logged('/v1/no/such-secret')).toMatchObject({ status: 404, operation: null, route: '/v1/*' });
    expect(await logged('/such-secret?secret')).toMatchObject({ status: 404, operation: null, route: '*' });
    expect(await logged('/%ff-secret')).toMatchObject({ status: 404, operation: null, route: '*' });
    const graphql = await loggedQuery('{ viewer { id } }', { as: { bearer: 'secret' } });
    expect(graphql).toMatchObject({ status: 401, operation: null, route: '/graphql' });
    expect(app.logLines.join('')).not.toContain('secret');
  });

  it('only where there is no operation', async () => {
    expect(await logged(path)).not.toHaveProperty('route');
    expect(await logged(path.replace(app.demo.project_id, randomUUID()))).not.toHaveProperty('route');
  });
});

describe('the log has the user', () => {
  it('of a refused upgrade, as soon as the user is known', async () => {
    const { id, token } = app.demo.users.owner;
    const authorization = `Bearer ${token}`;
    const target = `${app.projectPath}/notifications/ws`;
    expect(await refusedUpgrade(target.replace(app.demo.project_id, randomUUID()), { authorization })).toMatchObject({
      code: 'not_found',
      user_id: id,
    });
    expect(await refusedUpgrade('/nothing', { authorization })).toMatchObject({ code: 'not_found', user_id: id });
    expect(await refusedUpgrade(target, {})).not.toHaveProperty('user_id');
  });

  it('of a socket with a ticket of another project, which is opened to be closed', async () => {
    const { ticket, path: own } = await takeTicket(app);
    const requestId = randomUUID();
    const other = own.replace(app.demo.project_id, randomUUID());
    const { closed } = openSocket(app, `${other}?ticket=${ticket}`, { headers: { 'x-request-id': requestId } });
    expect((await closed).reason).toBe('ticket_target_mismatch');
    expect(await lineOf(requestId, 'socket refused')).toMatchObject({ user_id: app.demo.users.owner.id });
    expect(app.logLines.join('')).not.toContain(ticket);
  });

  it('of a request beyond the budget of its user', async () => {
    const other = await startApp({ RATE_LIMIT_USER: '1' });
    try {
      const statuses = [await other.ask('GET', '/v1/nothing'), await other.ask('GET', '/v1/nothing')].map(({ status }) => status);
      expect(statuses).toEqual([404, 429]);
      await vi.waitFor(() => {
        const lines = other.logLines.map((line) => JSON.parse(line)).filter(({ status }) => status === 429);
        expect(lines).toMatchObject([{ code: 'rate_limited', user_id: other.demo.users.owner.id }]);
      }, 60_000);
    } finally {
      await other.close();
    }
  });
});

it('the response that opens a socket has the id of its lines, as any other', async () => {
  const headers = { authorization: `Bearer ${app.demo.users.owner.token}`, 'x-request-id': 'of-a-socket' };
  for (const target of ['/graphql', `${app.projectPath}/notifications/ws`]) {
    const { socket, closed } = openSocket(app, target, { headers });
    const [{ headers: received }] = (await once(socket, 'upgrade')) as [{ headers: Record<string, string> }];
    expect(received['x-request-id']).toBe('of-a-socket');
    socket.close();
    await closed;
  }
  expect(await lineOf('of-a-socket', 'socket opened')).toMatchObject({ user_id: app.demo.users.owner.id });
});

it('requests without a budget have 1,000 lines at once, and the next line has the number of omitted ones', async () => {
  // The clock stands still, at a time after all lines before: on a slow machine lines would be allowed again meanwhile.
  vi.useFakeTimers({ toFake: ['performance'] });
  vi.advanceTimersByTime(86_400_000);
  const from = app.logLines.length;
  const countPreflights = async () => (await app.app.metrics.requests.get()).values.find(({ labels }) => labels.status === 204)?.value ?? 0;
  const before = await countPreflights();
  const sendMany = () => Promise.all(Array.from({ length: 101 }, () => app.ask('OPTIONS', '/v1/organizations', { as: null })));
  for (let times = 0; times < 10; times += 1) await sendMany();
  await expect.poll(countPreflights).toBe(before + 1_010);
  const lines = app.logLines.slice(from).map((line) => JSON.parse(line) as Line);
  expect(lines.filter(({ msg, user_id }) => msg === 'request' && user_id === undefined)).toHaveLength(1_000);
  vi.advanceTimersByTime(50);
  expect(await logged('/v1/organizations', { as: null })).toMatchObject({ omitted: 10 });
  vi.useRealTimers();
});

it('refused upgrades have as few lines, also those that are refused by a close code', async () => {
  vi.useFakeTimers({ toFake: ['performance'] });
  vi.advanceTimersByTime(2 * 86_400_000);
  const from = app.logLines.length;
  const sendMany = (count: number) => Promise.all(Array.from({ length: count }, () => openSocket(app, '/graphql?ticket=unknown').closed));
  for (let times = 0; times < 10; times += 1) await sendMany(101);
  const refused = () =>
    app.logLines
      .slice(from)
      .map((line) => JSON.parse(line) as Line)
      .filter(({ msg }) => msg === 'socket refused');
  expect(refused()).toHaveLength(1_000);
  vi.advanceTimersByTime(50);
  await sendMany(1);
  expect(refused().at(-1)).toMatchObject({ omitted: 10 });
  vi.useRealTimers();
});
