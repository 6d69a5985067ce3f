import { createHash } from 'node:crypto';
import { type AddressInfo, createServer } from 'node:net';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { isPostgres, startApp, type TestApp } from '../support/app.ts';
import { passSeconds } from '../support/clock.ts';
import {
  type ConsoleSocket,
  type Guest,
  openConsole,
  openConsoleSocket,
  openGuest,
  setEndpoint,
  takeConsoleTicket,
} from '../support/console.ts';
import { openPlainFeed } from '../support/feed.ts';

/** What takes two seconds where nothing else runs. */
const SOON_MS = 30_000;

let app: TestApp;
let guest: Guest;
let instance: string;
let path: string;
beforeAll(async () => {
  app = await startApp({ RATE_LIMIT_USER: '100000000' });
});
afterAll(() => app.close());
beforeEach(async () => {
  guest = await openGuest();
  instance = await addInstance();
  path = `${app.projectPath}/compute/instances/${instance}/console/ws`;
  await setEndpoint(app, instance, { port: guest.port });
});
afterEach(async () => {
  vi.useRealTimers();
  await guest.close();
});

/** An instance of the main project, so that what is done to it is seen by one test alone. */
async function addInstance(): Promise<string> {
  const size = { vcpu: 1, ramMb: 1024, storageGb: 10 };
  const data = {
    projectId: app.demo.project_id,
    name: 'of a test',
    status: 'active' as const,
    plan: 'vps-s',
    region: 'eu-test-1',
    ...size,
  };
  return (await app.app.database.prisma.instance.create({ data })).id;
}

async function readEnd(sessionId: string): Promise<string | null> {
  const row = await app.app.database.prisma.consoleSession.findUnique({ where: { id: sessionId } });
  return row?.endReason ?? null;
}

const byHeader = (token: string) => openConsoleSocket(app.baseUrl, path, { headers: { authorization: `Bearer ${token}` } });

/** How a console ended, and within how many milliseconds of what was done. */
async function endBy(console: ConsoleSocket, act: () => Promise<unknown>) {
  await console.opened;
  await guest.called();
  const began = Date.now();
  await act();
  const closed = await console.closed;
  const within = Date.now() - began;
  await expect.poll(() => guest.lines.size).toBe(0);
  await expect.poll(() => readEnd(console.sessionId())).not.toBeNull();
  return { ...closed, end: await readEnd(console.sessionId()), within };
}

describe('a lost access ends a console soon', () => {
  const membership = () => ({ projectId: app.demo.project_id, userId: app.demo.users.member.id });
  const lost = { code: 4403, reason: 'access_lost', end: 'access_lost' };

  it('of a member who is removed from the project, or made a viewer', async () => {
    const projectId_userId = membership();
    const console = await openConsole(app, instance);
    // A viewer may follow the feed, so this socket stays open.
    const feed = openPlainFeed(app, { as: 'member' });
    const demoted = await endBy(console, async () => {
      await feed.until(({ type }) => type === 'ready');
      await app.app.database.prisma.projectMember.update({ where: { projectId_userId }, data: { role: 'viewer' } });
    });
    expect(demoted).toMatchObject(lost);
    expect(feed.socket.readyState).toBe(feed.socket.OPEN);
    feed.socket.terminate();
    await app.app.database.prisma.projectMember.update({ where: { projectId_userId }, data: { role: 'member' } });
    const removed = await endBy(await openConsole(app, instance), () =>
      app.app.database.prisma.projectMember.delete({ where: { projectId_userId } }),
    );
    expect(removed).toMatchObject(lost);
    await app.app.database.prisma.projectMember.create({ data: { ...projectId_userId, role: 'member' } });
    expect(Math.max(demoted.within, removed.within)).toBeLessThan(SOON_MS);
  });

  it('of a user who is disabled', async () => {
    const where = { id: app.demo.users.admin.id };
    const ended = await endBy(await openConsole(app, instance, { as: 'admin' }), () =>
      app.app.database.prisma.user.update({ where, data: { disabledAt: new Date() } }),
    );
    expect(ended).toMatchObject(lost);
    expect(ended.within).toBeLessThan(SOON_MS);
    await app.app.database.prisma.user.update({ where, data: { disabledAt: null } });
  });

  it('of a key that is revoked', async () => {
    const secretHash = Uint8Array.from(createHash('sha256').update(app.demo.users.owner.api_key).digest());
    const ended = await endBy(byHeader(app.demo.users.owner.api_key), () =>
      app.app.database.prisma.apiKey.updateMany({ where: { secretHash }, data: { revoked: new Date() } }),
    );
    expect(ended).toMatchObject(lost);
    expect(ended.within).toBeLessThan(SOON_MS);
  });

  it('of a token that expires, and a fresh one resumes the session', async () => {
    const console = byHeader((await app.app.tokens.local?.sign(app.demo.users.member.id, 60)) ?? '');
    await console.opened;
    await guest.called();
    passSeconds(61);
    expect(await console.closed).toEqual({ code: 4403, reason: 'credential_expired' });
    vi.useRealTimers();
    guest.say('meanwhile');
    const again = await openConsole(app, instance, { sessionId: console.sessionId(), after: 0 });
    await again.until('meanwhile');
    expect(guest.connections()).toBe(1);
    again.socket.terminate();
  });
});

