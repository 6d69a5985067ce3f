import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { openProject, type ProjectScope, rebindScope } from '../../src/access/scope.ts';
import { Consoles } from '../../src/consoles/consoles.ts';
import type { Database } from '../../src/platform/database.ts';
import { createLogger } from '../../src/platform/logger.ts';
import { startApp, type TestApp } from '../support/app.ts';
import { type Guest, openGuest, setEndpoint } from '../support/console.ts';

// Several `Consoles` with one database are the processes between which a session moves.
let app: TestApp;
let guest: Guest;
let instance: string;
const processes: Consoles[] = [];
beforeAll(async () => {
  app = await startApp();
  instance = app.demo.instances.eligible;
});
afterAll(() => app.close());
beforeEach(async () => {
  guest = await openGuest();
  await setEndpoint(app, instance, { port: guest.port });
});
afterEach(async () => {
  await closeProcesses();
  await guest.close();
});

function openProcess(database: Database = app.app.database): Consoles {
  const watch = { add: () => ({ stop: () => {} }) } as never;
  const consoles = new Consoles({ database, watch, log: createLogger('silent'), limits: { perUser: 10, idleMs: 60_000 } });
  processes.push(consoles);
  return consoles;
}

async function closeProcesses(): Promise<void> {
  for (const one of processes.splice(0)) await one.close();
  await expect.poll(() => guest.lines.size).toBe(0);
}

function admit(as: 'admin' | 'member', projectId = app.demo.project_id): Promise<ProjectScope> {
  const { organization_id: organizationId, users } = app.demo;
  const credential = { kind: 'session', expires: new Date(Date.now() + 3_600_000) } as const;
  return openProject(
    app.app.database,
    { userId: users[as].id, email: '', name: '', created: new Date(), credential },
    { organizationId, projectId },
  );
}

/** A client that collects the output. */
function createClient() {
  let output = '';
  const send = (bytes: Buffer, onSent: () => void) => {
    output += bytes.toString();
    onSent();
  };
  return { output: () => output, bufferedAmount: 0, send, pause: () => {}, resume: () => {}, close: (_reason: string) => {} };
}

const request = { after: null, clientAddress: '127.0.0.1' };

/** Opens a session in a process, or attaches to one. */
async function enter(consoles: Consoles, scope: ProjectScope, sessionId: string | null, client = createClient()) {
  const opening = await consoles.prepare(scope, { ...request, instanceId: instance, sessionId });
  if (typeof opening === 'string') throw new Error(opening);
  const attachment = await opening.attach(client);
  if (typeof attachment === 'string') throw new Error(attachment);
  return { id: opening.sessionId, receive: attachment.receive };
}

/** Like `enter`, but returns the id of the session. */
async function attach(...given: Parameters<typeof enter>): Promise<string> {
  return (await enter(...given)).id;
}

/** Begins a session that has said something. */
async function begin(consoles: Consoles, scope: ProjectScope): Promise<string> {
  const client = createClient();
  const id = await attach(consoles, scope, null, client);
  await expect.poll(() => guest.lines.size).toBe(1);
  guest.say('before');
  await expect.poll(client.output).toBe('before');
  return id;
}

it('a session goes to its user while another user claims it', async () => {
  const [member, admin] = [await admit('member'), await admit('admin')];
  const id = await begin(openProcess(), member);
  const consoles = openProcess();
  const client = createClient();
  const asked = consoles.prepare(admin, { ...request, instanceId: instance, sessionId: id });
  await Promise.all([expect(asked).resolves.toBe('session_gone'), attach(consoles, member, id, client)]);
  await expect.poll(client.output).toBe('before');
});

it('a session is claimed at its own instance alone', async () => {
  const member = await admit('member');
  const id = await begin(openProcess(), member);
  const consoles = openProcess();
  const elsewhere = app.demo.instances.console;
  await setEndpoint(app, elsewhere, { port: guest.port });
  const asked = consoles.prepare(member, { ...request, instanceId: elsewhere, sessionId: id });
  const client = createClient();
  // At that moment the same user asks for it where it is.
  await Promise.all([expect(asked).resolves.toBe('session_gone'), attach(consoles, member, id, client)]);
  await expect.poll(client.output).toBe('before');
});

