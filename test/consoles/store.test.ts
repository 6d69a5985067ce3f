import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type Endpoint, isSameEndpoint } from '../../src/consoles/endpoint.ts';
import {
  claimSession,
  findConsole,
  insertSession,
  isSessionRunning,
  readHandover,
  recordAttachment,
  saveEnds,
  saveHandover,
  saveSessions,
  takeSession,
} from '../../src/consoles/store.ts';
import type { Database } from '../../src/platform/database.ts';
import { startApp, type TestApp } from '../support/app.ts';

let app: TestApp;
let database: Database;
/** What a session is asked for by. */
let facts: { readonly projectId: string; readonly instanceId: string; readonly userId: string };
beforeAll(async () => {
  app = await startApp();
  database = app.app.database;
  const { project_id: projectId, instances, users } = app.demo;
  facts = { projectId, instanceId: instances.console, userId: users.member.id };
});
afterAll(() => app.close());

const [processId, another] = [randomUUID(), randomUUID()];
const ended = new Date('2026-01-02T03:04:05.000Z');
const over = { ended, endReason: 'idle' } as const;
let id: string;
beforeEach(() => {
  id = randomUUID();
});

/** A session that runs in the process `processId`, with what a test says of it. */
async function add(rest: object = {}): Promise<string> {
  const row = {
    id: randomUUID(),
    ...facts,
    instanceName: 'web',
    userEmail: '',
    kind: 'serial' as const,
    owner: processId,
    runner: processId,
  };
  await database.prisma.consoleSession.create({ data: { ...row, ...rest } });
  return 'id' in rest ? String(rest.id) : row.id;
}

const read = () => database.prisma.consoleSession.findUniqueOrThrow({ where: { id } });
const counts = (bytes: number) => ({ id, bytesIn: bytes, bytesOut: bytes });
const countHandovers = () => database.prisma.consoleHandover.count({ where: { sessionId: id } });
const handover = { position: 5, scrollback: Buffer.from('hello') };

/** From here on the user has no running session but those of the test. */
const endOthers = () =>
  database.prisma.consoleSession.updateMany({ where: { userId: facts.userId, ended: null, id: { not: id } }, data: over });

/** The sessions that are not the one that is meant, each for one reason. */
const others = () => [
  { what: 'of another user', given: { userId: app.demo.users.admin.id } },
  { what: 'of another instance', given: { instanceId: app.demo.instances.eligible } },
  { what: 'of another project', given: { projectId: app.demo.empty_project_id } },
];

it('an instance is found in its own project alone', async () => {
  expect(await findConsole(database, facts.projectId, facts.instanceId)).not.toBeNull();
  expect(await findConsole(database, app.demo.empty_project_id, facts.instanceId)).toBeNull();
});

it('endpoints differ where any part of them differs', () => {
  const line: Endpoint = { kind: 'serial', host: '127.0.0.1', port: 1, socketPath: null };
  const path: Endpoint = { kind: 'serial', host: null, port: null, socketPath: '/run/one' };
  for (const one of [line, path]) expect(isSameEndpoint(one, { ...one })).toBe(true);
  const others: Array<[Endpoint, Partial<Endpoint>]> = [
    [line, { kind: 'vnc' }],
    [line, { host: '127.0.0.2' }],
    [line, { port: 2 }],
    [path, { socketPath: '/run/two' }],
  ];
  for (const [one, part] of others) expect(isSameEndpoint(one, { ...one, ...part }), JSON.stringify(part)).toBe(false);
});

