import { createHash } from 'node:crypto';
import pg from 'pg';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { isPostgres, startApp, type TestApp } from '../support/app.ts';
import { countCases } from '../support/cases.ts';
import { passSeconds } from '../support/clock.ts';
import { type FeedSocket, openSocket } from '../support/feed.ts';
import { openRawSocket, type RawSocket } from '../support/raw.ts';

const GRAPHQL = 'graphql-transport-ws';
/** ws waits for half a minute unless it is told otherwise. */
const DESTROYED_WITHIN_MS = 10_000;

let app: TestApp;
beforeAll(async () => {
  app = await startApp({ RATE_LIMIT_USER: '100000000', LOG_LEVEL: 'error' });
});
afterAll(() => app.close());
afterEach(() => void vi.useRealTimers());

const publishing = (title: string) => ({
  query: `mutation { publishNotification(input: { organizationId: "${app.demo.organization_id}", projectId: "${app.demo.project_id}",
    kind: "test.closing", severity: info, title: "${title}" }) { notification { sequence } } }`,
});
const subscription = () => ({
  query: `subscription { notificationFeed(organizationId: "${app.demo.organization_id}", projectId: "${app.demo.project_id}") { __typename } }`,
});
const count = (title: string) => app.app.database.prisma.notification.count({ where: { title } });

/** A GraphQL socket that has been acknowledged, and never answers a close frame. */
async function open(credential: string): Promise<RawSocket> {
  const socket = await openRawSocket(app.baseUrl, '/graphql', { protocol: GRAPHQL, headers: { Authorization: `Bearer ${credential}` } });
  socket.say({ type: 'connection_init' });
  await socket.until(({ type }) => type === 'connection_ack');
  return socket;
}

async function makeKey(name: string): Promise<string> {
  const response = await app.graphql('mutation ($name: Name!) { createApiKey(input: { name: $name }) { key } }', { name });
  return response.json.data.createApiKey.key;
}

const revoke = (key: string) =>
  app.app.database.prisma.apiKey.updateMany({
    where: { secretHash: Uint8Array.from(createHash('sha256').update(key).digest()) },
    data: { revoked: new Date() },
  });

const signFor = async (user: 'owner' | 'admin' | 'member', seconds: number) =>
  (await app.app.tokens.local?.sign(app.demo.users[user].id, seconds)) ?? '';

const disable = (disabledAt: Date | null) =>
  app.app.database.prisma.user.update({ where: { id: app.demo.users.admin.id }, data: { disabledAt } });

const sleep = (milliseconds: number) => new Promise((resolve) => setTimeout(resolve, milliseconds));

/** Ends the connection a moment after the refusal, with nothing done of what was sent after it. */
async function expectDeaf(socket: RawSocket, title: string, refused: { code: number; reason: string }): Promise<void> {
  expect(await socket.refused, title).toEqual(refused);
  const began = performance.now();
  const before = socket.messages.length;
  for (let index = 0; index < 12; index += 1) socket.say({ id: `late ${index}`, type: 'subscribe', payload: publishing(title) });
  await socket.gone;
  expect(performance.now() - began).toBeLessThan(DESTROYED_WITHIN_MS);
  expect(socket.messages.length, title).toBe(before);
  expect(await count(title), title).toBe(0);
}