it('the later of two concurrent clients of a screen is attached', async () => {
  const member = await admit('member');
  const screen = await openGuest((line) => line.write('RFB 003.008'));
  await setEndpoint(app, instance, { kind: 'vnc', port: screen.port });
  const consoles = openProcess();
  const id = await attach(consoles, member, null);
  const openings = await Promise.all([0, 1].map(() => consoles.prepare(member, { ...request, instanceId: instance, sessionId: id })));
  for (const opening of openings) {
    if (typeof opening === 'string') throw new Error(opening);
    const client = createClient();
    expect(await opening.attach(client)).toMatchObject({ kind: 'vnc' });
    await expect.poll(client.output).toBe('RFB 003.008');
  }
  await closeProcesses();
  await screen.close();
});

it('a closed process claims no session, which stays for the next process', async () => {
  const member = await admit('member');
  const former = openProcess();
  const id = await begin(former, member);
  await former.close();
  const closed = openProcess();
  await closed.close();
  await expect(closed.prepare(member, { ...request, instanceId: instance, sessionId: id })).rejects.toMatchObject({
    code: 'service_unavailable',
  });
  const client = createClient();
  await attach(openProcess(), member, id, client);
  await expect.poll(client.output).toBe('before');
});

it('a process that closes while a session begins there hands it over, and begins none after that', async () => {
  const member = await admit('member');
  const consoles = openProcess();
  const transact = async (...work: Parameters<Database['transact']>) => {
    await sleep(200);
    return app.app.database.transact(...work);
  };
  const slow = rebindScope(member, Object.create(app.app.database, { transact: { value: transact } }) as Database);
  const prepare = () => consoles.prepare(slow, { ...request, instanceId: instance, sessionId: null });
  const [opening, later] = [await prepare(), await prepare()];
  if (typeof opening === 'string' || typeof later === 'string') throw new Error('there is no console');
  const attaching = opening.attach(createClient());
  await consoles.close();
  await attaching;
  expect(consoles.count()).toEqual({ attached: 0, detached: 0 });
  await expect(later.attach(createClient())).rejects.toMatchObject({ code: 'service_unavailable' });
  const stored = await app.app.database.prisma.consoleHandover.findMany({ where: { sessionId: opening.sessionId } });
  expect(stored).toHaveLength(1);
});

it.each(['the same process', 'another process'])('a session can be attached in its own project alone, in %s', async (where) => {
  const other = await admit('admin', app.demo.empty_project_id);
  const former = openProcess();
  const id = await begin(former, await admit('admin'));
  const consoles = where === 'the same process' ? former : openProcess();
  if (consoles !== former) await former.close();
  const move = (projectId: string) => app.app.database.prisma.instance.update({ where: { id: instance }, data: { projectId } });
  await move(other.projectId);
  try {
    expect(await consoles.prepare(other, { ...request, instanceId: instance, sessionId: id })).toBe('session_gone');
  } finally {
    await move(app.demo.project_id);
  }
});

it('another user’s session takes the statements of an absent one, and is not locked', async () => {
  const consoles = openProcess();
  const theirs = await begin(consoles, await admit('admin'));
  const member = await admit('member');
  const lookFor = async (sessionId: string) => {
    const statements: string[] = [];
    app.listen((sql, values) => {
      if (values.includes(sessionId)) statements.push(sql);
    });
    return [await consoles.prepare(member, { ...request, instanceId: instance, sessionId }), ...statements];
  };
  const absent = await lookFor(randomUUID());
  expect(absent[0]).toBe('session_gone');
  expect(await lookFor(theirs)).toEqual(absent);
});

it('a client that reclaims its session while the process reads the claims keeps it', async () => {
  const member = await admit('member');
  let claim: (() => Promise<void>) | null = null;
  const closings: string[] = [];
  const client = { ...createClient(), close: (reason: string) => closings.push(reason) };
  const query = async (...statement: Parameters<Database['query']>) => {
    const isSnapshot = /session\.owner AS/.test(statement[0].join());
    const claimed = isSnapshot ? claim : null;
    if (claimed) {
      claim = null;
      await app.app.database.prisma.$executeRawUnsafe(`UPDATE console_sessions SET owner = gen_random_uuid() WHERE id = '${id}'`);
    }
    const rows = await app.app.database.query(...statement);
    await claimed?.();
    return rows;
  };
  const consoles = openProcess(Object.create(app.app.database, { query: { value: query } }) as Database);
  const id = await begin(consoles, member);
  await new Promise<void>((resolve) => {
    claim = async () => {
      await attach(consoles, member, id, client);
      setTimeout(resolve, 200);
    };
  });
  expect({ closings, ...consoles.count() }).toEqual({ closings: [], attached: 1, detached: 0 });
});