describe('a new session', () => {
  const start = (max: number, rest: object = {}) => {
    const session = { id, ...facts, instanceName: 'web', userEmail: '', kind: 'serial' as const, clientAddress: '192.0.2.1', processId };
    return insertSession(database, { ...session, ...rest }, max);
  };

  it('counts the sessions of the user with a client and a live process', async () => {
    await endOthers();
    const rest = { instanceId: app.demo.instances.eligible };
    await add({ ...rest, detachedAt: ended });
    await add({ ...rest, ...over });
    await add({ ...rest, userId: app.demo.users.admin.id });
    await add({ ...rest, seen: new Date(Date.now() - 25_000) });
    expect(await start(1)).toEqual([]);
    expect(await read()).toMatchObject({ owner: processId, runner: processId, clientAddresses: ['192.0.2.1'], ended: null });
    id = randomUUID();
    expect(await start(1, { kind: 'vnc' })).toBeNull();
    expect(await database.prisma.consoleSession.findUnique({ where: { id } })).toBeNull();
    expect(await start(2, { kind: 'vnc' })).toEqual([]);
  });

  it('ends the sessions that its user left first, so that detached ones are bounded like attached ones', async () => {
    await endOthers();
    const rest = { instanceId: app.demo.instances.eligible, kind: 'vnc' as const };
    const secondsAgo = (seconds: number) => new Date(Date.now() - seconds * 1_000);
    const left = [await add({ ...rest, detachedAt: secondsAgo(30) }), await add({ ...rest, detachedAt: secondsAgo(20) })];
    const attached = await add(rest);
    const of = await add({ ...rest, userId: app.demo.users.admin.id, detachedAt: secondsAgo(40) });
    expect(await start(2)).toEqual([]);
    const reasons = async () => {
      const rows = await database.prisma.consoleSession.findMany({
        where: { id: { in: [...left, attached, of, id] } },
        orderBy: { detachedAt: 'asc' },
      });
      return rows.map(({ endReason }) => endReason);
    };
    expect(await reasons()).toEqual([null, null, null, null, null]);
    await database.prisma.consoleSession.update({ where: { id: attached }, data: { detachedAt: secondsAgo(10) } });
    expect(await start(2, { id: randomUUID(), instanceId: app.demo.instances.eligible, kind: 'vnc' })).toEqual([]);
    // That of the other user, the three that were left, and the one that is attached.
    expect(await reasons()).toEqual([null, 'detached', null, null, null]);
  });

  it('of a serial console ends the others there, which do not count, and no other session', async () => {
    await endOthers();
    const elsewhere = await add({ instanceId: app.demo.instances.eligible });
    const screen = await add({ kind: 'vnc' });
    const taken = [await add(), await add({ userId: app.demo.users.admin.id })];
    expect(await start(2)).toBeNull();
    const started = await start(3);
    // Some are those of other tests.
    expect(started).toEqual(expect.arrayContaining(taken));
    expect(started).not.toContain(screen);
    const find = async (ids: string[]) => {
      const rows = await database.prisma.consoleSession.findMany({ where: { id: { in: ids } } });
      return rows.map(({ endReason }) => endReason);
    };
    expect([await find(taken), await find([elsewhere, screen, id])]).toEqual([
      ['taken_over', 'taken_over'],
      [null, null, null],
    ]);
    await add({ id: (id = randomUUID()) });
    expect(await start(10, { id: randomUUID(), kind: 'vnc' })).toEqual([]);
    expect((await read()).ended).toBeNull();
  });
});

describe('a claim', () => {
  it('makes the process the owner, and returns the processes that may run the session', async () => {
    await add({ id });
    const [second, third] = [randomUUID(), randomUUID()];
    expect(await claimSession(database, { id, ...facts, processId: second })).toEqual([processId, processId]);
    expect(await claimSession(database, { id, ...facts, processId: third })).toEqual([second, processId]);
    expect(await read()).toMatchObject({ owner: third, runner: processId });
  });

  it('of a session without a runner, from before that column, has its owner as the runner', async () => {
    await add({ id, runner: null });
    expect(await claimSession(database, { id, ...facts, processId: another })).toEqual([processId, processId]);
    expect(await read()).toMatchObject({ owner: another, runner: processId });
  });

  it('succeeds for the right user, instance and project alone, and while the session runs', async () => {
    await add({ id });
    for (const { what, given } of others()) {
      expect(await claimSession(database, { id, ...facts, ...given, processId: another }), what).toBeNull();
      expect(await isSessionRunning(database, { id, ...facts, ...given }), what).toBe(false);
    }
    expect(await isSessionRunning(database, { id, ...facts })).toBe(true);
    await database.prisma.consoleSession.update({ where: { id }, data: over });
    expect(await claimSession(database, { id, ...facts, processId: another })).toBeNull();
    expect(await isSessionRunning(database, { id, ...facts })).toBe(false);
    expect(await read()).toMatchObject({ owner: processId, runner: processId });
  });
});

describe('a session is taken', () => {
  it('by its owner, with its stored state', async () => {
    await add({ id, owner: another, bytesIn: 3, bytesOut: 4 });
    await saveHandover(database, processId, counts(7), handover);
    expect(await takeSession(database, another, id)).toEqual({ id, bytesIn: 7, bytesOut: 7 });
    expect(await read()).toMatchObject({ owner: another, runner: another });
    expect(await countHandovers()).toBe(0);
  });

  it.each([
    ['by a process that has not claimed it', {}],
    ['after it has ended', { owner: another, ...over }],
  ])('not %s, and its stored state stays', async (_when, rest) => {
    await add({ id, ...rest });
    await database.prisma.consoleHandover.create({ data: { sessionId: id, owner: processId, ...handover } });
    expect(await takeSession(database, another, id)).toBeNull();
    expect(await read()).toMatchObject({ runner: processId });
    expect(await countHandovers()).toBe(1);
  });
});

