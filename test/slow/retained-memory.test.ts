import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { getIntrospectionQuery } from 'graphql';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { collectGarbage } from '../../src/platform/garbage.ts';
import { startApp, type TestApp } from '../support/app.ts';
import { documentOf, openGraphqlSocket, openStream, projectOf } from '../support/subscriptions.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startApp({ RATE_LIMIT_USER: '100000000', SUBSCRIPTIONS_PER_USER: '53', LOG_LEVEL: 'error' });
});
afterAll(() => app.close());

/** The bytes that the heap has grown by when everything that nothing holds has been collected. */
async function measureGrowth(act: () => Promise<void>): Promise<number> {
  await collectGarbage();
  const before = process.memoryUsage().heapUsed;
  await act();
  await collectGarbage();
  return process.memoryUsage().heapUsed - before;
}

it.each([
  ['white space', (query: string) => `"payload":{"variables":{"e":1.0${' '.repeat(60_000)}},"query":${query}}`],
  ['members of its payload', (query: string) => `"payload":{"a":[1.0,"${'x'.repeat(60_000)}"],"variables":{"e":1},"query":${query}}`],
  ['members of its own', (query: string) => `"payload":{"query":${query}},"a":"${'x'.repeat(60_000)}"`],
])('a subscription does not keep its message: %s', async (_label, membersOf) => {
  const { o, p } = projectOf(app);
  const query = `subscription { notificationFeed(organizationId: "${o}", projectId: "${p}") { __typename } }`;
  const members = membersOf(JSON.stringify(query));
  // Of such large messages a socket may send a dozen at once.
  const sockets = await Promise.all(Array.from({ length: 5 }, () => openGraphqlSocket(app)));
  const subscribe = async (number: number) => {
    const socket = sockets[number % sockets.length];
    socket?.socket.send(`{"id":"${number}","type":"subscribe",${members}}`);
    return (await socket?.until((frame) => frame.id === `${number}`))?.type;
  };
  expect(await subscribe(0)).toBe('next');
  // What is measured is not mixed with what sockets of other tests leave behind.
  await expect.poll(() => app.app.count().sockets).toBe(sockets.length);
  const growth = await measureGrowth(async () => {
    for (let number = 1; number < 50; number += 1) expect(await subscribe(number)).toBe('next');
  });
  for (const { socket } of sockets) socket.terminate();
  expect(growth).toBeLessThan(1_500_000);
});

it('a stream does not keep an ignored body', async () => {
  const { o, p } = projectOf(app);
  const query = encodeURIComponent(`subscription { notificationFeed(organizationId: "${o}", projectId: "${p}") { __typename } }`);
  const { hostname, port } = new URL(app.baseUrl);
  const head = [
    `GET /graphql?query=${query} HTTP/1.1`,
    'Host: x',
    `Authorization: Bearer ${app.demo.users.owner.token}`,
    'Accept: text/event-stream',
    'Transfer-Encoding: chunked',
  ];
  const open = async () => {
    const socket = connect(Number(port), hostname);
    let text = '';
    socket.setEncoding('utf8').on('data', (part: string) => {
      text += part;
    });
    socket.write(`${head.join('\r\n')}\r\n\r\n${'1\r\nx\r\n'.repeat(5_000)}0\r\n\r\n`);
    await expect.poll(() => text).toContain('FeedReady');
    return socket;
  };
  const sockets = [await open()];
  const growth = await measureGrowth(async () => {
    for (let number = 0; number < 10; number += 1) sockets.push(await open());
  });
  for (const socket of sockets) socket.destroy();
  expect(growth).toBeLessThan(3_000_000);
});

it.each([
  ['', {}],
  [' with numbers that JavaScript spells differently', { n: 'lossy' }],
])('a stream does not keep the extensions of its request%s', async (_label, more) => {
  const extensions = { x: Array.from({ length: 5_000 }, () => ({})), ...more };
  const open = () => openStream(app, documentOf('X', 0), undefined, { others: { extensions } });
  const streams = [await open()];
  const growth = await measureGrowth(async () => {
    for (let number = 0; number < 20; number += 1) streams.push(await open());
  });
  for (const stream of streams) stream.close();
  expect(growth).toBeLessThan(5_000_000);
});

it('messages to a client that does not read are counted with their overhead', async () => {
  const socket = await openGraphqlSocket(app);
  const readUnread = async () => (await app.app.metrics.registry.getSingleMetric('portico_unread_bytes')?.get())?.values[0]?.value ?? 0;
  const query = getIntrospectionQuery();
  socket.socket.pause();
  // A little more than the kernel takes. No operation is under way when the memory is measured.
  for (let number = 0; (await readUnread()) === 0; number += 1) {
    socket.socket.send(JSON.stringify({ id: `${number}`, type: 'subscribe', payload: { query } }));
    await sleep(50);
    await vi.waitUntil(async () => app.app.count().executing === 0 || (await readUnread()) > 0, { timeout: 60_000 });
  }
  const before = await readUnread();
  await collectGarbage();
  const { arrayBuffers } = process.memoryUsage();
  const stream: Socket = Reflect.get(socket.socket, '_socket');
  const rounds = 7;
  for (let number = 0; number < rounds; number += 1) {
    // A pong does not keep what came with its ping.
    stream.cork();
    socket.socket.ping('x');
    socket.socket.send(JSON.stringify({ id: `large ${number}`, type: 'subscribe', payload: { query: '{' }, padding: 'x'.repeat(60_000) }));
    stream.uncork();
    socket.socket.send('{"type":"ping"}');
  }
  await expect.poll(readUnread).toBeGreaterThan(before + 3 * rounds * 2_000);
  await collectGarbage();
  expect(process.memoryUsage().arrayBuffers - arrayBuffers).toBeLessThan(200_000);
  socket.socket.resume();
  await expect.poll(readUnread).toBe(0);
  socket.socket.terminate();
});