it('the input of a detached client does not reach the console', async () => {
  const member = await admit('member');
  const consoles = openProcess();
  const former = await enter(consoles, member, null);
  const next = await enter(consoles, member, former.id);
  await expect.poll(() => guest.lines.size).toBe(1);
  former.receive(Buffer.from('former'));
  next.receive(Buffer.from('next'));
  await expect.poll(() => String(guest.heard())).toBe('next');
});

it.each(['the same process', 'another process'])(
  'a claim that fails at any statement loses nothing: the next one, of %s, has the output',
  async (whose) => {
    const member = await admit('member');
    let failsAt = 1;
    for (let hasFailed = true; hasFailed; failsAt += 1) {
      const former = openProcess();
      const id = await begin(former, member);
      await former.close();
      let statements = 0;
      const query = (...statement: Parameters<Database['query']>) => {
        statements += 1;
        return statements === failsAt ? Promise.reject(new Error('the connection was lost')) : app.app.database.query(...statement);
      };
      const failing = rebindScope(member, Object.create(app.app.database, { query: { value: query } }) as Database);
      const consoles = openProcess();
      const opening = await consoles
        .prepare(failing, { ...request, instanceId: instance, sessionId: id })
        .catch((failure: Error) => failure.message);
      hasFailed = opening === 'the connection was lost';
      const client = createClient();
      await attach(hasFailed && whose === 'another process' ? openProcess() : consoles, member, id, client);
      await expect.poll(client.output, { message: `statement ${failsAt}` }).toBe('before');
      await closeProcesses();
    }
    expect(failsAt).toBeGreaterThan(4);
  },
);

describe('a client that loses a race for a session', () => {
  const change = (id: string, assignment: string) =>
    app.app.database.prisma.$executeRawUnsafe(`UPDATE console_sessions SET ${assignment} WHERE id = '${id}'`);
  const another = 'owner = gen_random_uuid(), runner = gen_random_uuid()';
  const end = "ended = now(), end_reason = 'ended'";

  it.each([
    ['is to come back, as the session continues', another, 'restart'],
    ['is told that the session is gone, if it has ended', end, 'session_gone'],
  ])('%s', async (_, assignment, reason) => {
    const member = await admit('member');
    const former = openProcess();
    const opening = await former.prepare(member, { ...request, instanceId: instance, sessionId: await begin(former, member) });
    if (typeof opening === 'string') throw new Error(opening);
    await change(opening.sessionId, assignment);
    expect(await opening.attach(createClient())).toBe(reason);
    await closeProcesses();

    const owner = openProcess();
    const id = await begin(owner, member);
    await owner.close();
    const query = async (...statement: Parameters<Database['query']>) => {
      if (/SET runner =/.test(statement[0].join())) await change(id, assignment);
      return app.app.database.query(...statement);
    };
    const racing = rebindScope(member, Object.create(app.app.database, { query: { value: query } }) as Database);
    expect(await openProcess().prepare(racing, { ...request, instanceId: instance, sessionId: id })).toBe(reason);
    await closeProcesses();
  });
});

/** Does something while the monotonic clock is fast: seconds for which a process waits for a dead one are a moment. */
async function hurry<Result>(work: () => Promise<Result>): Promise<Result> {
  const now = performance.now.bind(performance);
  const began = now();
  const clock = vi.spyOn(performance, 'now').mockImplementation(() => began + 20 * (now() - began));
  try {
    return await work();
  } finally {
    clock.mockRestore();
  }
}

it('output after the death of either process does not continue at a position that a client may have', async () => {
  const member = await admit('member');
  const former = openProcess();
  const id = await begin(former, member);
  const say = async (consoles: Consoles) => {
    const client = createClient();
    const opening = await hurry(() => consoles.prepare(member, { ...request, instanceId: instance, sessionId: id }));
    if (typeof opening === 'string') throw new Error(opening);
    await opening.attach(client);
    await expect.poll(() => guest.lines.size).toBe(1);
    guest.say('x'.repeat(60));
    await expect.poll(client.output).toBe('x'.repeat(60));
    return opening.position;
  };
  /** What the process stored is gone, and a client has more of its output than was saved. */
  const die = async (consoles: Consoles) => {
    await consoles.close();
    await app.app.database.prisma.$executeRawUnsafe(`DELETE FROM console_handovers WHERE session_id = '${id}'`);
  };
  await die(former);
  const [second, third] = [openProcess(), openProcess()];
  const began = await say(second);
  expect(await second.prepare(member, { ...request, instanceId: instance, sessionId: id, after: 50 })).toBe('after_not_kept');
  await die(second);
  await say(third);
  expect(await third.prepare(member, { ...request, instanceId: instance, sessionId: id, after: began + 50 })).toBe('after_not_kept');
});
