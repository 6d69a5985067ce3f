import { afterAll, afterEach, beforeAll, expect, it, vi } from 'vitest';
import { isPostgres, startApp, type TestApp } from '../support/app.ts';
import { passSeconds } from '../support/clock.ts';
import { type Guest, openConsoleSocket, openGuest, setEndpoint, takeConsoleTicket } from '../support/console.ts';

let app: TestApp;
let guest: Guest;
let instance: string;
beforeAll(async () => {
  app = await startApp({ RATE_LIMIT_USER: '100000000', RATE_LIMIT_ANONYMOUS: '100000000', ALLOWED_ORIGINS: 'https://console.example' });
  instance = app.demo.instances.eligible;
  guest = await openGuest((line) => line.write('hello'));
  await setEndpoint(app, instance, { kind: 'vnc', port: guest.port });
});
afterAll(async () => {
  await app.close();
  await guest.close();
});
afterEach(() => void vi.useRealTimers());

/** Opens the socket of a ticket and tells how it went: open, with what it was greeted, or how it was closed. */
async function redeem(path: string, ticket: string, protocols: string[] = []) {
  const console = openConsoleSocket(app.baseUrl, `${path}?ticket=${ticket}`, { protocols });
  const outcome = await Promise.race([
    console.until('hello').then(
      () => 'open',
      () => console.closed,
    ),
    console.closed,
  ]);
  console.socket.terminate();
  return outcome;
}

it('a ticket opens exactly one of 20 concurrent upgrades', { timeout: 240_000 }, async () => {
  const rounds = isPostgres ? 100 : 5;
  for (let round = 0; round < rounds; round += 1) {
    const { path, ticket } = await takeConsoleTicket(app, instance);
    const outcomes = await Promise.all(Array.from({ length: 20 }, () => redeem(path, ticket)));
    expect(outcomes.filter((outcome) => outcome === 'open')).toHaveLength(1);
    expect(
      outcomes.filter((outcome) => typeof outcome === 'object' && outcome.code === 4401 && outcome.reason === 'ticket_used'),
    ).toHaveLength(19);
  }
});

it('a ticket is valid for 30 seconds', async () => {
  const { path, ticket } = await takeConsoleTicket(app, instance);
  await app.app.database.prisma.$executeRaw`UPDATE websocket_tickets SET expires = expires - interval '30 seconds' WHERE used_at IS NULL`;
  for (let time = 0; time < 2; time += 1) expect(await redeem(path, ticket)).toEqual({ code: 4403, reason: 'ticket_expired' });
});

// The embedded database has the clock of its process.
it.runIf(isPostgres)('a ticket is valid by the clock of the database, although a replica is ten minutes ahead', async () => {
  const early = await takeConsoleTicket(app, instance);
  passSeconds(600);
  expect(await redeem(early.path, early.ticket)).toBe('open');
  const late = await takeConsoleTicket(app, instance);
  vi.useRealTimers();
  await app.app.database.prisma.$executeRaw`UPDATE websocket_tickets SET expires = expires - interval '30 seconds' WHERE used_at IS NULL`;
  expect(await redeem(late.path, late.ticket)).toEqual({ code: 4403, reason: 'ticket_expired' });
});

it.each([[[]], [['binary']]])('a bad ticket is rejected so that a browser sees it, with its subprotocols: %j', async (protocols) => {
  const mismatch = { code: 4403, reason: 'ticket_target_mismatch' };
  const { path, ticket } = await takeConsoleTicket(app, instance);
  expect(await redeem(path, 'no-such-ticket', protocols)).toEqual({ code: 4401, reason: 'ticket_unknown' });
  expect(await redeem(path, '', protocols)).toEqual({ code: 4401, reason: 'ticket_unknown' });
  expect(await redeem(path, `${ticket}&ticket=${ticket}`, protocols)).toEqual({ code: 4401, reason: 'ticket_unknown' });
  expect(await redeem(path.replace(app.demo.project_id, app.demo.empty_project_id), ticket, protocols)).toEqual(mismatch);
  expect(await redeem(path, ticket, protocols)).toEqual({ code: 4401, reason: 'ticket_used' });
  const elsewhere = await takeConsoleTicket(app, instance);
  expect(await redeem(path.replace(instance, app.demo.instances.console), elsewhere.ticket, protocols)).toEqual(mismatch);
  const toFeed = await takeConsoleTicket(app, instance);
  expect(await redeem(`${app.projectPath}/notifications/ws`, toFeed.ticket, protocols)).toEqual(mismatch);
  const toGraphql = await takeConsoleTicket(app, instance);
  expect(await redeem('/graphql', toGraphql.ticket, protocols)).toEqual(mismatch);
  const notification = await app.ask('POST', `${app.projectPath}/websocket-tickets`, { as: 'member', body: { target: 'notifications' } });
  expect(await redeem(path, notification.json.ticket, protocols)).toEqual(mismatch);
});

