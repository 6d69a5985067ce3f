import { spawn } from 'node:child_process';
import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import timers, { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { connect } from 'portico-client';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { openProject, type ProjectScope, rebindScope } from '../../src/access/scope.ts';
import { Consoles } from '../../src/consoles/consoles.ts';
import { LiveSessions } from '../../src/consoles/livesessions.ts';
import { endSilentSessions, readClock, recordAttachment } from '../../src/consoles/store.ts';
import type { Database } from '../../src/platform/database.ts';
import { createLogger } from '../../src/platform/logger.ts';
import { packageRoot } from '../../src/platform/packageroot.ts';
import { isPostgres, startApp, type TestApp } from '../support/app.ts';
import { type ConsoleSocket, type Guest, openConsole, openConsoleSocket, openGuest, setEndpoint } from '../support/console.ts';
import { openProxy } from '../support/proxy.ts';

const SCROLLBACK_BYTES = 256 * 1024;

let app: TestApp;
let guest: Guest;
let instance: string;
let other: string;
const opened: ConsoleSocket[] = [];
beforeAll(async () => {
  app = await startApp({ RATE_LIMIT_USER: '100000000', RATE_LIMIT_ANONYMOUS: '100000000', CONSOLES_PER_USER: '3' });
  instance = app.demo.instances.eligible;
  other = app.demo.instances.console;
});
afterAll(() => app.close());
beforeEach(async () => {
  guest = await openGuest();
  await setEndpoint(app, instance, { port: guest.port });
  await setEndpoint(app, other, { port: guest.port });
});
afterEach(async () => {
  for (const { socket } of opened.splice(0)) socket.terminate();
  await guest.close();
  // What a test leaves running takes no place in the next.
  await app.app.database.prisma.$executeRaw`UPDATE console_sessions SET ended = now(), end_reason = 'ended' WHERE ended IS NULL`;
  await expect.poll(() => app.app.database.prisma.$queryRaw`SELECT id FROM console_sessions WHERE ended IS NULL`).toEqual([]);
});

async function open(of: string, options: Parameters<typeof openConsole>[2] = {}): Promise<ConsoleSocket> {
  const console = await openConsole(app, of, options);
  opened.push(console);
  await console.opened;
  return console;
}

interface SessionView {
  readonly id: string;
  readonly state: string;
  readonly endReason: string | null;
  readonly userEmail: string;
  readonly bytesIn: number;
  readonly bytesOut: number;
}

/** Reads what a console says, as text, until it ends. */
function readText(readable: ReadableStream<Uint8Array>) {
  let text = '';
  const read = async () => {
    for await (const bytes of readable) text += Buffer.from(bytes).toString();
  };
  return { text: () => text, ended: read() };
}

async function list(as: 'owner' | 'admin' | 'member' | 'viewer', of = instance): Promise<SessionView[]> {
  const query = `query ($o: ID!, $p: ID!, $i: ID!) { project(organizationId: $o, id: $p) { instance(id: $i) { consoleSessions {
    nodes { id instanceId instanceName userId userEmail kind state clientAddresses created ended durationSeconds endReason bytesIn bytesOut } } } } }`;
  const response = await app.graphql(query, { o: app.demo.organization_id, p: app.demo.project_id, i: of }, { as });
  return response.json.data.project.instance.consoleSessions.nodes;
}

async function end(id: string, as: 'owner' | 'admin' | 'member' | 'viewer') {
  const query = 'mutation ($input: EndConsoleSessionInput!) { endConsoleSession(input: $input) { consoleSession { id state endReason } } }';
  const input = { organizationId: app.demo.organization_id, projectId: app.demo.project_id, id };
  const { json } = await app.graphql(query, { input }, { as });
  return json.errors?.[0].extensions.code ?? json.data.endConsoleSession.consoleSession;
}

describe('a session', () => {
  it('has its id in the response to the upgrade and in GraphQL, where members see their own and admins all', async () => {
    const [mine, theirs] = [await open(instance), await open(other, { as: 'admin' })];
    // A session is recorded when its socket is attached, right after it has opened.
    await expect.poll(() => guest.lines.size).toBe(2);
    expect([mine.offset(), theirs.offset()]).toEqual([0, 0]);
    expect((await list('member')).map(({ id }) => id)).toEqual([mine.sessionId()]);
    expect(await list('member', other)).toEqual([]);
    expect(await list('viewer')).toEqual([]);
    for (const admin of ['admin', 'owner'] as const) {
      expect((await list(admin))[0]?.id).toBe(mine.sessionId());
      expect((await list(admin, other))[0]?.id).toBe(theirs.sessionId());
    }
    const inProject = '{ project(organizationId: "o", id: "p") { consoleSessions(filter: { running: true }) { nodes { id } } } }';
    const { demo } = app;
    const ask = async (as: 'admin' | 'member' | 'viewer') =>
      (await app.graphql(inProject.replace('"o"', `"${demo.organization_id}"`).replace('"p"', `"${demo.project_id}"`), {}, { as })).json
        .data.project.consoleSessions.nodes;
    expect(await ask('admin')).toEqual([{ id: theirs.sessionId() }, { id: mine.sessionId() }]);
    expect(await ask('member')).toEqual([{ id: mine.sessionId() }]);
    expect(await ask('viewer')).toEqual([]);
  });

  it('makes its console occupied for all of the project while a client is attached, also for those who cannot see it', async () => {
    const { demo } = app;
    const instances = `{ project(id: "${demo.project_id}") { instances(first: 100) { nodes { id consoleOccupied } } } }`;
    type Listed = { id: string; consoleOccupied: boolean }[];
    const listOccupied = async (as: 'owner' | 'admin' | 'member' | 'viewer') => {
      const nodes: Listed = (await app.graphql(instances, {}, { as })).json.data.project.instances.nodes;
      return nodes.filter(({ consoleOccupied }) => consoleOccupied).map(({ id }) => id);
    };
    expect(await listOccupied('member')).toEqual([]);
    const theirs = await open(other, { as: 'admin' });
    await guest.called();
    for (const as of ['owner', 'admin', 'member', 'viewer'] as const) expect(await listOccupied(as)).toEqual([other]);
    expect(await list('member', other)).toEqual([]);
    theirs.socket.close();
    await expect.poll(async () => (await list('admin', other))[0]?.state).toBe('detached');
    expect(await listOccupied('member')).toEqual([]);
    const again = await open(other, { as: 'admin', sessionId: theirs.sessionId() });
    await expect.poll(() => listOccupied('member')).toEqual([other]);
    await end(again.sessionId(), 'admin');
    expect(await listOccupied('member')).toEqual([]);
    // A screen can have any number of sessions; one of a project that the instance has left is about to end.
    const row = { instanceName: 'web-02', userId: demo.users.admin.id, userEmail: '', owner: randomUUID() };
    const created = [
      { ...row, id: randomUUID(), projectId: demo.project_id, instanceId: other, kind: 'vnc' as const },
      { ...row, id: randomUUID(), projectId: demo.empty_project_id, instanceId: other, kind: 'serial' as const },
    ];
    await app.app.database.prisma.consoleSession.createMany({ data: created });
    expect(await listOccupied('member')).toEqual([]);
  });

  it('leaves a record of its user, addresses, times, volume and end, and nothing of its content', async () => {
    const [said, typed] = [`said-${randomUUID()}`, `typed-${randomUUID()}`];
    const console = await open(instance);
    await guest.called();
    guest.say(said);
    console.socket.send(typed);
    await console.until(said);
    await expect.poll(() => guest.heard().toString()).toBe(typed);
    expect(await end(console.sessionId(), 'member')).toEqual({ id: console.sessionId(), state: 'over', endReason: 'ended' });
    expect(await console.closed).toEqual({ code: 4410, reason: 'ended' });
    await expect.poll(() => guest.lines.size).toBe(0);
    expect((await list('admin'))[0]).toEqual({
      id: console.sessionId(),
      instanceId: instance,
      instanceName: 'web-01',
      userId: app.demo.users.member.id,
      userEmail: app.demo.users.member.email,
      kind: 'serial',
      state: 'over',
      clientAddresses: ['127.0.0.1'],
      created: expect.any(String),
      ended: expect.any(String),
      durationSeconds: expect.any(Number),
      endReason: 'ended',
      bytesIn: typed.length,
      bytesOut: said.length,
    });
    const rows = await app.app.database.prisma.$queryRaw`
      SELECT t::text FROM console_sessions AS t UNION ALL SELECT t::text FROM console_handovers AS t`;
    for (const text of [said, typed]) {
      expect(JSON.stringify(rows)).not.toContain(text);
      expect(app.logLines.join('')).not.toContain(text);
    }
  });

  it('can be ended by its user and by admins, and looks absent to others', async () => {
    const mine = await open(other, { as: 'admin' });
    // A session is entered after the response to the upgrade, and before the console is called.
    await guest.called();
    expect(await end(mine.sessionId(), 'member')).toBe('not_found');
    expect(await end(mine.sessionId(), 'viewer')).toBe('not_found');
    expect(await end(randomUUID(), 'admin')).toBe('not_found');
    expect(mine.socket.readyState).toBe(mine.socket.OPEN);
    expect(await end(mine.sessionId(), 'owner')).toMatchObject({ endReason: 'ended' });
    expect(await end(mine.sessionId(), 'owner')).toMatchObject({ endReason: 'ended' });
    expect(await mine.closed).toEqual({ code: 4410, reason: 'ended' });
  });

  it('is listed as running or as over', async () => {
    const [over, running] = [await open(other), await open(instance)];
    await expect.poll(() => guest.lines.size).toBe(2);
    await end(over.sessionId(), 'member');
    const ask = async (filter: string) => {
      const query = `{ project(id: "${app.demo.project_id}") { consoleSessions(first: 100, filter: ${filter}) { totalCount nodes { id } } } }`;
      const { totalCount, nodes } = (await app.graphql(query, {}, { as: 'member' })).json.data.project.consoleSessions;
      expect(nodes).toHaveLength(totalCount);
      return nodes.map(({ id }: { id: string }) => id);
    };
    expect(await ask('{ running: true }')).toEqual([running.sessionId()]);
    const ended = await ask('{ running: false }');
    expect([ended.includes(over.sessionId()), ended.includes(running.sessionId())]).toEqual([true, false]);
    expect(await ask('{ running: null }')).toEqual([running.sessionId(), ...ended]);
  });

  it('cannot be ended by a viewer, even one of their own from before', async () => {
    const mine = await open(instance);
    await guest.called();
    await end(mine.sessionId(), 'member');
    const projectId_userId = { projectId: app.demo.project_id, userId: app.demo.users.member.id };
    const setRole = (role: 'viewer' | 'member') =>
      app.app.database.prisma.projectMember.update({ where: { projectId_userId }, data: { role } });
    await setRole('viewer');
    try {
      expect(await end(mine.sessionId(), 'member')).toBe('permission_denied');
    } finally {
      await setRole('member');
    }
  });

  it('counts towards the quota of its user', async () => {
    await setEndpoint(app, instance, { kind: 'vnc', port: guest.port });
    const consoles = [await open(instance), await open(instance), await open(instance)];
    const refused = await open(instance);
    expect(await refused.closed).toEqual({ code: 4429, reason: 'too_many_consoles' });
    await open(instance, { as: 'admin' });
    consoles[0]?.socket.terminate();
    await expect.poll(async () => (await list('member')).filter(({ state }) => state === 'attached').length).toBe(2);
    const again = await open(instance);
    await guest.called();
    expect(again.socket.readyState).toBe(again.socket.OPEN);
    const attached = await open(instance, { sessionId: consoles[0]?.sessionId() });
    expect(await attached.closed).toEqual({ code: 4429, reason: 'too_many_consoles' });
  });
});

it.each(['by themselves', 'by what the poll finds'])('sessions that end at the same moment %s are saved together', async (how) => {
  const { database } = app.app;
  let statements = 0;
  const counted = Object.create(database, {
    query: {
      value: (...statement: Parameters<typeof database.query>) => {
        if (statement[0].join('').includes('ended = coalesce')) statements += 1;
        return database.query(...statement);
      },
    },
  }) as typeof database;
  const sessions = new LiveSessions({ database: counted, log: createLogger('silent'), idleMs: 60_000 });
  const { id: userId, email } = app.demo.users.member;
  const projectId = app.demo.project_id;
  const facts = { projectId, instanceId: other, userId, endpoint: { kind: 'vnc', host: '127.0.0.1', port: 1, socketPath: null } } as const;
  const ids = Array.from({ length: 40 }, () => randomUUID());
  await database.query`
    INSERT INTO console_sessions (id, project_id, instance_id, instance_name, user_id, user_email, kind, owner, runner)
    SELECT id, ${projectId}::uuid, ${other}::uuid, 'crowded', ${userId}::uuid, ${email}, 'vnc', ${sessions.processId}::uuid,
      ${sessions.processId}::uuid
    FROM unnest(${ids}::uuid[]) AS id`;
  const running = ids.map((id) => sessions.open({ ...facts, id }));
  if (how === 'by themselves') await Promise.all(running.map((session) => sessions.end(session, 'console_closed')));
  // The instance has another endpoint.
  else await expect.poll(() => sessions.count().detached).toBe(0);
  await sessions.close();
  expect(statements).toBeLessThanOrEqual(2);
  const saved = await database.query<{ reason: string; count: number }>`
    SELECT end_reason AS reason, count(*)::int AS count FROM console_sessions
    WHERE id = ANY (${ids}::uuid[]) AND ended IS NOT NULL GROUP BY end_reason`;
  expect(saved).toEqual([{ reason: how === 'by themselves' ? 'console_closed' : 'console_moved', count: ids.length }]);
});

it('a client that is attached while its session is saved as left is saved as attached at once', async () => {
  const saved: boolean[] = [];
  const query = async (strings: TemplateStringsArray, ...values: unknown[]) => {
    if (!strings.join('').includes('is_detached')) return [];
    saved.push((values[3] as boolean[])[0] ?? expect.unreachable('one session is saved'));
    if (saved.length === 1) session.attach({ bufferedAmount: 0, send() {}, pause() {}, resume() {}, close() {} }, 0);
    return [];
  };
  const sessions = new LiveSessions({ database: { query } as unknown as Database, log: createLogger('silent'), idleMs: 60_000 });
  const endpoint = { kind: 'serial', host: '127.0.0.1', port: guest.port, socketPath: null } as const;
  const { project_id: projectId, users } = app.demo;
  const session = sessions.open({ id: randomUUID(), projectId, instanceId: instance, userId: users.member.id, endpoint });
  sessions.saveDetached(session);
  await expect.poll(() => saved, { timeout: 2_000 }).toEqual([true, false]);
  session.stop('ended');
  await sessions.close();
});

it('a session is not ended as silent before its process has had time to save it, also after an outage between two sweeps', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'performance'] });
  const sleeping = vi.spyOn(timers, 'setTimeout').mockImplementation(
    (milliseconds, value) =>
      new Promise((resolve) => {
        setTimeout(() => resolve(value as never), milliseconds);
      }),
  );
  syncBuiltinESMExports();
  let isAway = false;
  const sweeps: Array<{ at: number; asOf: number }> = [];
  const query = async (strings: TemplateStringsArray, ...values: unknown[]) => {
    if (isAway) throw new Error('the database is away');
    const at = Math.round(performance.now() / 1_000) - began;
    if (strings.join('').includes("'lost'")) sweeps.push({ at, asOf: (values[0] as Date).getTime() });
    return strings.join('').includes('AS now') ? [{ now: new Date(at) }] : [];
  };
  const began = Math.round(performance.now() / 1_000);
  const sessions = new LiveSessions({ database: { query } as unknown as Database, log: createLogger('silent'), idleMs: 60_000 });
  try {
    await vi.advanceTimersByTimeAsync(122_000);
    isAway = true;
    await vi.advanceTimersByTimeAsync(57_000);
    isAway = false;
    await vi.advanceTimersByTimeAsync(80_000);
  } finally {
    sleeping.mockRestore();
    syncBuiltinESMExports();
    vi.useRealTimers();
  }
  await sessions.close();
  // What the database had heard when the sweep began decides, however late it executes the statement.
  expect(sweeps).toEqual([
    { at: 70, asOf: 60 },
    { at: 190, asOf: 180 },
    { at: 250, asOf: 240 },
  ]);
});