it('a closed socket runs no further message, and its connection is destroyed', async () => {
  const path = `${app.projectPath}/notifications/ws`;
  const [key, plainKey] = [await makeKey('to be revoked'), await makeKey('for a plain feed')];
  const plain = await openRawSocket(app.baseUrl, path, { headers: { Authorization: `Bearer ${plainKey}` } });
  await plain.until(({ type }) => type === 'ready');
  const malformed = await open(await signFor('owner', 3600));
  const accessLost = { code: 4403, reason: 'access_lost' };
  interface Case {
    readonly what: string;
    /** Null for a socket that was opened only to be told why there is nothing for it. */
    readonly user: 'owner' | 'admin' | 'member' | null;
    readonly socket: RawSocket;
    readonly refused: { readonly code: number; readonly reason: string };
    readonly lose?: () => unknown;
  }
  const cases: Case[] = [
    { what: 'a key that is revoked', user: 'owner', socket: await open(key), refused: accessLost, lose: () => revoke(key) },
    { what: 'a plain feed', user: 'owner', socket: plain, refused: accessLost, lose: () => revoke(plainKey) },
    {
      what: 'a user who is disabled',
      user: 'admin',
      socket: await open(await signFor('admin', 3600)),
      refused: accessLost,
      lose: () => disable(new Date()),
    },
    {
      what: 'one that sends what is not a message',
      user: 'owner',
      socket: malformed,
      refused: { code: 4400, reason: 'invalid_message' },
      lose: () => malformed.say({ type: 'start' }),
    },
    {
      what: 'a session that expires',
      user: 'member',
      socket: await open(await signFor('member', 60)),
      refused: { code: 4403, reason: 'credential_expired' },
      lose: () => passSeconds(61),
    },
    {
      what: 'a ticket that is unknown',
      user: null,
      socket: await openRawSocket(app.baseUrl, `${path}?ticket=none`),
      refused: { code: 4401, reason: 'ticket_unknown' },
    },
  ];
  try {
    const ends = Promise.all(cases.map(({ what, socket, refused }) => expectDeaf(socket, `after ${what}`, refused)));
    for (const { lose } of cases) await lose?.();
    await ends;
  } finally {
    await disable(null);
    for (const { socket } of cases) socket.destroy();
  }
  await expect.poll(() => app.app.count()).toMatchObject({ sockets: 0, followers: 0, leases: 0 });
  const closed = app.logLines.map((line) => JSON.parse(line)).filter(({ msg }) => msg === 'socket closed');
  const told = closed.map(({ code, reason, user_id }) => `${code} ${reason} ${user_id}`);
  const expected = cases.flatMap(({ user, refused }) => (user ? [`${refused.code} ${refused.reason} ${app.demo.users[user].id}`] : []));
  expect(told.sort()).toEqual(expected.sort());
});

describe('when a socket closes', () => {
  it('its feeds end at once, although the client stays connected', async () => {
    const socket = await open(await signFor('owner', 3600));
    socket.say({ id: 'feed', type: 'subscribe', payload: subscription() });
    await socket.until(({ id }) => id === 'feed');
    expect(app.app.count()).toMatchObject({ followers: 1 });
    socket.say({ type: 'start' });
    await socket.refused;
    expect(app.app.count()).toMatchObject({ followers: 0, leases: 0 });
    socket.destroy();
  });

  it('a waiting mutation does not begin', async () => {
    const socket = await open(await signFor('owner', 3600));
    // One packet: the socket is closed while the credential of the first is being looked up.
    socket.say({ id: 'waiting', type: 'subscribe', payload: publishing('still waiting') }, { type: 'start' });
    expect(await socket.refused).toMatchObject({ code: 4400 });
    await socket.gone;
    expect(await count('still waiting')).toBe(0);
  });

  // The embedded database answers within the process, before anything more is read from a socket.
  it.runIf(isPostgres)('the remaining mutations of a document do not begin', async () => {
    const socket = await open(await signFor('owner', 3600));
    const titles = Array.from({ length: 20 }, (_, index) => `one of several ${index}`);
    const fields = titles.map((title, index) =>
      publishing(title)
        .query.replace(/^mutation \{ /, `m${index}: `)
        .replace(/ \}$/, ''),
    );
    // The first mutation waits for the row of the project's log until the socket has been closed.
    const other = new pg.Client({ connectionString: app.databaseUrl ?? '' });
    await other.connect();
    try {
      await other.query('BEGIN');
      await other.query('SELECT FROM notification_logs WHERE project_id = $1 FOR UPDATE', [app.demo.project_id]);
      const begins = new Promise<void>((resolve) => app.listen((sql) => sql.includes('INSERT INTO notifications') && resolve()));
      socket.say({ id: 'several', type: 'subscribe', payload: { query: `mutation { ${fields.join(' ')} }` } });
      await begins;
      socket.say({ type: 'start' });
      await socket.refused;
      await other.query('COMMIT');
    } finally {
      await other.end();
    }
    await socket.gone;
    await sleep(200);
    expect(await app.app.database.prisma.notification.count({ where: { title: { in: titles } } })).toBeLessThanOrEqual(1);
  });
});

