import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, expect, it, vi } from 'vitest';
import { collectGarbage } from '../../src/platform/garbage.ts';
import { SocketConnection } from '../../src/transport/sockets/connection.ts';
import { startApp, type TestApp } from '../support/app.ts';
import { openRawSocket, type RawSocket } from '../support/raw.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startApp({ RATE_LIMIT_USER: '1000000' });
});
afterAll(() => app.close());
afterEach(() => void vi.restoreAllMocks());

/** A socket to which the server's answers are not sent, as those to a peer that does not read; `expectSent` waits for so many. */
async function openStuck(): Promise<RawSocket & { expectSent(count: number): Promise<void> }> {
  const headers = { authorization: `Bearer ${app.demo.users.owner.token}` };
  const socket = await openRawSocket(app.baseUrl, '/graphql', { protocol: 'graphql-transport-ws', headers });
  socket.say({ type: 'connection_init' });
  await socket.until(({ type }) => type === 'connection_ack');
  const send = vi.spyOn(SocketConnection.prototype, 'send').mockReturnValue(new Promise(() => {}));
  return Object.assign(socket, { expectSent: (count: number) => expect.poll(() => send.mock.calls.length).toBe(count) });
}

const subscribe = (id: number, payload: object) => ({ type: 'subscribe', id: String(id), payload });
const query = '{ viewer { id } }';
/** Each of the objects takes many times its text. */
const variables = { a: Array.from({ length: 20_000 }, () => ({})) };
/** As many as are read from a peer that does not read. */
const LARGE = 12;

async function readUnread(): Promise<number> {
  const { text } = await app.ask('GET', '/metrics', { as: null });
  return Number(/^portico_unread_bytes (\d+)$/m.exec(text)?.[1]);
}

async function measureHeap(): Promise<number> {
  for (let time = 0; time < 5; time += 1) await collectGarbage();
  return process.memoryUsage().heapUsed / 2 ** 20;
}

it('operations that are refused keep nothing of what they were asked with', async () => {
  const socket = await openStuck();
  for (let id = 0; id < 51; id += 1) socket.say(subscribe(id, { query }));
  await socket.expectSent(51);
  const before = await measureHeap();
  for (let id = 51; id < 51 + LARGE; id += 1) {
    socket.say(subscribe(id, { query, variables }));
    await socket.expectSent(id + 1);
  }
  // They would be 15 MiB.
  expect((await measureHeap()) - before).toBeLessThan(8);
  socket.destroy();
});

it('operations whose results wait to be sent do not either', async () => {
  const socket = await openStuck();
  socket.say(subscribe(0, { query }));
  await socket.expectSent(1);
  const before = await measureHeap();
  for (let id = 1; id <= LARGE; id += 1) {
    socket.say(subscribe(id, { query, variables }));
    await socket.expectSent(id + 1);
  }
  // They would be 15 MiB.
  expect((await measureHeap()) - before).toBeLessThan(8);
  socket.destroy();
});

it('a socket with two hundred operations that have not finished is closed', async () => {
  const socket = await openStuck();
  for (let id = 0; id < 190; id += 1) socket.say(subscribe(id, { query }));
  await sleep(1_500);
  for (let id = 190; id < 230; id += 1) socket.say(subscribe(id, { query }));
  expect(await socket.refused).toEqual({ code: 4429, reason: 'too_many_operations' });
  socket.destroy();
});

it('a message that waits for an operation to finish is counted as what waits for the peer', async () => {
  const socket = await openStuck();
  const before = await readUnread();
  socket.say(subscribe(1, { query }));
  await sleep(500);
  socket.say({ type: 'complete', id: '1' });
  const next = subscribe(1, { query, variables });
  socket.say(next);
  await expect.poll(readUnread).toBe(before + JSON.stringify(next).length * 20);
  socket.say({ type: 'complete', id: '1' });
  await expect.poll(readUnread).toBe(before);
  socket.destroy();
});