describe('attached to again', () => {
  it('resumes in the middle of the output, with the output since then', async () => {
    const output = randomBytes(200_000);
    const first = await open(instance);
    await guest.called();
    guest.say(output.subarray(0, 50_000));
    await expect.poll(() => first.output().length).toBe(50_000);
    first.socket.terminate();
    guest.say(output.subarray(50_000, 150_000));
    const id = first.sessionId();
    await expect.poll(async () => (await list('member')).find((one) => one.id === id)?.state).toBe('detached');
    const second = await open(instance, { sessionId: id, after: 40_000 });
    guest.say(output.subarray(150_000));
    await expect.poll(() => second.output().length).toBe(160_000);
    expect([second.sessionId(), second.offset()]).toEqual([id, 40_000]);
    expect(second.output().equals(output.subarray(40_000))).toBe(true);
    const third = await open(instance, { sessionId: id });
    await expect.poll(() => third.output().length).toBe(200_000);
    expect([third.offset(), third.output().equals(output)]).toEqual([0, true]);
    expect(await second.closed).toEqual({ code: 4409, reason: 'taken_over' });
    expect(guest.connections()).toBe(1);
  });

  it('has the last 256 KiB and their position, and refuses an earlier one', async () => {
    const output = randomBytes(SCROLLBACK_BYTES + 70_001);
    const first = await open(instance);
    await guest.called();
    for (let from = 0; from < output.length; from += 33_333) guest.say(output.subarray(from, from + 33_333));
    await expect.poll(() => first.output().length).toBe(output.length);
    first.socket.terminate();
    const id = first.sessionId();
    for (const after of [70_000, output.length + 1]) {
      const refused = await open(instance, { sessionId: id, after });
      expect(await refused.closed).toEqual({ code: 4416, reason: 'after_not_kept' });
    }
    for (const after of ['x', '-1', '1.5', '', '1&after=2', '99999999999999999']) {
      const refused = await open(instance, { sessionId: id, after });
      expect(await refused.closed, after).toEqual({ code: 4400, reason: 'invalid_after' });
    }
    const all = await open(instance, { sessionId: id });
    await expect.poll(() => all.output().length).toBe(SCROLLBACK_BYTES);
    expect([all.offset(), all.output().equals(output.subarray(70_001))]).toEqual([70_001, true]);
    const end = await open(instance, { sessionId: id, after: output.length });
    guest.say('next');
    await end.until('next');
    expect(end.output().toString()).toBe('next');
  });

  it.each([
    ['a session token', () => app.demo.users.member.token ?? ''],
    ['an API key', () => app.demo.users.member.api_key],
  ])('by the client package with %s, neither loses nor repeats output across cuts', async (_what, credential) => {
    const cuts = isPostgres ? 25 : 5;
    const proxy = await openProxy({ host: '127.0.0.1', port: Number(new URL(app.baseUrl).port) });
    const hash = createHash('sha256');
    let said = 0;
    let received = 0;
    const speak = setInterval(() => {
      const bytes = randomBytes(1 + Math.floor(Math.random() * 4_000));
      // A machine that is slow, and a client that comes back late, are not to find more than is kept for them.
      if (guest.lines.size === 0 || said - received > SCROLLBACK_BYTES / 2) return;
      hash.update(bytes);
      said += bytes.length;
      guest.say(bytes);
    }, 2);
    const heard = createHash('sha256');
    const console = connect({ url: `http://127.0.0.1:${proxy.port}`, credential: credential() }).console({ instance });
    const read = async () => {
      for await (const bytes of console.readable) {
        received += bytes.length;
        heard.update(bytes);
      }
    };
    const reading = read();
    for (let cut = 0; cut < cuts; cut += 1) {
      const before = received;
      await expect.poll(() => received, { interval: 5 }).toBeGreaterThan(before + 5_000);
      proxy.cut();
      await sleep(Math.random() * 50);
      await proxy.mend();
    }
    clearInterval(speak);
    await expect.poll(() => received).toBe(said);
    expect(heard.digest('hex')).toBe(hash.digest('hex'));
    expect([console.state.name, guest.connections()]).toEqual(['live', 1]);
    const typing = console.writable.getWriter();
    await typing.write(Buffer.from('typed'));
    await expect.poll(() => guest.heard().toString()).toBe('typed');
    console.close();
    await reading;
    await proxy.close();
  });

  it.runIf(isPostgres)('by the client package, does not take an earlier session for its own, whose record is inserted late', async () => {
    const before = await open(instance);
    // A session is entered after the response to the upgrade, and before the console is called.
    await guest.called();
    expect(await end(before.sessionId(), 'member')).toMatchObject({ state: 'over' });
    await expect.poll(() => guest.lines.size).toBe(0);
    const proxy = await openProxy({ host: '127.0.0.1', port: Number(new URL(app.baseUrl).port) });
    const credential = app.demo.users.member.api_key;
    const console = connect({ url: `http://127.0.0.1:${proxy.port}`, credential }).console({ instance });
    const reading = readText(console.readable);
    await app.app.database.transact(async (query) => {
      await query`LOCK TABLE console_sessions IN SHARE MODE`;
      await expect.poll(() => console.state.name).toBe('live');
      // Long enough for the client to ask for the newest session.
      await sleep(500);
    });
    await expect.poll(() => guest.lines.size).toBe(1);
    guest.say('one ');
    await expect.poll(() => reading.text()).toBe('one ');
    await sleep(500);
    proxy.cut();
    guest.say('two ');
    await proxy.mend();
    await expect.poll(() => reading.text()).toBe('one two ');
    expect((await list('admin')).filter(({ id }) => id > before.sessionId())).toHaveLength(1);
    console.close();
    await reading.ended;
    await proxy.close();
  });

  it('by the client package, resumes a session without output', async () => {
    const proxy = await openProxy({ host: '127.0.0.1', port: Number(new URL(app.baseUrl).port) });
    const credential = app.demo.users.member.api_key;
    const console = connect({ url: `http://127.0.0.1:${proxy.port}`, credential }).console({ instance });
    const reading = readText(console.readable);
    await guest.called();
    proxy.cut();
    await proxy.mend();
    guest.say('one ');
    await expect.poll(() => reading.text()).toBe('one ');
    proxy.cut();
    guest.say('two');
    await proxy.mend();
    await expect.poll(() => reading.text()).toBe('one two');
    expect(guest.connections()).toBe(1);
    console.close();
    await reading.ended;
    await proxy.close();
  });

  it('by the client package, continues in a new session where the record of the session is lost', async () => {
    const console = connect({ url: app.baseUrl, credential: app.demo.users.member.api_key }).console({ instance });
    const reading = readText(console.readable);
    await guest.called();
    guest.say('one ');
    await expect.poll(() => reading.text()).toBe('one ');
    // A standby that lacks the record was promoted.
    await app.app.database.prisma.$executeRaw`DELETE FROM console_sessions WHERE ended IS NULL`;
    await expect.poll(() => guest.connections(), { timeout: 10_000 }).toBe(2);
    guest.say('two');
    await expect.poll(() => reading.text()).toBe('one two');
    console.close();
    await reading.ended;
  });

  it.each([
    ['member', 'admin'],
    ['admin', 'member'],
    ['member', 'member'],
    ['admin', 'admin'],
  ] as const)('by the client package as %s, takes no console from the %s who has opened it meanwhile', async (me, colleague) => {
    const proxy = await openProxy({ host: '127.0.0.1', port: Number(new URL(app.baseUrl).port) });
    const credential = app.demo.users[me].api_key;
    const console = connect({ url: `http://127.0.0.1:${proxy.port}`, credential }).console({ instance });
    const ended = readText(console.readable).ended.catch((error: unknown) => error);
    await guest.called();
    proxy.cut();
    const theirs = await open(instance, { as: colleague });
    await expect.poll(async () => (await list('admin'))[0]).toMatchObject({ id: theirs.sessionId(), state: 'attached' });
    await proxy.mend();
    expect(await Promise.race([ended, theirs.closed])).toMatchObject({ name: 'PorticoError', code: 'taken_over' });
    expect([theirs.socket.readyState, guest.lines.size]).toEqual([1, 1]);
    await proxy.close();
  });

  it('by the client package, continues in a new session where the colleague who ended it has left', async () => {
    const proxy = await openProxy({ host: '127.0.0.1', port: Number(new URL(app.baseUrl).port) });
    const credential = app.demo.users.member.api_key;
    const console = connect({ url: `http://127.0.0.1:${proxy.port}`, credential }).console({ instance });
    const reading = readText(console.readable);
    await guest.called();
    proxy.cut();
    const theirs = await open(instance, { as: 'admin' });
    theirs.socket.close();
    await expect.poll(async () => (await list('admin'))[0]).toMatchObject({ id: theirs.sessionId(), state: 'detached' });
    await proxy.mend();
    await expect.poll(() => guest.connections()).toBe(3);
    guest.say('again');
    await expect.poll(() => reading.text()).toBe('again');
    console.close();
    await reading.ended;
    await proxy.close();
  });

  it('by the client package, does not take its own lost session, which is still recorded as attached, for a colleague’s', async () => {
    let asked = 0;
    const client = connect({
      url: app.baseUrl,
      credential: app.demo.users.member.api_key,
      async fetch(input, init) {
        const response = await fetch(input, init);
        if (!response.url.endsWith('/graphql')) return response;
        asked += 1;
        const answer = (await response.json()) as { data: { node: { consoleSessions: { nodes: { state: string }[] } } } };
        // The record of the first answer is of a session before it.
        if (asked > 1) Object.assign(answer.data.node.consoleSessions.nodes[0] ?? {}, { state: 'attached' });
        return Response.json({ data: { node: { ...answer.data.node, consoleOccupied: true } } });
      },
    });
    const console = client.console({ instance });
    const reading = readText(console.readable);
    await guest.called();
    guest.say('one ');
    await expect.poll(() => reading.text()).toBe('one ');
    const next = await openGuest();
    await setEndpoint(app, instance, { port: next.port });
    await next.called();
    next.say('two');
    await expect.poll(() => reading.text()).toBe('one two');
    expect(asked).toBe(2);
    console.close();
    await reading.ended;
    await next.close();
  });

  it('delivers the last output of a console that closed meanwhile, and then its end', async () => {
    const first = await open(instance);
    await guest.called();
    guest.say('one ');
    await first.until('one ');
    first.socket.terminate();
    await expect.poll(async () => (await list('member'))[0]?.state).toBe('detached');
    guest.say('two');
    for (const line of guest.lines) line.end();
    await sleep(200);
    const second = await open(instance, { sessionId: first.sessionId(), after: 4 });
    expect(await second.closed).toEqual({ code: 1000, reason: 'console_closed' });
    expect(second.output().toString()).toBe('two');
    await expect.poll(async () => (await list('member'))[0]).toMatchObject({ endReason: 'console_closed', bytesOut: 7 });
  });

  it('is possible for its user alone, on its instance alone, and while it runs', async () => {
    const theirs = await open(other, { as: 'admin' });
    const mine = await open(instance);
    const path = `${app.projectPath}/compute/instances/${instance}/console/ws`;
    const gone = { code: 4404, reason: 'session_gone' };
    const attach = async (sessionId: string, as: 'member' | 'admin' = 'member', of = instance) => {
      const console = await open(of, { sessionId, as });
      return console.closed;
    };
    expect(await attach(theirs.sessionId(), 'member', other)).toEqual(gone);
    expect(await attach(mine.sessionId(), 'admin')).toEqual(gone);
    expect(await attach(mine.sessionId(), 'member', other)).toEqual(gone);
    expect(await attach(randomUUID())).toEqual(gone);
    const headers = { authorization: `Bearer ${app.demo.users.member.api_key}` };
    for (const id of ['x', '', `${mine.sessionId()}&session_id=${mine.sessionId()}`]) {
      const console = openConsoleSocket(app.baseUrl, `${path}?session_id=${id}`, { headers });
      expect(await console.closed, id).toEqual({ code: 4400, reason: 'invalid_session_id' });
    }
    expect([mine, theirs].map(({ socket }) => socket.readyState)).toEqual([1, 1]);
    const byKey = openConsoleSocket(app.baseUrl, `${path}?session_id=${mine.sessionId()}&after=0`, { headers });
    opened.push(byKey);
    await byKey.opened;
    expect(byKey.sessionId()).toBe(mine.sessionId());
    expect(await mine.closed).toEqual({ code: 4409, reason: 'taken_over' });
    await end(mine.sessionId(), 'member');
    expect(await attach(mine.sessionId())).toEqual(gone);
  });
});