it('a ticket is rejected when its user has lost the project or the role, or is disabled', async () => {
  const { database } = app.app;
  const projectId_userId = { projectId: app.demo.project_id, userId: app.demo.users.member.id };
  const demoted = await takeConsoleTicket(app, instance);
  await database.prisma.projectMember.update({ where: { projectId_userId }, data: { role: 'viewer' } });
  expect(await redeem(demoted.path, demoted.ticket)).toEqual({ code: 4403, reason: 'access_lost' });
  await database.prisma.projectMember.update({ where: { projectId_userId }, data: { role: 'member' } });
  const [member, admin] = [await takeConsoleTicket(app, instance), await takeConsoleTicket(app, instance, { as: 'admin' })];
  await database.prisma.projectMember.delete({ where: { projectId_userId } });
  await database.prisma.user.update({ where: { id: app.demo.users.admin.id }, data: { disabledAt: new Date() } });
  expect(await redeem(member.path, member.ticket)).toEqual({ code: 4403, reason: 'access_lost' });
  expect(await redeem(admin.path, admin.ticket)).toEqual({ code: 4401, reason: 'ticket_unknown' });
  await database.prisma.user.update({ where: { id: app.demo.users.admin.id }, data: { disabledAt: null } });
  await database.prisma.projectMember.create({ data: { ...projectId_userId, role: 'member' } });
});

it('the text of a ticket is neither in the database nor in the log', async () => {
  const { path, ticket } = await takeConsoleTicket(app, instance);
  expect(await redeem(path, ticket)).toBe('open');
  const rows = await app.app.database.prisma
    .$queryRaw`SELECT encode(ticket_hash, 'escape') AS hash, t::text AS row FROM websocket_tickets AS t`;
  expect(JSON.stringify(rows)).not.toContain(ticket);
  expect(app.logLines.join('')).not.toContain(ticket);
});

it('a ticket of a console does not open a GraphQL socket', async () => {
  const { path, ticket } = await takeConsoleTicket(app, instance);
  const outcome = await redeem(path, ticket, ['graphql-transport-ws']);
  expect(outcome).toEqual({ code: 4406, reason: 'subprotocol_not_acceptable' });
});

it('a ticket is not needed with a header, or with a cookie from an allowed origin, by a user with the role', async () => {
  const { token } = app.demo.users.member;
  const path = `${app.projectPath}/compute/instances/${instance}/console/ws`;
  const open = async (headers: Record<string, string>, at = path) => {
    const console = openConsoleSocket(app.baseUrl, at, { headers });
    const refused = console.refused.then(({ status, body }) => [status, JSON.parse(body).code]);
    const outcome = await Promise.race([
      console.until('hello').then(
        () => 'open',
        () => refused,
      ),
      refused,
    ]);
    console.socket.terminate();
    return outcome;
  };
  const bearer = (credential?: string) => ({ authorization: `Bearer ${credential}` });
  const cookie = `other=1; session=${token}`;
  expect(await open(bearer(token))).toBe('open');
  expect(await open(bearer(app.demo.users.member.api_key))).toBe('open');
  expect(await open({ cookie, origin: 'https://console.example' })).toBe('open');
  expect(await open({ cookie, origin: app.baseUrl })).toBe('open');
  expect(await open({ cookie })).toEqual([401, 'not_authenticated']);
  expect(await open({ cookie, origin: 'https://evil.example' })).toEqual([403, 'permission_denied']);
  expect(await open({ ...bearer(token), origin: 'https://evil.example' })).toEqual([403, 'permission_denied']);
  expect(await open(bearer('rubbish'))).toEqual([401, 'not_authenticated']);
  expect(await open({})).toEqual([401, 'not_authenticated']);
  expect(await open({ 'sec-websocket-protocol': 'graphql-transport-ws' })).toEqual([401, 'not_authenticated']);
  expect(await open(bearer(app.demo.users.viewer.token))).toEqual([403, 'permission_denied']);
  const absent = [404, 'not_found'];
  expect(await open(bearer(app.demo.users.outsider.token))).toEqual(absent);
  const at = (organization: string, project: string, of: string) =>
    `/v1/organizations/${organization}/projects/${project}/compute/instances/${of}/console/ws`;
  const { organization_id, project_id, empty_project_id, foreign } = app.demo;
  expect(await open(bearer(token), at(organization_id, project_id, foreign.instance_id))).toEqual(absent);
  expect(await open(bearer(token), at(foreign.organization_id, foreign.project_id, foreign.instance_id))).toEqual(absent);
  expect(await open(bearer(app.demo.users.owner.token), at(organization_id, empty_project_id, instance))).toEqual(absent);
  expect(await open(bearer(token), at(organization_id, project_id, 'web-01'))).toEqual(absent);
  expect(await open(bearer(app.demo.users.viewer.token), at(organization_id, project_id, foreign.instance_id))).toEqual(absent);
});
