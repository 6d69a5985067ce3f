import { afterAll, afterEach, beforeAll, expect, it, vi } from 'vitest';
import { collectGarbage } from '../../src/platform/garbage.ts';
import { startApp, type TestApp } from '../support/app.ts';
import { manyObjects, openStuck, query, subscribe } from '../support/stuck.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startApp({ RATE_LIMIT_USER: '1000000' });
});
afterAll(() => app.close());
afterEach(() => void vi.restoreAllMocks());

/** As many as are read from a peer that does not read. */
const LARGE = 12;

async function measureHeap(): Promise<number> {
  for (let time = 0; time < 5; time += 1) await collectGarbage();
  return process.memoryUsage().heapUsed / 2 ** 20;
}

it('refused operations do not retain their variables', async () => {
  const socket = await openStuck(app);
  for (let id = 0; id < 51; id += 1) socket.say(subscribe(id, { query }));
  await socket.expectSent(51);
  const before = await measureHeap();
  for (let id = 51; id < 51 + LARGE; id += 1) {
    socket.say(subscribe(id, { query, variables: manyObjects }));
    await socket.expectSent(id + 1);
  }
  // They would be 15 MiB.
  expect((await measureHeap()) - before).toBeLessThan(8);
  socket.destroy();
});

it('operations whose results wait to be sent do not retain their variables', async () => {
  const socket = await openStuck(app);
  socket.say(subscribe(0, { query }));
  await socket.expectSent(1);
  const before = await measureHeap();
  for (let id = 1; id <= LARGE; id += 1) {
    socket.say(subscribe(id, { query, variables: manyObjects }));
    await socket.expectSent(id + 1);
  }
  // They would be 15 MiB.
  expect((await measureHeap()) - before).toBeLessThan(8);
  socket.destroy();
});