/** An id that sorts before those of sessions that are opened. */
const makeOldId = () => randomUUID().replace(/^.{8}/, '00000000');

it('a session whose process is silent for a minute ends: as lost, or as detached without a client', async () => {
  const { database } = app.app;
  const row = (id: string, detachedAt: Date | null) => ({
    ...{ id, projectId: app.demo.project_id, instanceId: instance, instanceName: 'web-01' },
    ...{ userId: app.demo.users.member.id, userEmail: app.demo.users.member.email, kind: 'serial' as const, owner: randomUUID() },
    ...{ seen: new Date(Date.now() - 61_000), detachedAt },
  });
  const [attached, detached, fresh] = [makeOldId(), makeOldId(), makeOldId()];
  await database.prisma.consoleSession.createMany({
    data: [row(attached, null), row(detached, new Date()), { ...row(fresh, null), seen: new Date() }],
  });
  await database.prisma.consoleHandover.create({
    data: { sessionId: fresh, owner: randomUUID(), position: 1, scrollback: Buffer.from('x'), created: new Date(Date.now() - 61_000) },
  });
  await endSilentSessions(database, await readClock(database));
  const ends = await database.prisma.consoleSession.findMany({ where: { id: { in: [attached, detached, fresh] } } });
  const endOf = (id: string) => ends.find((one) => one.id === id)?.endReason;
  expect([attached, detached, fresh].map(endOf)).toEqual(['lost', 'detached', null]);
  expect(await database.prisma.consoleHandover.count()).toBe(0);
});

