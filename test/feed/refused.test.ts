import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, expect, it, vi } from 'vitest';
import { startApp, type TestApp } from '../support/app.ts';
import { manyObjects, openStuck, query, subscribe } from '../support/stuck.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startApp({ RATE_LIMIT_USER: '1000000' });
});
afterAll(() => app.close());
afterEach(() => void vi.restoreAllMocks());

async function readUnread(): Promise<number> {
  const { text } = await app.ask('GET', '/metrics', { as: null });
  return Number(/^portico_unread_bytes (\d+)$/m.exec(text)?.[1]);
}

it('a socket with two hundred operations that have not finished is closed', async () => {
  const socket = await openStuck(app);
  for (let id = 0; id < 190; id += 1) socket.say(subscribe(id, { query }));
  await socket.expectSent(190);
  // So many messages come within the rate in two parts only.
  await sleep(1_000);
  for (let id = 190; id < 230; id += 1) socket.say(subscribe(id, { query }));
  expect(await socket.refused).toEqual({ code: 4429, reason: 'too_many_operations' });
  socket.destroy();
});

it('a message that waits for an operation to finish is counted like bytes that wait for the peer', async () => {
  const socket = await openStuck(app);
  const before = await readUnread();
  socket.say(subscribe(1, { query }));
  await socket.expectSent(1);
  socket.say({ type: 'complete', id: '1' });
  const next = subscribe(1, { query, variables: manyObjects });
  socket.say(next);
  await expect.poll(readUnread).toBe(before + JSON.stringify(next).length * 20);
  socket.say({ type: 'complete', id: '1' });
  await expect.poll(readUnread).toBe(before);
  socket.destroy();
});