// The embedded database has the clock of its process.
it.runIf(isPostgres)('the record of a session has its end by the clock of the database, not of the replica', async () => {
  const console = await openConsole(app, instance);
  await guest.called();
  passSeconds(600);
  await app.app.database.prisma.consoleEndpoint.delete({ where: { instanceId: instance } });
  await console.closed;
  await expect.poll(() => readEnd(console.sessionId())).toBe('console_moved');
  const id = console.sessionId();
  const [record] = await app.app.database.prisma.$queryRaw<unknown[]>`
    SELECT ended BETWEEN created AND now() AS "isPast" FROM console_sessions WHERE id = ${id}::uuid`;
  expect(record).toEqual({ isPast: true });
});

describe('an instance that changes while its console is open', () => {
  const where = () => ({ where: { id: instance } });
  const status = (value: 'deleted' | 'stopped' | 'suspended') => () =>
    app.app.database.prisma.instance.update({ ...where(), data: { status: value } });
  const cases: Array<[string, () => Promise<unknown>, number, string]> = [
    ['is stopped', status('stopped'), 4404, 'instance_not_running'],
    ['is suspended', status('suspended'), 4404, 'instance_not_running'],
    ['is deleted', status('deleted'), 4404, 'instance_gone'],
    ['is removed from the database', () => app.app.database.prisma.instance.delete(where()), 4404, 'instance_gone'],
    [
      'is moved to another project',
      () => app.app.database.prisma.instance.update({ ...where(), data: { projectId: app.demo.empty_project_id } }),
      4404,
      'instance_gone',
    ],
    ['gets its console elsewhere', () => setEndpoint(app, instance, { port: 1 }), 4502, 'console_moved'],
    ['gets a console of another kind', () => setEndpoint(app, instance, { kind: 'vnc', port: guest.port }), 4502, 'console_moved'],
    ['loses its console', () => app.app.database.prisma.consoleEndpoint.delete({ where: { instanceId: instance } }), 4502, 'console_moved'],
  ];
  it.each(cases)('%s', async (_name, act, code, reason) => {
    const ended = await endBy(await openConsole(app, instance), act);
    expect(ended).toMatchObject({ code, reason, end: reason });
    expect(ended.within).toBeLessThan(SOON_MS);
  });
});

it('a session without its record, which a promoted standby may lack, is lost while its instance exists', async () => {
  const console = await openConsole(app, instance);
  await console.opened;
  await guest.called();
  await app.app.database.prisma.consoleSession.delete({ where: { id: console.sessionId() } });
  expect(await console.closed).toEqual({ code: 4502, reason: 'lost' });
  await expect.poll(() => guest.lines.size).toBe(0);
});

describe('an instance without a working console', () => {
  /** By a ticket, and then by a header. */
  const openBoth = async () => {
    const ticket = await (await openConsole(app, instance)).closed;
    const header = byHeader(app.demo.users.member.token ?? '');
    return [ticket, await Promise.race([header.closed, header.refused.then(({ status }) => status)])];
  };

  it('is refused when it is stopped, and looks absent when it is deleted', async () => {
    await app.app.database.prisma.instance.update({ where: { id: instance }, data: { status: 'stopped' } });
    const still = { code: 4404, reason: 'instance_not_running' };
    expect(await openBoth()).toEqual([still, still]);
    const { path, ticket } = await takeConsoleTicket(app, instance);
    await app.app.database.prisma.instance.update({ where: { id: instance }, data: { status: 'deleted' } });
    expect(await openConsoleSocket(app.baseUrl, `${path}?ticket=${ticket}`, {}).closed).toEqual({ code: 4404, reason: 'instance_gone' });
    const { closed, refused } = byHeader(app.demo.users.member.token ?? '');
    expect(await Promise.race([closed, refused.then(({ status }) => status)])).toBe(404);
    const body = { target: 'console', instance_id: instance };
    expect(await app.ask('POST', `${app.projectPath}/websocket-tickets`, { body, as: 'member' })).toMatchObject({ status: 404 });
    expect(guest.connections()).toBe(0);
  });

  it('is unreachable without an endpoint, a listener or an answer', async () => {
    const unreachable = { code: 4502, reason: 'console_unreachable' };
    await app.app.database.prisma.consoleEndpoint.delete({ where: { instanceId: instance } });
    expect(await openBoth()).toEqual([unreachable, unreachable]);
    await setEndpoint(app, instance, { port: await closedPort() });
    expect(await openBoth()).toEqual([unreachable, unreachable]);
    await setEndpoint(app, instance, { path: '/nowhere/at/all.sock' });
    expect(await openBoth()).toEqual([unreachable, unreachable]);
    // An address that is for documentation: nothing answers, and nothing refuses.
    await app.app.database.prisma.consoleEndpoint.update({
      where: { instanceId: instance },
      data: { host: '192.0.2.1', port: 9, socketPath: null },
    });
    const silent = await openConsole(app, instance);
    expect(await silent.closed).toEqual(unreachable);
    await expect.poll(() => readEnd(silent.sessionId())).toBe('console_unreachable');
  });

  it('ends the session when it closes or resets the connection', async () => {
    const hungUp = await endBy(await openConsole(app, instance), async () => (await guest.called()).end());
    expect(hungUp).toMatchObject({ code: 1000, reason: 'console_closed', end: 'console_closed' });
    const broken = await endBy(await openConsole(app, instance), async () => (await guest.called()).resetAndDestroy());
    expect(broken).toMatchObject({ code: 4502, reason: 'console_unreachable', end: 'console_unreachable' });
  });

  it('ends the session as instance_not_running when it closes because it was stopped', async () => {
    const ended = await endBy(await openConsole(app, instance), async () => {
      await app.app.database.prisma.instance.update({ where: { id: instance }, data: { status: 'stopped' } });
      for (const line of guest.lines) line.end();
    });
    expect(ended).toMatchObject({ code: 4404, reason: 'instance_not_running', end: 'instance_not_running' });
  });
});