it('a session that was alive at the start of a sweep is not ended by a statement that the database executes late', async () => {
  const { database } = app.app;
  const secondsAgo = (seconds: number) => new Date(Date.now() - seconds * 1_000);
  const [id, handed] = [makeOldId(), makeOldId()];
  const facts = {
    ...{ projectId: app.demo.project_id, instanceId: instance, instanceName: 'web-01', kind: 'serial' as const, owner: randomUUID() },
    ...{ userId: app.demo.users.member.id, userEmail: app.demo.users.member.email, seen: secondsAgo(300) },
  };
  await database.prisma.consoleSession.createMany({
    data: [
      { ...facts, id },
      { ...facts, id: handed, detachedAt: secondsAgo(300) },
    ],
  });
  await database.prisma.consoleHandover.create({
    data: { sessionId: handed, owner: facts.owner, position: 1, scrollback: Buffer.from('x'), created: secondsAgo(300) },
  });
  // The sweep began five seconds after the last heartbeat, and the database stood still from then on.
  await endSilentSessions(database, secondsAgo(295));
  const running = await database.prisma.consoleSession.findMany({ where: { id: { in: [id, handed] }, ended: null } });
  expect([running.length, await database.prisma.consoleHandover.count({ where: { sessionId: handed } })]).toEqual([2, 1]);
  await endSilentSessions(database, secondsAgo(235));
  const endOf = async (id: string) => (await database.prisma.consoleSession.findUniqueOrThrow({ where: { id } })).endReason;
  expect([await endOf(id), await endOf(handed)]).toEqual(['lost', 'detached']);
  expect(await database.prisma.consoleHandover.count({ where: { sessionId: handed } })).toBe(0);
});

