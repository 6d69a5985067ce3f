import type { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import WebSocket from 'ws';
import { startApp, type TestApp } from '../support/app.ts';
import { type Guest, openGuest, setEndpoint } from '../support/console.ts';
import { openSocket } from '../support/feed.ts';

let app: TestApp;
let guest: Guest;
beforeAll(async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] });
  app = await startApp({ RATE_LIMIT_USER: '100000000' });
  guest = await openGuest();
  await setEndpoint(app, app.demo.instances.eligible, { port: guest.port });
});
afterAll(async () => {
  await app.close();
  await guest.close();
  vi.useRealTimers();
});

const paths = {
  'a feed': () => `${app.projectPath}/notifications/ws`,
  'a console': () => `${app.projectPath}/compute/instances/${app.demo.instances.eligible}/console/ws`,
};

async function open(path: string, autoPong: boolean): Promise<WebSocket> {
  const headers = { authorization: `Bearer ${app.demo.users.member.token}` };
  const socket = new WebSocket(app.baseUrl.replace('http', 'ws') + path, { headers, autoPong, perMessageDeflate: false });
  await new Promise((resolve, reject) => socket.once('open', resolve).once('error', reject));
  return socket;
}

/** Lets seconds pass at the server, with time for what goes over the wire in each; returns after how many the socket closed. */
async function pass(seconds: number, socket: WebSocket): Promise<number | null> {
  for (let second = 1; second <= seconds; second += 1) {
    vi.advanceTimersByTime(1_000);
    // Every fifteenth is one of pings: they, their pongs and a closing take a while on a busy machine.
    await sleep(second % 15 === 0 ? 300 : 5);
    if (socket.readyState === WebSocket.CLOSED) return second;
  }
  return null;
}

/** Waits for what goes over the wire, while no time passes at the server: `expect.poll` would advance its timers. */
async function until(isSo: () => boolean | Promise<boolean>): Promise<void> {
  for (let tries = 0; !(await isSo()); tries += 1) {
    if (tries === 3_000) throw new Error(`not within a minute: ${isSo}`);
    await sleep(20);
  }
}

it.each(Object.entries(paths))('%s whose client answers pings stays open', async (_name, path) => {
  const socket = await open(path(), true);
  let pings = 0;
  socket.on('ping', () => {
    pings += 1;
  });
  expect(await pass(61, socket)).toBeNull();
  await until(() => pings === 4);
  socket.terminate();
});

it.each(Object.entries(paths))('%s whose client does not answer pings is dropped with the second one', async (_name, path) => {
  const socket = await open(path(), false);
  expect(await pass(29, socket)).toBeNull();
  vi.advanceTimersByTime(1_000);
  await until(() => socket.readyState === WebSocket.CLOSED);
});

/** The network connection below a client's socket. */
const transportOf = (socket: WebSocket) => (socket as unknown as { _socket: Socket })._socket;

/** Appends notifications of some 20 KB each. */
const append = (count: number) => app.app.database.prisma.$executeRaw`INSERT INTO notifications (project_id, kind, severity, title, body)
  SELECT ${app.demo.project_id}::uuid, 'test.load', 'info', 'load', repeat('x', 20000) FROM generate_series(1, ${count}::int)`;

/** Whether bytes wait for clients that do not read. */
const hasUnread = async () =>
  /^portico_unread_bytes [1-9]/m.test(await app.app.metrics.registry.getSingleMetricAsString('portico_unread_bytes'));

it('a feed whose client reads slowly has time for the bytes before a ping at 4 KiB a second', async () => {
  const socket = await open(paths['a feed'](), false);
  let messages = 0;
  socket.on('message', () => void (messages += 1));
  await until(() => messages === 1);
  const other = await open(paths['a feed'](), true);
  let seen = 0;
  other.on('message', () => void (seen += 1));
  await until(() => seen === 1);
  const transport = transportOf(socket).pause();
  await append(16);
  expect(await pass(2, socket)).toBeNull();
  await until(() => seen === 17);
  other.terminate();
  expect(await hasUnread()).toBe(false);
  // The ping comes after more than five times the bytes of an interval.
  expect(await pass(13 + 6 * 15 - 1, socket)).toBeNull();
  transport.resume();
  await until(() => messages === 17);
  socket.pong();
  await sleep(300);
  expect(await pass(15, socket)).toBeNull();
  // Its next ping came after nothing else, and it has not answered that.
  expect(await pass(15, socket)).not.toBeNull();
});

