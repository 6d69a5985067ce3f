import { createHash, randomBytes } from 'node:crypto';
import type { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { copyTemplate, type TestResponse } from '../support/app.ts';
import { type ConsoleSocket, type Guest, openConsole, openGuest } from '../support/console.ts';
import { type Fleet, findInternalErrors, openFleet, type Replica } from '../support/replicas.ts';
import { execute } from '../support/sql.ts';

// Three replicas relay one console: a client may reconnect to any of them at any moment.
let databaseUrl: string;
let fleet: Fleet;
let guest: Guest;
let instance: string;
const MOST = 5;

beforeAll(async () => {
  databaseUrl = await copyTemplate();
  fleet = await openFleet({ count: 3, databaseUrl, redisUrl: null, env: { CONSOLES_PER_USER: String(MOST), DRAIN_SECONDS: '1' } });
  instance = fleet.demo.instances.eligible;
}, 180_000);
afterAll(async () => {
  expect(findInternalErrors(fleet)).toEqual([]);
  await fleet.close();
});
beforeEach(async () => {
  guest = await openGuest();
  await setEndpoint('serial');
});
afterEach(async () => {
  await guest.close();
  await execute(databaseUrl, `UPDATE console_sessions SET ended = now(), end_reason = 'ended' WHERE ended IS NULL`);
});

const setEndpoint = (kind: 'serial' | 'vnc') =>
  execute(
    databaseUrl,
    `INSERT INTO console_endpoints (instance_id, kind, host, port) VALUES ('${instance}', '${kind}', '127.0.0.1', ${guest.port})
     ON CONFLICT (instance_id) DO UPDATE SET kind = excluded.kind, port = excluded.port`,
  );

type Role = 'admin' | 'member';

/** Adapts a replica to the interface of the console helpers. */
function door({ baseUrl }: Replica) {
  const { demo, projectPath } = fleet;
  const ask = async (method: string, path: string, { as, body }: { as?: unknown; body?: unknown } = {}) => {
    const response = await fetch(baseUrl + path, {
      method,
      headers: { authorization: `Bearer ${demo.users[(as ?? 'member') as Role].token}`, 'content-type': 'application/json' },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    return { status: response.status, headers: {}, text, json: text === '' ? undefined : JSON.parse(text) } as TestResponse;
  };
  return { ask, baseUrl, projectPath };
}

const replica = (index: number) => fleet.replicas[index % fleet.replicas.length] as Replica;

async function open(index: number, options: Parameters<typeof openConsole>[2] = {}): Promise<ConsoleSocket> {
  const console = await openConsole(door(replica(index)), instance, { as: 'member', ...options });
  await console.opened;
  return console;
}

async function readSession(id: string): Promise<Record<string, unknown>> {
  const [row] = await execute(databaseUrl, `SELECT *, bytes_out::int AS out, bytes_in::int AS in FROM console_sessions WHERE id = '${id}'`);
  return row ?? {};
}

/** Writes to every open connection, slowly enough for the scrollback; reports the number of bytes written and their checksum. */
function speakOn() {
  const hash = createHash('sha256');
  let said = 0;
  const isListening = ({ writable, readableEnded }: Socket) => writable && !readableEnded;
  const timer = setInterval(() => {
    const [line] = [...guest.lines].filter(isListening);
    if (!line) return;
    const bytes = randomBytes(1 + Math.floor(Math.random() * 400));
    line.write(bytes);
    hash.update(bytes);
    said += bytes.length;
  }, 2);
  return {
    said: () => said,
    stop: () => {
      clearInterval(timer);
      return hash.digest('hex');
    },
  };
}

describe('a session', () => {
  it('moves to the replica to which its client reconnects, without lost or repeated output', async () => {
    const speaker = speakOn();
    const heard: Buffer[] = [];
    const received = () => heard.reduce((sum, { length }) => sum + length, 0);
    let console = await open(0);
    const id = console.sessionId();
    const delays: number[] = [];
    for (let turn = 1; turn <= 8; turn += 1) {
      const before = console.output().length;
      await expect.poll(() => console.output().length, { interval: 5 }).toBeGreaterThan(before + 5_000);
      // Half of the clients return while still connected, half after their connection was cut.
      if (turn % 2 === 0) console.socket.terminate();
      const part = () => console.output();
      const former = console;
      const has = received() + part().length;
      const own = part();
      const began = performance.now();
      const next = await open(turn, { sessionId: id, after: has });
      delays.push(performance.now() - began);
      heard.push(own);
      if (turn % 2 === 1) expect(await former.closed).toEqual({ code: 4409, reason: 'taken_over' });
      expect([next.sessionId(), next.offset()]).toEqual([id, has]);
      console = next;
    }
    await sleep(200);
    const checksum = speaker.stop();
    await expect.poll(() => received() + console.output().length).toBe(speaker.said());
    const all = Buffer.concat([...heard, console.output()]);
    expect(createHash('sha256').update(all).digest('hex')).toBe(checksum);
    expect(Math.max(...delays)).toBeLessThan(2_000);
    expect(await readSession(id)).toMatchObject({ ended: null });
    console.socket.terminate();
  });

  it('continues at another replica while its own stops, and after that', async () => {
    for (const isAfter of [false, true]) {
      const calls = guest.connections();
      const console = await open(0);
      await expect.poll(() => [guest.connections(), guest.lines.size]).toEqual([calls + 1, 1]);
      guest.say('before ');
      await console.until('before ');
      const stopped = replica(0).stop();
      expect(await console.closed).toEqual({ code: 1012, reason: 'restart' });
      if (isAfter) await stopped;
      const again = await open(1, { sessionId: console.sessionId(), after: 'before '.length });
      await expect.poll(() => [guest.connections(), guest.lines.size]).toEqual([calls + 2, 1]);
      guest.say('after');
      await again.until('after');
      expect([again.output().toString(), again.offset()]).toEqual(['after', 'before '.length]);
      expect(await stopped).toBe(0);
      const whole = await open(1, { sessionId: console.sessionId() });
      await whole.until('before after');
      whole.socket.terminate();
      await replica(0).start();
    }
  });

  it('survives its replica, whose lost output is reported', async () => {
    const console = await open(0);
    await guest.called();
    guest.say('lost with it');
    await console.until('lost with it');
    await replica(0).kill();
    await console.closed;
    const refused = await open(1, { sessionId: console.sessionId(), after: 'lost with it'.length });
    expect(await refused.closed).toEqual({ code: 4416, reason: 'after_not_kept' });
    const again = await open(1, { sessionId: console.sessionId() });
    expect(again.offset()).toBeGreaterThan('lost with it'.length);
    await expect.poll(() => guest.lines.size).toBe(1);
    guest.say('here again');
    await again.until('here again');
    expect(again.output().toString()).toBe('here again');
    again.socket.terminate();
    await replica(0).start();
  });

  it.each([
    ['the same replica', 1],
    ['the first', 0],
    ['another', 2],
  ])('that a replica could not take over in an outage of the database continues at %s with all its output', async (_name, next) => {
    const console = await open(0);
    const id = console.sessionId();
    await guest.called();
    guest.say('kept');
    await console.until('kept');
    const { owner } = await readSession(id);
    // The replica that runs the session is held up, so that the other one waits for its output until the database is away.
    process.kill(replica(0).pid as number, 'SIGSTOP');
    const failed = await openConsole(door(replica(1)), instance, { as: 'member', sessionId: id, after: 4 });
    await expect.poll(async () => (await readSession(id)).owner, { interval: 10 }).not.toBe(owner);
    replica(1).database.cut();
    expect(await failed.closed).toEqual({ code: 1013, reason: 'service_unavailable' });
    process.kill(replica(0).pid as number, 'SIGCONT');
    expect(await console.closed).toEqual({ code: 4409, reason: 'taken_over' });
    await replica(1).database.mend();
    await expect.poll(() => replica(1).isReady()).toBe(true);
    const again = await open(next, { sessionId: id, after: 4 });
    await expect.poll(() => guest.lines.size).toBe(1);
    guest.say(' and more');
    await again.until(' and more');
    expect([again.offset(), again.output().toString()]).toEqual([4, ' and more']);
    again.socket.terminate();
  });

  it('that two replicas claim goes to the last one', async () => {
    const console = await open(0);
    const id = console.sessionId();
    await guest.called();
    guest.say('kept');
    await console.until('kept');
    const owners = [(await readSession(id)).owner];
    process.kill(replica(0).pid as number, 'SIGSTOP');
    const attempts: Array<Promise<ConsoleSocket>> = [];
    for (const index of [1, 2]) {
      attempts.push(openConsole(door(replica(index)), instance, { as: 'member', sessionId: id, after: 4 }));
      await expect.poll(async () => (await readSession(id)).owner, { interval: 10 }).not.toBe(owners.at(-1));
      owners.push((await readSession(id)).owner);
    }
    process.kill(replica(0).pid as number, 'SIGCONT');
    const [, last] = (await Promise.all(attempts)) as [ConsoleSocket, ConsoleSocket];
    await last.opened;
    await expect.poll(() => guest.lines.size).toBe(1);
    guest.say(' and more');
    await last.until(' and more');
    expect([last.offset(), last.output().toString()]).toEqual([4, ' and more']);
    last.socket.terminate();
  });

  it('that continues without the output of a suspended replica ignores it later', async () => {
    const console = await open(0);
    const id = console.sessionId();
    await guest.called();
    guest.say('x'.repeat(1_000));
    await console.until('x'.repeat(1_000));
    process.kill(replica(0).pid as number, 'SIGSTOP');
    // The client comes back with a part of the output, which is lost after it.
    const refused = await openConsole(door(replica(1)), instance, { as: 'member', sessionId: id, after: 100 });
    expect(await refused.closed).toEqual({ code: 4416, reason: 'after_not_kept' });
    const second = await open(1, { sessionId: id });
    await expect.poll(() => guest.lines.size).toBe(2);
    guest.say('second');
    await second.until('second');
    const has = second.offset() + 'second'.length;
    process.kill(replica(0).pid as number, 'SIGCONT');
    expect(await console.closed).toEqual({ code: 4409, reason: 'taken_over' });
    await expect.poll(() => guest.lines.size).toBe(1);
    await sleep(300);
    const third = await open(2, { sessionId: id, after: has });
    await expect.poll(() => guest.lines.size).toBe(1);
    guest.say('third');
    await expect.poll(() => [third.offset(), third.output().toString()]).toEqual([has, 'third']);
    expect(await readSession(id)).toMatchObject({ ended: null, detached_at: null });
    third.socket.terminate();
  });

  it('is not ended by a replica that was suspended, after another has continued it', async () => {
    const console = await open(0);
    const id = console.sessionId();
    const line = await guest.called();
    process.kill(replica(0).pid as number, 'SIGSTOP');
    const refused = await openConsole(door(replica(1)), instance, { as: 'member', sessionId: id, after: 0 });
    expect(await refused.closed).toEqual({ code: 4416, reason: 'after_not_kept' });
    const second = await open(1, { sessionId: id });
    await expect.poll(() => guest.lines.size).toBe(2);
    // The first replica finds its line closed before anything else.
    replica(0).database.cut();
    line.end();
    process.kill(replica(0).pid as number, 'SIGCONT');
    expect(await console.closed).toEqual({ code: 1000, reason: 'console_closed' });
    await replica(0).database.mend();
    await expect.poll(() => replica(0).isReady()).toBe(true);
    await sleep(6_000);
    expect(await readSession(id)).toMatchObject({ ended: null });
    guest.say('second');
    await second.until('second');
    second.socket.terminate();
  });

  it('can be ended through any replica, within a second, with its final counts', async () => {
    const console = await open(0);
    await guest.called();
    guest.say('twelve bytes');
    console.socket.send('four');
    await console.until('twelve bytes');
    await expect.poll(() => guest.heard().toString()).toBe('four');
    const { organization_id: organizationId, project_id: projectId } = fleet.demo;
    const query = 'mutation ($input: EndConsoleSessionInput!) { endConsoleSession(input: $input) { consoleSession { state endReason } } }';
    const variables = { input: { organizationId, projectId, id: console.sessionId() } };
    const response = await door(replica(1)).ask('POST', '/graphql', { as: 'admin', body: { query, variables } });
    expect(response.json).toEqual({ data: { endConsoleSession: { consoleSession: { state: 'over', endReason: 'ended' } } } });
    const answered = performance.now();
    expect(await console.closed).toEqual({ code: 4410, reason: 'ended' });
    expect(performance.now() - answered).toBeLessThan(1_500);
    await expect.poll(() => readSession(console.sessionId())).toMatchObject({ end_reason: 'ended', in: 4, out: 12 });
  });

  it('of a serial console is the only one across replicas', async () => {
    const first = await open(0);
    await guest.called();
    const second = await open(1, { as: 'admin' });
    const opened = performance.now();
    expect(await first.closed).toEqual({ code: 4409, reason: 'taken_over' });
    expect(performance.now() - opened).toBeLessThan(1_500);
    await expect.poll(() => guest.lines.size).toBe(1);
    guest.say('to the second');
    await second.until('to the second');
    second.socket.terminate();
  });

  it('counts towards the quota of its user, for any number of concurrent requests', async () => {
    await setEndpoint('vnc');
    const consoles = await Promise.all(Array.from({ length: 20 }, (_, index) => open(index)));
    const closes: unknown[] = [];
    for (const { closed } of consoles) void closed.then((close) => closes.push(close));
    await expect.poll(() => closes.length).toBe(20 - MOST);
    await sleep(1_000);
    expect(closes).toEqual(Array(20 - MOST).fill({ code: 4429, reason: 'too_many_consoles' }));
    for (const { socket } of consoles) socket.terminate();
  });
});

it('a console continues in an outage of the database, and its record is updated afterwards', async () => {
  const console = await open(0);
  await guest.called();
  replica(0).database.cut();
  await sleep(2_000);
  guest.say('heard');
  console.socket.send('typed');
  await console.until('heard');
  await expect.poll(() => guest.heard().toString()).toBe('typed');
  for (const line of guest.lines) line.end();
  expect(await console.closed).toEqual({ code: 1000, reason: 'console_closed' });
  await replica(0).database.mend();
  await expect.poll(() => readSession(console.sessionId())).toMatchObject({ end_reason: 'console_closed', in: 5, out: 5 });
});

it('a replica that stops in an outage of the database exits with 0, also if the end of a console was not saved', async () => {
  const console = await open(0);
  await guest.called();
  replica(0).database.cut();
  for (const line of guest.lines) line.end();
  expect(await console.closed).toEqual({ code: 1000, reason: 'console_closed' });
  expect(await replica(0).stop()).toBe(0);
  await replica(0).database.mend();
  await replica(0).start();
});