describe('on one instance', () => {
  it('a new session of a serial console takes it over', async () => {
    const first = await open(instance);
    await guest.called();
    const second = await open(instance, { as: 'admin' });
    expect(await first.closed).toEqual({ code: 4409, reason: 'taken_over' });
    await expect.poll(() => guest.lines.size).toBe(1);
    guest.say('to the second');
    await second.until('to the second');
    await expect.poll(async () => (await list('member'))[0]).toMatchObject({ id: first.sessionId(), endReason: 'taken_over' });
  });

  it('a screen has many sessions, each with its own connection, and a new one when reattached', async () => {
    await setEndpoint(app, instance, { kind: 'vnc', port: guest.port });
    const [first, second] = [await open(instance), await open(instance, { as: 'admin' })];
    await expect.poll(() => guest.lines.size).toBe(2);
    guest.say('RFB 003.008\n');
    await Promise.all([first, second].map((console) => console.until('RFB 003.008\n')));
    first.socket.terminate();
    await expect.poll(() => guest.lines.size).toBe(1);
    const again = await open(instance, { sessionId: first.sessionId() });
    await expect.poll(() => guest.connections()).toBe(3);
    expect(again.sessionId()).toBe(first.sessionId());
    expect(again.output().length).toBe(0);
  });
});