it('a feed whose client does not read is dropped after five minutes, regardless of its messages', async () => {
  const socket = await open(paths['a feed'](), false);
  await new Promise((resolve) => socket.once('message', resolve));
  transportOf(socket).pause();
  await append(1_000);
  expect(await pass(2, socket)).toBeNull();
  await until(hasUnread);
  for (let minute = 1; minute <= 4; minute += 1) {
    expect(await pass(60, socket)).toBeNull();
    socket.pong();
  }
  expect(await pass(50, socket)).toBeNull();
  vi.advanceTimersByTime(15_000);
  await until(async () => !(await hasUnread()));
  transportOf(socket).resume();
  await until(() => socket.readyState === WebSocket.CLOSED);
});

it('a feed whose client resumes reading just before its pong is due has time to answer', async () => {
  const socket = await open(paths['a feed'](), false);
  const transport = transportOf(socket);
  const count = 1_000;
  const seen = { pings: 0, messages: 0 };
  socket.on('ping', () => void (seen.pings += 1)).on('message', () => void (seen.messages += 1));
  await until(() => seen.messages === 1);
  transport.pause();
  // More than the kernel takes for a client that reads nothing: the ping waits behind it.
  await append(count);
  expect(await pass(2, socket)).toBeNull();
  await until(hasUnread);
  expect(await pass(27, socket)).toBeNull();
  transport.resume();
  await until(() => seen.pings === 1 && seen.messages === 1 + count);
  expect(await pass(15, socket)).toBeNull();
  // One that never answers has five minutes more at most.
  expect(await pass(16 + 20 * 15, socket)).toBeGreaterThan(15);
});

describe('a client of GraphQL that continues to send', () => {
  const query = `query ($organizationId: ID!, $id: ID!) {
    project(organizationId: $organizationId, id: $id) { notifications(first: 100) { nodes { body } } }
  }`;

  /** A socket whose client does not read, with a response of two megabytes that waits for it. */
  async function openUnread() {
    await append(100);
    const headers = { authorization: `Bearer ${app.demo.users.member.token}` };
    const feed = openSocket(app, '/graphql', { protocol: 'graphql-transport-ws', headers });
    const say = (message: unknown) => feed.socket.send(JSON.stringify(message));
    await new Promise((resolve) => feed.socket.once('open', resolve));
    say({ type: 'connection_init' });
    await feed.until(({ type }) => type === 'connection_ack');
    transportOf(feed.socket).pause();
    const variables = { organizationId: app.demo.organization_id, id: app.demo.project_id };
    let count = 0;
    for (; count < 20 && !(await hasUnread()); await sleep(200)) {
      say({ id: `${count}`, type: 'subscribe', payload: { query, variables } });
      count += 1;
    }
    return { ...feed, say, count };
  }

  it('is answered when it has read a large response', async () => {
    const { socket, frames, say, count } = await openUnread();
    for (let number = 0; number < 20; number += 1) say({ type: 'ping' });
    await sleep(300);
    transportOf(socket).resume();
    const countOf = (kind: string) => frames.filter(({ type }) => type === kind).length;
    // The last response may not have been ready when the pings came.
    await until(() => countOf('pong') >= 20 && countOf('next') === count);
    expect(countOf('pong')).toBe(20);
    socket.terminate();
  });

  it('is dropped when more than 512 answers wait', async () => {
    const { socket, say } = await openUnread();
    for (let number = 0; number <= 512; number += 1) {
      say({ type: 'ping' });
      if (number % 50 === 49) await pass(1, socket);
    }
    await sleep(300);
    expect(await hasUnread()).toBe(true);
    say({ type: 'ping' });
    await until(async () => !(await hasUnread()));
    socket.terminate();
  });
});

it('a client that waits for its console is not dropped', async () => {
  const before = guest.connections();
  const socket = await open(paths['a console'](), true);
  await until(() => guest.connections() === before + 1);
  const line = [...guest.lines].at(-1);
  line?.pause();
  const typed = Buffer.alloc(64 * 2 ** 20, 'x');
  for (let at = 0; at < typed.length; at += 2 ** 19) socket.send(typed.subarray(at, at + 2 ** 19));
  // The console takes no more, so the server reads no more: what is left waits at the client.
  await until(async () => {
    const waiting = socket.bufferedAmount;
    await sleep(300);
    return waiting > 0 && socket.bufferedAmount === waiting;
  });
  expect(await pass(181, socket)).toBeNull();
  line?.resume();
  await until(() => guest.heard().length === typed.length);
  // From here on it has to answer again.
  expect(await pass(61, socket)).toBeNull();
  socket.terminate();
});
