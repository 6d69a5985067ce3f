import type { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import WebSocket from 'ws';
import { startApp, type TestApp } from '../support/app.ts';
import { type Guest, openGuest, setEndpoint } from '../support/console.ts';

let app: TestApp;
let guest: Guest;
beforeAll(async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
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

it.each(Object.entries(paths))('%s whose client answers pings stays open', async (_name, path) => {
  const socket = await open(path(), true);
  let pings = 0;
  socket.on('ping', () => {
    pings += 1;
  });
  expect(await pass(61, socket)).toBeNull();
  await expect.poll(() => pings).toBe(4);
  socket.terminate();
});

it.each(Object.entries(paths))('%s whose client answers nothing is dropped with the second ping', async (_name, path) => {
  const socket = await open(path(), false);
  expect(await pass(29, socket)).toBeNull();
  vi.advanceTimersByTime(1_000);
  await expect.poll(() => socket.readyState).toBe(WebSocket.CLOSED);
});

it('a feed whose client reads on just before its pong is due has time to answer', async () => {
  const socket = await open(paths['a feed'](), false);
  const { _socket: transport } = socket as unknown as { _socket: Socket };
  const count = 1_000;
  const seen = { pings: 0, messages: 0 };
  socket.on('ping', () => void (seen.pings += 1)).on('message', () => void (seen.messages += 1));
  await expect.poll(() => seen.messages).toBe(1);
  transport.pause();
  // More than the kernel takes for a client that reads nothing: the ping waits behind it.
  await app.app.database.$executeRaw`INSERT INTO notifications (project_id, kind, severity, title, body)
    SELECT ${app.demo.project_id}::uuid, 'test.load', 'info', 'load', repeat('x', 20000) FROM generate_series(1, ${count}::int)`;
  expect(await pass(2, socket)).toBeNull();
  await expect.poll(() => app.app.metrics.registry.getSingleMetricAsString('portico_unread_bytes')).toMatch(/ [1-9]\d*$/);
  expect(await pass(27, socket)).toBeNull();
  transport.resume();
  await expect.poll(() => seen).toEqual({ pings: 1, messages: 1 + count });
  expect(await pass(15, socket)).toBeNull();
  // It has had its time.
  vi.advanceTimersByTime(1_000);
  await expect.poll(() => socket.readyState).toBe(WebSocket.CLOSED);
});

it('a client that waits for its console is not taken for one that is gone', async () => {
  const before = guest.connections();
  const socket = await open(paths['a console'](), true);
  await expect.poll(() => guest.connections()).toBe(before + 1);
  const line = [...guest.lines].at(-1);
  line?.pause();
  const typed = Buffer.alloc(64 * 2 ** 20, 'x');
  for (let at = 0; at < typed.length; at += 2 ** 19) socket.send(typed.subarray(at, at + 2 ** 19));
  // The console takes no more, so the server reads no more: what is left waits at the client.
  await expect
    .poll(async () => [socket.bufferedAmount, await sleep(300), socket.bufferedAmount])
    .toSatisfy(([before, , after]) => before > 0 && before === after);
  expect(await pass(181, socket)).toBeNull();
  line?.resume();
  await expect.poll(() => guest.heard().length).toBe(typed.length);
  // From here on it has to answer again.
  expect(await pass(61, socket)).toBeNull();
  socket.terminate();
});