it('a session keeps the last twenty addresses of its clients, each once', async () => {
  const console = await open(instance);
  await guest.called();
  const session = { id: console.sessionId(), userId: app.demo.users.member.id };
  const [{ processId } = { processId: '' }] = await app.app.database.prisma.$queryRaw<Array<{ processId: string }>>`
    SELECT owner::text AS "processId" FROM console_sessions WHERE id = ${session.id}::uuid`;
  const addresses = Array.from({ length: 25 }, (_, index) => `203.0.113.${index}`);
  for (const clientAddress of [...addresses, '203.0.113.10'])
    await recordAttachment(app.app.database, { ...session, processId, clientAddress }, 10);
  const [row] = await app.app.database.prisma.$queryRaw<Array<{ kept: string[] }>>`
    SELECT client_addresses AS kept FROM console_sessions WHERE id = ${session.id}::uuid`;
  const last = addresses.slice(-20);
  expect(row?.kept).toEqual([...last.filter((address) => address !== '203.0.113.10'), '203.0.113.10']);
});

/** The scope of an admin, on a database that replaces methods of the app's own. */
async function openScope(methods: Partial<Pick<Database, 'transact' | 'query'>>): Promise<ProjectScope> {
  const { organization_id: organizationId, project_id: projectId, users } = app.demo;
  const session = { kind: 'session', expires: new Date(Date.now() + 3_600_000) } as const;
  const viewer = { userId: users.admin.id, email: '', name: '', created: new Date(), credential: session };
  const admitted = await openProject(app.app.database, viewer, { organizationId, projectId });
  // An assignment would reach the app's own database.
  return rebindScope(admitted, Object.create(app.app.database, Object.getOwnPropertyDescriptors(methods)));
}

