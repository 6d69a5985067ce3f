import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, expect, it, vi } from 'vitest';
import { hashSecret } from '../../src/access/apikey.ts';
import { consumeTicket } from '../../src/tickets/service.ts';
import { isPostgres, startApp, type TestApp } from '../support/app.ts';
import { countCases } from '../support/cases.ts';
import { passSeconds } from '../support/clock.ts';
import { openSocket, publish, takeTicket } from '../support/feed.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startApp({ RATE_LIMIT_USER: '100000000', RATE_LIMIT_ANONYMOUS: '100000000', ALLOWED_ORIGINS: 'https://console.example' });
});
afterAll(() => app.close());
afterEach(() => void vi.useRealTimers());

const graphql = 'graphql-transport-ws';

/** Opens the socket of a ticket and tells how it went: its first frame, or how it was closed. */
async function redeem(path: string, ticket: string, protocol?: string) {
  const feed = openSocket(app, `${path}?ticket=${ticket}`, { protocol });
  if (protocol) feed.socket.on('open', () => feed.socket.send('{"type":"connection_init"}'));
  const outcome = await Promise.race([feed.until(() => true), feed.closed]);
  feed.socket.terminate();
  return outcome;
}

it('a ticket opens a plain socket with the feed', async () => {
  const { path, ticket } = await takeTicket(app);
  const feed = openSocket(app, `${path}?ticket=${ticket}&after=149`);
  const ready = await feed.until(({ type }) => type === 'ready');
  expect(feed.frames.map(({ type, sequence }) => [type, sequence])).toEqual([
    ['notification', 150],
    ['ready', 150],
  ]);
  expect(ready).toEqual({ type: 'ready', sequence: 150, read_through: 100, unread_count: 50 });
  const sequence = await publish(app, 'live');
  const { notification } = await feed.until((frame) => frame.sequence === sequence);
  expect(notification).toEqual({
    id: expect.any(String),
    sequence,
    kind: 'test.event',
    severity: 'info',
    title: 'live',
    body: '',
    resource_type: null,
    resource_id: null,
    data: {},
    created: expect.any(String),
    read: false,
  });
  feed.socket.terminate();
});

it('a ticket opens exactly one of 20 concurrent upgrades', { timeout: 240_000 }, async () => {
  // In the embedded database one attempt follows the other.
  const tickets = isPostgres ? countCases(1_000) : 5;
  const counts = { opened: 0, used: 0, other: 0 };
  const redeemAll = async () => {
    const { path, ticket } = await takeTicket(app);
    const outcomes = await Promise.all(Array.from({ length: 20 }, () => redeem(path, ticket)));
    const opened = outcomes.filter(({ type }) => type === 'ready').length;
    const used = outcomes.filter(({ code, reason }) => code === 4401 && reason === 'ticket_used').length;
    if (opened !== 1 || used !== 19) counts.other += 1;
    counts.opened += opened;
    counts.used += used;
  };
  let next = 0;
  const lane = async () => {
    while (next < tickets) {
      next += 1;
      await redeemAll();
    }
  };
  await Promise.all(Array.from({ length: 4 }, lane));
  expect(counts).toEqual({ opened: tickets, used: tickets * 19, other: 0 });
});

it('a ticket that is used or expired, or whose user is disabled, is not consumed by a concurrent attempt', async () => {
  const { database } = app.app;
  const take = async () => hashSecret((await takeTicket(app, 'viewer')).ticket);
  const [used, expired, disabled] = [await take(), await take(), await take()];
  const where = { id: app.demo.users.viewer.id };
  expect(await consumeTicket(database, used)).toMatchObject({ target: 'notifications', viewer: { userId: where.id } });
  await database.prisma.websocketTicket.updateMany({ where: { ticketHash: expired }, data: { expires: new Date() } });
  expect(await consumeTicket(database, used)).toBeNull();
  expect(await consumeTicket(database, expired)).toBeNull();
  await database.prisma.user.update({ where, data: { disabledAt: new Date() } });
  expect(await consumeTicket(database, disabled)).toBeNull();
  await database.prisma.user.update({ where, data: { disabledAt: null } });
  expect(await consumeTicket(database, disabled)).not.toBeNull();
});

