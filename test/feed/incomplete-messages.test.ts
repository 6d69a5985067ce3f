import { expect, it, onTestFinished } from 'vitest';
import { startApp, type TestApp } from '../support/app.ts';
import { openRawSocket, type RawSocket } from '../support/raw.ts';

async function openSocket(app: TestApp): Promise<RawSocket> {
  const headers = { authorization: `Bearer ${app.demo.users.owner.token}` };
  const socket = await openRawSocket(app.baseUrl, '/graphql', { protocol: 'graphql-transport-ws', headers });
  socket.say({ type: 'connection_init' });
  await socket.until(({ type }) => type === 'connection_ack');
  return socket;
}

async function readUnreadBytes(app: TestApp): Promise<number> {
  const { text } = await app.ask('GET', '/metrics', { as: null });
  return Number(/^portico_unread_bytes (\d+)$/m.exec(text)?.[1]);
}

it('the parts of a message that is not complete count as memory of the connection', async () => {
  const app = await startApp();
  onTestFinished(() => app.close());
  const socket = await openSocket(app);
  expect(await readUnreadBytes(app)).toBe(0);
  socket.sayPart('{"id":"1","type":"subscribe","payload":{"query":"{ viewer { id } }"', { isFirst: true, isLast: false });
  socket.sayPart(' '.repeat(20_000), { isFirst: false, isLast: false });
  await expect.poll(() => readUnreadBytes(app)).toBeGreaterThan(20_000);
  socket.sayPart('}}', { isFirst: false, isLast: true });
  await socket.until(({ type }) => type === 'next');
  await expect.poll(() => readUnreadBytes(app)).toBe(0);
  socket.destroy();
});

it('connections whose messages stay incomplete are ended beyond the limit of their address', async () => {
  const app = await startApp({ MAX_UNREAD_MIB_PER_ADDRESS: '1', MAX_ANSWER_BYTES: '65536' });
  onTestFinished(() => app.close());
  const sockets = await Promise.all(Array.from({ length: 40 }, () => openSocket(app)));
  let ended = 0;
  for (const { gone } of sockets) gone.then(() => (ended += 1));
  for (let part = 0; part < 15; part += 1) {
    for (const socket of sockets) socket.sayPart(' '.repeat(4_200), { isFirst: part === 0, isLast: false });
  }
  await expect.poll(() => ended).toBeGreaterThanOrEqual(20);
  await expect.poll(() => readUnreadBytes(app)).toBeGreaterThan(500_000);
  expect(await readUnreadBytes(app)).toBeLessThanOrEqual(2 ** 20);
  expect(ended).toBeLessThan(40);
  for (const socket of sockets) socket.destroy();
});

it('the head of a frame counts with the chunk that it arrived in', async () => {
  const app = await startApp();
  onTestFinished(() => app.close());
  const socket = await openSocket(app);
  socket.sayWithHead({ id: '1', type: 'subscribe', payload: { query: '{ viewer { id } }', variables: { unused: 'x'.repeat(30_000) } } });
  await socket.until(({ type }) => type === 'next');
  await expect.poll(() => readUnreadBytes(app)).toBeGreaterThan(10_000);
  socket.destroy();
});