/** The consoles of a process, and what a client of one gets. */
function openConsoles(scope: ProjectScope) {
  const watch = { add: () => ({ stop: () => {} }) } as never;
  const log = createLogger('silent');
  const consoles = new Consoles({ database: scope.database, watch, log, limits: { perUser: 3, idleMs: 60_000 } });
  const request = { instanceId: instance, sessionId: null, after: null, clientAddress: '127.0.0.1' };
  const prepare = async (sessionId: string | null) => {
    const opening = await consoles.prepare(scope, { ...request, sessionId });
    if (typeof opening === 'string') throw new Error(opening);
    return opening;
  };
  let output = '';
  const client = {
    bufferedAmount: 0,
    send: (bytes: Buffer, onSent: () => void) => {
      output += bytes.toString();
      onSent();
    },
    pause: () => {},
    resume: () => {},
    close: () => {},
  };
  return { consoles, prepare, client, output: () => output };
}

it('a session keeps its client where another attachment to it fails', async () => {
  let isAway = false;
  const scope = await openScope({
    transact: (work) => (isAway ? Promise.reject(new Error('the connection was lost')) : app.app.database.transact(work)),
  });
  const { consoles, prepare, client, output } = openConsoles(scope);
  const opening = await prepare(null);
  await opening.attach(client);
  await guest.called();
  const again = await prepare(opening.sessionId);
  isAway = true;
  await expect(again.attach({ ...client })).rejects.toThrow('the connection was lost');
  guest.say('still here');
  await expect.poll(output).toBe('still here');
  isAway = false;
  await consoles.close();
});