describe('an operation on an open socket', () => {
  const attempts = countCases(80);

  it('is refused as soon as its API key is revoked, before the next poll of the leases', async () => {
    for (let attempt = 0; attempt < attempts; attempt += 1) {
      const key = await makeKey(`attempt ${attempt}`);
      const socket = await open(key);
      socket.say({ id: 'before', type: 'subscribe', payload: publishing('before it is revoked') });
      await socket.until(({ id, type }) => id === 'before' && type === 'next');
      await revoke(key);
      socket.say({ id: 'after', type: 'subscribe', payload: publishing('after it is revoked') });
      expect(await socket.refused).toEqual({ code: 4403, reason: 'access_lost' });
      socket.destroy();
    }
    expect([await count('before it is revoked'), await count('after it is revoked')]).toEqual([attempts, 0]);
  });

  it('is refused as soon as its user is disabled', async () => {
    for (let attempt = 0; attempt < attempts; attempt += 1) {
      const socket = await open(await signFor('admin', 3600));
      try {
        await disable(new Date());
        socket.say({ id: 'after', type: 'subscribe', payload: publishing('after the user is disabled') });
        expect(await socket.refused).toEqual({ code: 4403, reason: 'access_lost' });
      } finally {
        await disable(null);
      }
      socket.destroy();
    }
    expect(await count('after the user is disabled')).toBe(0);
  });

  it('is refused after its session has expired, and not after a renewal', async () => {
    const expiring = await signFor('admin', 60);
    const sockets = await Promise.all([open(expiring), open(expiring)]);
    const [late, renewed] = sockets as [RawSocket, RawSocket];
    const token = await signFor('admin', 3600);
    const query = 'mutation ($token: Text!) { renewCredential(input: { token: $token }) { expires } }';
    renewed.say({ id: 'renew', type: 'subscribe', payload: { query, variables: { token } } });
    await renewed.until(({ id }) => id === 'renew');
    passSeconds(61);
    late.say({ id: 'late', type: 'subscribe', payload: publishing('after it has expired') });
    renewed.say({ id: 'good', type: 'subscribe', payload: publishing('after it was renewed') });
    expect(await late.refused).toEqual({ code: 4403, reason: 'credential_expired' });
    await renewed.until(({ id, payload }) => id === 'good' && payload.data.publishNotification.notification.sequence > 0);
    expect([await count('after it has expired'), await count('after it was renewed')]).toEqual([0, 1]);
    for (const socket of sockets) socket.destroy();
  });

  it('shares the statement that checks its credential with concurrent operations', async () => {
    const token = await signFor('owner', 3600);
    const sockets = await Promise.all(Array.from({ length: 20 }, () => open(token)));
    app.statements.length = 0;
    for (const socket of sockets) socket.say({ id: '1', type: 'subscribe', payload: { query: '{ viewer { email } }' } });
    await Promise.all(sockets.map((socket) => socket.until(({ type }) => type === 'complete')));
    const lookups = app.statements.filter((sql) => sql.includes('disabled_at AS "disabledAt" FROM users'));
    expect(lookups.length).toBeGreaterThan(0);
    expect(lookups.length).toBeLessThan(sockets.length);
    for (const socket of sockets) socket.destroy();
  });
});

it('a socket with sixty concurrent subscriptions begins the first fifty, and refuses the others', async () => {
  const socket = await open(await signFor('owner', 3600));
  const ids = Array.from({ length: 60 }, (_, index) => `s${index}`);
  socket.say(...ids.map((id) => ({ id, type: 'subscribe', payload: subscription() })));
  for (const id of ids) await socket.until((message) => message.id === id);
  const types = ids.map((id) => socket.messages.find((message) => message.id === id)?.type);
  expect(types).toEqual(ids.map((_id, index) => (index < 50 ? 'next' : 'error')));
  socket.destroy();
});

describe('the parts of a message that the server echoes are bounded', () => {
  it.each<[string, (size: number) => unknown]>([
    ['the id of an operation', (size) => ({ id: 'i'.repeat(size), type: 'subscribe', payload: { query: '{ __typename }' } })],
    ['the id that is completed', (size) => ({ id: 'i'.repeat(size), type: 'complete' })],
  ])('%s: 255 characters', async (_what, messageOf) => {
    const socket = await open(await signFor('owner', 3600));
    socket.say(messageOf(255), { type: 'ping' });
    await socket.until(({ type }) => type === 'pong');
    socket.say(messageOf(256));
    expect(await socket.refused).toEqual({ code: 4400, reason: 'invalid_message' });
    socket.destroy();
  });

  it('the payload of a ping: a thousand characters', async () => {
    const socket = await open(await signFor('owner', 3600));
    const payload = { note: 'n'.repeat(900) };
    socket.say({ type: 'ping', payload });
    await socket.until(({ type }) => type === 'pong');
    expect(socket.messages.at(-1)).toEqual({ type: 'pong', payload });
    socket.say({ type: 'ping', payload: { note: 'n'.repeat(2_000) } });
    expect(await socket.refused).toEqual({ code: 4400, reason: 'invalid_message' });
    socket.destroy();
  });
});

