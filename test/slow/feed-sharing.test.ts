import type { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startApp, type TestApp } from '../support/app.ts';
import { openSocket } from '../support/feed.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startApp({ RATE_LIMIT_USER: '100000000', LOG_LEVEL: 'error' });
});
afterAll(() => app.close());

interface Told {
  readonly id: string;
  readonly sequences: number[];
  readonly transport: Socket;
  readonly end: () => void;
}

/** Subscribes by an id of its own; what comes under another is told as the number -1. */
async function subscribe(id: string): Promise<Told> {
  const { organization_id, project_id, users } = app.demo;
  const { socket, until } = openSocket(app, '/graphql', {
    protocol: 'graphql-transport-ws',
    headers: { authorization: `Bearer ${users.owner.token}` },
  });
  const query = `subscription { notificationFeed(organizationId: "${organization_id}", projectId: "${project_id}") {
    __typename ... on NotificationAdded { sequence notification { body } } } }`;
  socket.on('open', () => socket.send('{"type":"connection_init"}'));
  await until(({ type }) => type === 'connection_ack');
  socket.send(JSON.stringify({ id, type: 'subscribe', payload: { query } }));
  await until(({ type }) => type === 'next');
  const sequences: number[] = [];
  socket.removeAllListeners('message');
  socket.on('message', (data) => {
    const frame = JSON.parse(String(data));
    sequences.push(frame.id === id ? frame.payload.data.notificationFeed.sequence : -1);
  });
  return { id, sequences, transport: (socket as unknown as { _socket: Socket })._socket, end: () => socket.terminate() };
}

it('delivers every event to each socket, under its own id, while others do not read', async () => {
  const all: Told[] = [];
  for (const id of ['aaaa', 'bbbb', 'cccc', 'dddd', 'a-longer-id', 'bbbb']) all.push(await subscribe(id));
  const sleepers = all.filter((_told, index) => index % 2 === 1);
  for (const { transport } of sleepers) transport.pause();
  const [{ last } = { last: 0 }] = await app.app.database.prisma.$queryRaw<Array<{ last: number }>>`
    SELECT last_sequence::int AS last FROM notification_logs WHERE project_id = ${app.demo.project_id}::uuid`;
  const count = 2_000;
  for (let done = 0; done < count; done += 100) {
    await app.app.database.prisma.$executeRaw`INSERT INTO notifications (project_id, kind, severity, title, body)
      SELECT ${app.demo.project_id}::uuid, 'test.load', 'info', 'load', repeat('x', 8000) FROM generate_series(1, 100)`;
  }
  const expected = Array.from({ length: count }, (_, index) => last + 1 + index);
  const untilAll = async (some: readonly Told[]) => {
    while (some.some(({ sequences }) => sequences.length < count)) await sleep(50);
  };
  await untilAll(all.filter((told) => !sleepers.includes(told)));
  // More than the kernel holds for somebody: their feeds had to wait.
  expect(sleepers.every(({ sequences }) => sequences.length < count)).toBe(true);
  for (const { transport } of sleepers) transport.resume();
  await untilAll(all);
  for (const { sequences, end } of all) {
    expect(sequences).toEqual(expected);
    end();
  }
});