describe('the handover of a session', () => {
  it('is read from the processes that may have stored it, the newest first', async () => {
    await add({ id });
    await saveHandover(database, processId, counts(1), handover);
    await database.prisma.consoleHandover.create({
      data: { sessionId: id, owner: another, position: 1, scrollback: Buffer.from('x'), created: new Date(0) },
    });
    expect(await readHandover(database, id, [randomUUID()])).toBeNull();
    expect(await readHandover(database, id, [another])).toMatchObject({ position: 1 });
    expect(await readHandover(database, id, [processId, another])).toMatchObject({ position: 5 });
    await saveHandover(database, processId, counts(1), { position: 9, scrollback: Buffer.from('x') });
    expect(await readHandover(database, id, [processId])).toMatchObject({ position: 9 });
  });

  it('saves its last heartbeat, without a client', async () => {
    await add({ id, seen: ended });
    await saveHandover(database, processId, counts(6), handover);
    const { seen, detachedAt } = await read();
    expect([seen > ended, detachedAt !== null, await countHandovers()]).toEqual([true, true, 1]);
    await database.prisma.consoleSession.update({ where: { id }, data: { detachedAt: ended } });
    await saveHandover(database, processId, counts(8), handover);
    expect(await read()).toMatchObject({ bytesIn: 8n, bytesOut: 8n, detachedAt: ended });
  });

  it.each([
    ['that another process runs', { runner: another }],
    ['that has ended', over],
  ])('is not stored for one %s', async (_which, rest) => {
    await add({ id, ...rest });
    await saveHandover(database, processId, counts(6), handover);
    expect([await read(), await countHandovers()]).toMatchObject([{ bytesIn: 0n, bytesOut: 0n, detachedAt: null }, 0]);
  });
});

describe('a heartbeat', () => {
  it('saves since when there is no client, until there is one', async () => {
    await add({ id, seen: ended, detachedAt: ended });
    await saveSessions(database, processId, [{ ...counts(2), isDetached: true }]);
    const { seen, ...saved } = await read();
    expect([seen > ended, saved]).toMatchObject([true, { detachedAt: ended, bytesIn: 2n, bytesOut: 2n }]);
    await saveSessions(database, processId, [{ ...counts(2), isDetached: false }]);
    expect((await read()).detachedAt).toBeNull();
    await saveSessions(database, processId, [{ ...counts(2), isDetached: true }]);
    expect((await read()).detachedAt).not.toBeNull();
  });

  it.each([
    ['that another process has claimed', { owner: another }],
    ['that has ended', over],
  ])('changes nothing of a session %s', async (_which, rest) => {
    await add({ id, seen: ended, ...rest });
    const before = await read();
    await saveSessions(database, processId, [{ ...counts(2), isDetached: true }]);
    expect(await read()).toEqual(before);
  });
});

describe('an end', () => {
  const end = () => saveEnds(database, processId, [{ ...counts(9), reason: 'console_closed', secondsAgo: 0 }]);

  it('is saved once: a later one updates the counts, and not the reason or time', async () => {
    await add({ id });
    await end();
    expect(await read()).toMatchObject({ endReason: 'console_closed', ended: expect.any(Date), bytesIn: 9n });
    await database.prisma.consoleSession.update({ where: { id }, data: { ...over, bytesIn: 0 } });
    await end();
    expect(await read()).toMatchObject({ ...over, bytesIn: 9n, bytesOut: 9n });
  });

  it('is not saved by a process that runs the session no longer', async () => {
    await add({ id, runner: another });
    await end();
    expect(await read()).toMatchObject({ ended: null, endReason: null, bytesIn: 0n });
  });
});

describe('an attachment', () => {
  const attach = (max = 100) => recordAttachment(database, { id, userId: facts.userId, clientAddress: '192.0.2.1', processId }, max);

  it('succeeds in the process that runs the session, also where another has claimed it', async () => {
    await add({ id, owner: another, detachedAt: ended, seen: ended });
    expect(await attach()).toBe('attached');
    const { seen, ...saved } = await read();
    expect([seen > ended, saved]).toMatchObject([true, { owner: processId, detachedAt: null, clientAddresses: ['192.0.2.1'] }]);
  });

  it.each([
    ['has ended', over],
    ['runs in another process', { runner: another }],
  ])('is lost where the session %s', async (_which, rest) => {
    await add({ id, ...rest });
    expect(await attach()).toBe('lost');
    expect((await read()).clientAddresses).toEqual([]);
  });

  it('counts the other sessions of the user with a client and a live process', async () => {
    await add({ id });
    await endOthers();
    await add({ detachedAt: ended });
    await add(over);
    await add({ userId: app.demo.users.admin.id });
    await add({ seen: new Date(Date.now() - 25_000) });
    expect(await attach(1)).toBe('attached');
    await add({ seen: new Date(Date.now() - 10_000) });
    expect(await attach(1)).toBe('too_many_consoles');
    expect(await attach(2)).toBe('attached');
  });
});