describe('the sockets of a user', () => {
  let small: TestApp;
  let path: string;
  beforeAll(async () => {
    small = await startApp({ RATE_LIMIT_USER: '100000000', SOCKETS_PER_USER: '3', LOG_LEVEL: 'error' });
    path = `${small.projectPath}/notifications/ws`;
  });
  afterAll(() => small.close());

  const bearer = (user: 'owner' | 'admin' | 'member' | 'viewer') => ({ authorization: `Bearer ${small.demo.users[user].token}` });

  it('are bounded: one more is refused until one closes', async () => {
    // All at once: the last of them must not slip through while the others are looked up.
    const opened = Array.from({ length: 8 }, () => openSocket(small, path, { headers: bearer('owner') }));
    const outcomes = await Promise.all(
      opened.map((feed) =>
        feed
          .until(({ type }) => type === 'ready')
          .then(
            () => feed,
            () => null,
          ),
      ),
    );
    const feeds = outcomes.filter((feed) => feed !== null);
    expect(feeds.length).toBe(3);

    const upgrade = { ...bearer('owner'), connection: 'Upgrade', upgrade: 'websocket', 'sec-websocket-version': '13' };
    const response = await small.ask('GET', path, { as: null, headers: { ...upgrade, 'sec-websocket-key': 'AAAAAAAAAAAAAAAAAAAAAA==' } });
    expect(response.status).toBe(409);
    expect(response.json).toMatchObject({ code: 'conflict', context: { quota: 'sockets_per_user', limit: 3 } });

    const ticket = await small.ask('POST', `${small.projectPath}/websocket-tickets`, { body: { target: 'notifications' } });
    const withTicket = openSocket(small, `${ticket.json.path}?ticket=${ticket.json.ticket}`);
    expect(await withTicket.closed).toEqual({ code: 1013, reason: 'too_many_sockets' });

    const late = openSocket(small, '/graphql', { protocol: GRAPHQL });
    late.socket.on('open', () =>
      late.socket.send(JSON.stringify({ type: 'connection_init', payload: { authorization: bearer('owner').authorization } })),
    );
    expect(await late.closed).toEqual({ code: 1013, reason: 'too_many_sockets' });

    const other = openSocket(small, path, { headers: bearer('viewer') });
    await other.until(({ type }) => type === 'ready');

    feeds[0]?.socket.close();
    await feeds[0]?.closed;
    await expect.poll(() => small.app.count().sockets).toBe(3);
    const again = openSocket(small, path, { headers: bearer('owner') });
    await again.until(({ type }) => type === 'ready');
  });

  it('are counted with their event streams', async () => {
    const stream = async (user: 'admin' | 'member') => {
      const abort = new AbortController();
      const headers = { ...bearer(user), 'content-type': 'application/json', accept: 'text/event-stream' };
      const response = await fetch(`${small.baseUrl}/graphql`, {
        method: 'POST',
        headers,
        body: JSON.stringify(subscription()),
        signal: abort.signal,
      });
      return { response, end: () => abort.abort() };
    };
    const open = () => openSocket(small, path, { headers: bearer('admin') });
    const isReady = (socket: FeedSocket) =>
      socket
        .until(({ type }) => type === 'ready')
        .then(
          () => true,
          () => false,
        );
    const first = await stream('admin');
    expect(await Promise.all([isReady(open()), isReady(open())])).toEqual([true, true]);
    const refused = await stream('admin');
    expect([first.response.status, refused.response.status]).toEqual([200, 409]);
    const { errors } = (await refused.response.json()) as { errors: unknown[] };
    expect(errors).toMatchObject([{ extensions: { code: 'conflict', context: { quota: 'sockets_per_user', limit: 3 } } }]);
    expect((await small.graphql('{ viewer { id } }', {}, { as: 'admin' })).status).toBe(200);
    const other = await stream('member');
    expect(other.response.status).toBe(200);

    first.end();
    await expect.poll(() => isReady(open())).toBe(true);
    expect((await stream('admin')).response.status).toBe(409);
    other.end();
  });
});