it('a session keeps its output where a process took it over and the response of the database was lost', async () => {
  const former = openConsoles(await openScope({}));
  const opening = await former.prepare(null);
  await opening.attach(former.client);
  await guest.called();
  guest.say('before');
  await expect.poll(former.output).toBe('before');
  await former.consoles.close();
  let lost = 0;
  const loseAnswer: Database['query'] = async (texts, ...values) => {
    const rows = await app.app.database.query(texts, ...values);
    if (lost > 0 || !texts.join('').includes('DELETE FROM console_handovers WHERE session_id')) return rows as never;
    lost += 1;
    throw new Error('Connection terminated unexpectedly');
  };
  const latter = openConsoles(await openScope({ query: loseAnswer }));
  await (await latter.prepare(opening.sessionId)).attach(latter.client);
  expect([lost, latter.output()]).toEqual([1, 'before']);
  await latter.consoles.close();
});

it('a session stays in its project where the instance moves to another', async () => {
  const query = `{ project(id: "${app.demo.project_id}") { instance(id: "${instance}") { consoleSessions(first: 1) { totalCount nodes { id } } } } }`;
  const look = async () => (await app.graphql(query)).json.data.project.instance.consoleSessions;
  const before = await look();
  await app.app.database.prisma.$executeRaw`
    INSERT INTO console_sessions (id, project_id, instance_id, instance_name, user_id, user_email, kind, owner, ended, end_reason)
    VALUES (uuid_v7(), ${app.demo.empty_project_id}::uuid, ${instance}::uuid, '', ${app.demo.users.owner.id}::uuid, '', 'serial', uuid_v7(),
      now(), 'idle')`;
  expect(await look()).toEqual(before);
});

describe('the documented example', () => {
  it('ends with the reason where the credential is wrong', async () => {
    const file = join(mkdtempSync(join(tmpdir(), 'portico-test-')), 'demo.json');
    const { users } = app.demo;
    writeFileSync(file, JSON.stringify({ ...app.demo, users: { ...users, member: { ...users.member, api_key: 'x' } } }));
    const client = spawn(process.execPath, ['docs/clients/console.mjs', file], { cwd: fileURLToPath(packageRoot) });
    let err = '';
    client.stderr.on('data', (bytes) => {
      err += bytes;
    });
    const [code] = await once(client, 'close');
    rmSync(dirname(file), { recursive: true });
    expect([code, err]).toEqual([1, expect.stringMatching(/^\n\[.+\.\]\n$/)]);
  });

  it('prints once that the server is off, and shows the console when it is back', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'portico-test-'));
    const proxy = await openProxy({ host: '127.0.0.1', port: Number(new URL(app.baseUrl).port) });
    await proxy.refuse();
    const file = join(folder, 'demo.json');
    writeFileSync(file, JSON.stringify({ ...app.demo, base_url: `http://127.0.0.1:${proxy.port}` }));
    const client = spawn(process.execPath, ['docs/clients/console.mjs', file], { cwd: fileURLToPath(packageRoot) });
    let [out, err] = ['', ''];
    client.stdout.on('data', (bytes) => {
      out += bytes;
    });
    client.stderr.on('data', (bytes) => {
      err += bytes;
    });
    try {
      const complaint = `\r\n[127.0.0.1:${proxy.port} does not answer: ECONNREFUSED. Trying again; Ctrl-] leaves.]\r\n`;
      await expect.poll(() => err).toBe(complaint);
      await sleep(500);
      expect(err).toBe(complaint);
      await proxy.mend();
      await expect.poll(() => guest.lines.size).toBe(1);
      guest.say('here it is');
      await expect.poll(() => out).toBe('here it is');
      client.stdin.write('typed');
      await expect.poll(() => guest.heard().toString()).toBe('typed');
      client.stdin.write('\x1d');
      const [code] = await once(client, 'exit');
      expect([code, err]).toEqual([0, complaint]);
    } finally {
      client.kill();
      await proxy.close();
      rmSync(folder, { recursive: true, force: true });
    }
  });
});