it('a ticket is valid for 30 seconds', async () => {
  const { path, ticket } = await takeTicket(app);
  await app.app.database.prisma.$executeRaw`UPDATE websocket_tickets SET expires = expires - interval '30 seconds' WHERE used_at IS NULL`;
  for (let time = 0; time < 2; time += 1) expect(await redeem(path, ticket)).toEqual({ code: 4403, reason: 'ticket_expired' });
});

it('the expires_in of a ticket is not longer than its session', async () => {
  const token = await app.app.tokens.local?.sign(app.demo.users.owner.id, 10);
  const path = `${app.projectPath}/websocket-tickets`;
  const { json } = await app.ask('POST', path, { as: { bearer: token ?? '' }, body: { target: 'notifications' } });
  expect(json.expires_in).toBeGreaterThanOrEqual(1);
  expect(json.expires_in).toBeLessThanOrEqual(10);
});

it('a ticket ends with the session that requested it', async () => {
  const { path, ticket } = await takeTicket(app);
  await app.app.database.prisma
    .$executeRaw`UPDATE websocket_tickets SET session_expires = now() - interval '1 second' WHERE used_at IS NULL`;
  expect(await consumeTicket(app.app.database, hashSecret(ticket))).toBeNull();
  expect(await redeem(path, ticket)).toEqual({ code: 4403, reason: 'ticket_expired' });
});

// The embedded database has the clock of its process.
it.runIf(isPostgres)('a ticket is valid by the clock of the database, although a replica is ten minutes ahead', async () => {
  const early = await takeTicket(app);
  passSeconds(600);
  expect(await redeem(early.path, early.ticket)).toMatchObject({ type: 'ready' });
  const late = await takeTicket(app);
  vi.useRealTimers();
  await app.app.database.prisma.$executeRaw`UPDATE websocket_tickets SET expires = expires - interval '30 seconds' WHERE used_at IS NULL`;
  expect(await redeem(late.path, late.ticket)).toEqual({ code: 4403, reason: 'ticket_expired' });
});

it.each([undefined, graphql])('a bad ticket is rejected so that a browser sees it, with its subprotocol: %s', async (protocol) => {
  const { path, ticket } = await takeTicket(app);
  const elsewhere = path.replace(app.demo.project_id, app.demo.empty_project_id);
  const twice = await takeTicket(app);
  const console = await app.ask('POST', `${app.projectPath}/websocket-tickets`, {
    body: { target: 'console', instance_id: app.demo.instances.eligible },
  });
  expect(await redeem(path, 'no-such-ticket', protocol)).toEqual({ code: 4401, reason: 'ticket_unknown' });
  expect(await redeem(path, '', protocol)).toEqual({ code: 4401, reason: 'ticket_unknown' });
  expect(await redeem(elsewhere, ticket, protocol)).toEqual({ code: 4403, reason: 'ticket_target_mismatch' });
  expect(await redeem(path, ticket, protocol)).toEqual({ code: 4401, reason: 'ticket_used' });
  expect(await redeem(path, console.json.ticket, protocol)).toEqual({ code: 4403, reason: 'ticket_target_mismatch' });
  const third = await takeTicket(app);
  const otherOrganization = path.replace(app.demo.organization_id, randomUUID());
  expect(await redeem(otherOrganization, third.ticket, protocol)).toEqual({ code: 4403, reason: 'ticket_target_mismatch' });
  expect(await redeem(path, `${twice.ticket}&ticket=${twice.ticket}`, protocol)).toEqual({ code: 4401, reason: 'ticket_unknown' });
});