describe('a console', () => {
  it('leaves nothing behind when its client disconnects at any moment', async () => {
    const runs = isPostgres ? 120 : 30;
    const ids = new Set<string>();
    const comeAndGo = async (run: number) => {
      const known = run % 3 === 0 ? [...ids].at(-1) : undefined;
      const console = await openConsole(app, instance, { as: run % 2 === 0 ? 'member' : 'admin', sessionId: known });
      if (run % 4 < 2) await Promise.race([console.opened, console.closed]);
      await new Promise((resolve) => setTimeout(resolve, Math.random() * 30));
      // Those that were opened at all: some of them were taken over at once.
      if (console.sessionId() !== 'undefined') ids.add(console.sessionId());
      if (run % 2 === 0) console.socket.terminate();
      else console.socket.close();
      await console.closed;
    };
    let next = 0;
    const lane = async () => {
      while (next < runs) await comeAndGo(next++);
    };
    await Promise.all(Array.from({ length: 4 }, lane));
    expect(ids.size).toBeGreaterThan(runs / 6);
    const figures = async () => {
      // A session may begin when its client has gone already: it would wait a minute for it to come back.
      await app.app.database.prisma.$executeRaw`UPDATE console_sessions SET ended = now(), end_reason = 'ended' WHERE ended IS NULL`;
      const { text } = await app.ask('GET', '/metrics', { as: null });
      return [...text.matchAll(/^portico_consoles\{state="\w+"\} (\d+)$/gm)].map(([, figure]) => Number(figure));
    };
    await expect.poll(figures).toEqual([0, 0]);
    await expect.poll(() => [guest.lines.size, app.app.count().sockets, app.app.count().leases]).toEqual([0, 0, 0]);
  });

  it('prints to the attached client while another one is refused', async () => {
    const attached = await openConsole(app, instance);
    await attached.opened;
    await guest.called();
    const refused = await openConsole(app, instance, { sessionId: attached.sessionId(), protocols: ['graphql-transport-ws'] });
    expect((await refused.closed).code).toBe(4406);
    const began = performance.now();
    guest.say('at once');
    await attached.until('at once');
    // The output waits for five seconds at most for somebody who is about to be attached.
    expect(performance.now() - began).toBeLessThan(4_000);
    attached.socket.terminate();
  });

  it.runIf(isPostgres)('is the newest of its list in any process, although their clocks differ', async () => {
    const { now } = Date;
    const ahead = vi.spyOn(Date, 'now').mockImplementation(() => now() + 5_000);
    const first = await openConsole(app, instance);
    await first.opened;
    ahead.mockRestore();
    const second = await openConsole(app, instance);
    await second.opened;
    expect(await first.closed).toEqual({ code: 4409, reason: 'taken_over' });
    const query = 'query ($id: ID!) { node(id: $id) { ... on Instance { consoleSessions(first: 2) { nodes { id } } } } }';
    const { json } = await app.graphql(query, { id: instance }, { as: 'member' });
    expect(json.data.node.consoleSessions.nodes).toEqual([{ id: second.sessionId() }, { id: first.sessionId() }]);
    second.socket.terminate();
  });

  it('listens on a Unix socket as well', async () => {
    const socketPath = `${app.config.dataDir}/guest.sock`;
    const own = await openGuest((line) => line.write('by a socket'), { path: socketPath });
    await setEndpoint(app, instance, { path: socketPath });
    const console = await openConsole(app, instance);
    await expect.poll(() => String(console.output())).toContain('by a socket');
    console.socket.terminate();
    await own.close();
  });

  it('closes a client whose frame is too large, and keeps its session', async () => {
    const console = await openConsole(app, instance);
    await console.opened;
    console.socket.send(Buffer.alloc(1024 * 1024 + 1));
    expect((await console.closed).code).toBe(1009);
    const again = await openConsole(app, instance, { sessionId: console.sessionId() });
    guest.say('still there');
    await again.until('still there');
    again.socket.terminate();
  });
});

/** A port at which nobody listens. */
async function closedPort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}