it.each(['x', '%ff', '{}', '0'.repeat(32)])(
  'a ticket is rejected on a path with the malformed id %s as on that of an absent project',
  async (malformed) => {
    const { organization_id, project_id, users } = app.demo;
    const { token } = users.owner;
    for (const own of [organization_id, project_id]) {
      const outcomesOf = async (id: string) => {
        const { path, ticket } = await takeTicket(app);
        const other = path.replace(own, id);
        const withHeader = openSocket(app, other, { headers: { authorization: `Bearer ${token}` } });
        const anonymous = openSocket(app, other);
        return [
          await redeem(other, 'no-such-ticket'),
          await redeem(other, ticket),
          await redeem(path, ticket),
          await redeem(path.replace(own, id).replace('/notifications/ws', '/nowhere'), ticket),
          await withHeader.closed,
          await anonymous.closed,
        ];
      };
      const outcomes = await outcomesOf(malformed);
      expect(outcomes.slice(0, 3)).toEqual([
        { code: 4401, reason: 'ticket_unknown' },
        { code: 4403, reason: 'ticket_target_mismatch' },
        { code: 4401, reason: 'ticket_used' },
      ]);
      expect(outcomes).toEqual(await outcomesOf(randomUUID()));
    }
  },
);

it('a ticket is rejected when its user has lost the project or is disabled', async () => {
  const { database } = app.app;
  const [member, viewer] = [await takeTicket(app, 'member'), await takeTicket(app, 'viewer')];
  const projectId_userId = { projectId: app.demo.project_id, userId: app.demo.users.member.id };
  await database.prisma.projectMember.delete({ where: { projectId_userId } });
  await database.prisma.user.update({ where: { id: app.demo.users.viewer.id }, data: { disabledAt: new Date() } });
  expect(await redeem(member.path, member.ticket)).toEqual({ code: 4403, reason: 'access_lost' });
  expect(await redeem(viewer.path, viewer.ticket)).toEqual({ code: 4401, reason: 'ticket_unknown' });
  await database.prisma.user.update({ where: { id: app.demo.users.viewer.id }, data: { disabledAt: null } });
  await database.prisma.projectMember.create({ data: { ...projectId_userId, role: 'member' } });
});

it('the text of a ticket is neither in the database nor in the log', async () => {
  const { path, ticket } = await takeTicket(app);
  await redeem(path, ticket);
  const rows = await app.app.database.prisma
    .$queryRaw`SELECT encode(ticket_hash, 'escape') AS hash, t::text AS row FROM websocket_tickets AS t`;
  expect(JSON.stringify(rows)).not.toContain(ticket);
  expect(app.logLines.join('')).not.toContain(ticket);
});

it('a socket closes with 4400 for a malformed cursor, and delivers a gap for one beyond the end', async () => {
  for (const after of ['x', '-1', '1.5', '', '1&after=2']) {
    const { path, ticket } = await takeTicket(app);
    expect(await redeem(path, `${ticket}&after=${after}`)).toEqual({ code: 4400, reason: 'invalid_after' });
  }
  const { path, ticket } = await takeTicket(app);
  const feed = openSocket(app, `${path}?ticket=${ticket}&after=5000`);
  const { sequence } = await feed.until(({ type }) => type === 'ready');
  expect(feed.frames[0]).toEqual({ type: 'gap', from: sequence + 1, to: 5000 });
  feed.socket.terminate();
});

it.each(['a ticket', 'a header'])('a socket of a feed can subscribe to it and renew its credential alone, with %s', async (by) => {
  const { path, ticket } = await takeTicket(app);
  const feed =
    by === 'a ticket'
      ? openSocket(app, `${path}?ticket=${ticket}`, { protocol: graphql })
      : openSocket(app, path, { protocol: graphql, headers: { authorization: `Bearer ${app.demo.users.owner.token}` } });
  const say = (message: unknown) => feed.socket.send(JSON.stringify(message));
  feed.socket.on('open', () => say({ type: 'connection_init' }));
  await feed.until(({ type }) => type === 'connection_ack');
  const run = async (query: string, variables = {}) => {
    const id = randomUUID();
    say({ id, type: 'subscribe', payload: { query, variables } });
    const response = await feed.until((frame) => frame.id === id);
    const errors = response.type === 'error' ? response.payload : response.payload.errors;
    return errors ? errors[0].extensions.code : response.payload;
  };
  const subscription = (organization: string, project: string) =>
    `subscription { notificationFeed(organizationId: "${organization}", projectId: "${project}") { __typename } }`;
  expect(await run('{ viewer { name } }')).toBe('permission_denied');
  expect(await run('mutation { revokeApiKey(input: { id: "x" }) { apiKey { id } } }')).toBe('permission_denied');
  expect(await run('query { ...Root } fragment Root on Query { viewer { name } }')).toBe('permission_denied');
  expect(await run('query { ... on Query { viewer { name } } }')).toBe('permission_denied');
  const token = await app.app.tokens.local?.sign(app.demo.users.owner.id, 7200);
  const renew = 'renewCredential(input: { token: $token }) { expires }';
  for (const query of [
    '{ __typename viewer { name } }',
    `mutation ($token: Text!) { ${renew} revokeApiKey(input: { id: "x" }) { apiKey { id } } }`,
  ])
    expect(await run(query, { token })).toBe('permission_denied');
  const { organization_id, project_id, empty_project_id } = app.demo;
  expect(await run(subscription(organization_id, empty_project_id))).toBe('not_found');
  const ready = { data: { notificationFeed: { __typename: 'FeedReady' } } };
  const plain = subscription(organization_id, project_id);
  const inFragment = plain.replace('{', '{ ...Feed } fragment Feed on Subscription {');
  for (const text of [plain, plain.replace('{', '{ ... on Subscription {').concat('}'), inFragment]) expect(await run(text)).toEqual(ready);
  const renewed = await run(`mutation ($token: Text!) { ${renew} }`, { token });
  expect(Date.parse(renewed.data.renewCredential.expires)).toBeGreaterThan(Date.now() + 7_000_000);
  feed.socket.terminate();
});

it('a ticket is not needed with a header, or with a cookie from an allowed origin', async () => {
  const { token } = app.demo.users.viewer;
  const path = `${app.projectPath}/notifications/ws`;
  const open = async (headers: Record<string, string>) => {
    const feed = openSocket(app, path, { headers });
    const status = new Promise((resolve) => feed.socket.on('unexpected-response', (_request, response) => resolve(response.statusCode)));
    const outcome = await Promise.race([feed.until(() => true).catch(() => status), status]);
    feed.socket.terminate();
    return outcome;
  };
  const cookie = `other=1; session=${token}`;
  expect(await open({ authorization: `Bearer ${token}` })).toMatchObject({ type: 'ready' });
  expect(await open({ authorization: `Bearer ${app.demo.users.viewer.api_key}` })).toMatchObject({ type: 'ready' });
  expect(await open({ cookie, origin: 'https://console.example' })).toMatchObject({ type: 'ready' });
  expect(await open({ cookie, origin: app.baseUrl })).toMatchObject({ type: 'ready' });
  expect(await open({ cookie })).toBe(401);
  expect(await open({ cookie, origin: 'https://evil.example' })).toBe(403);
  expect(await open({ authorization: `Bearer ${token}`, origin: 'https://evil.example' })).toBe(403);
  expect(await open({ authorization: 'Bearer rubbish' })).toBe(401);
  expect(await open({ authorization: `Bearer ${app.demo.users.outsider.token}` })).toBe(404);
  expect(await open({})).toBe(401);
});

it('a ticket is not consumed while the budget of its user is spent', async () => {
  const limited = await startApp({ RATE_LIMIT_USER: '1', REDIS_URL: '' });
  try {
    const { path, ticket } = await takeTicket(limited);
    expect(await openSocket(limited, `${path}?ticket=${ticket}`, {}).closed).toEqual({ code: 1013, reason: 'rate_limited' });
    expect(await consumeTicket(limited.app.database, hashSecret(ticket))).toMatchObject({ target: 'notifications' });
  } finally {
    await limited.close();
  }
});
