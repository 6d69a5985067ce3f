import type { Socket } from 'node:net';
import { afterAll, beforeAll, expect, it } from 'vitest';
import WebSocket from 'ws';
import { isPostgres } from '../support/copies.ts';
import { checkHistory, type Entry } from '../support/history.ts';
import { type ServerProcess, startServer } from '../support/process.ts';
import { connectTo } from '../support/sql.ts';

// FEED_LOAD=full: 900 live and 100 paused subscribers, 10,000 events. Else fewer, so that it takes seconds; what those who are
// paused have not read would still exceed the bound if it were kept in memory.
const isFull = process.env.FEED_LOAD === 'full';
const live = isFull ? 900 : 20;
const paused = isFull ? 100 : 20;
const events = isFull ? 10_000 : isPostgres ? 1_000 : 300;
const EVENT_BYTES = 4_096;

let server: ServerProcess;
beforeAll(async () => {
  server = await startServer({ RATE_LIMIT_USER: '100000000', MAX_CONNECTIONS_PER_ADDRESS: '2000' });
});
afterAll(() => server.stop());

const sleep = (milliseconds: number) => new Promise((resolve) => setTimeout(resolve, milliseconds));

interface Subscriber {
  readonly received: Entry[];
  readonly socket: WebSocket;
  readonly transport: Socket;
  /** How the socket was closed; null while it is open. */
  closing(): string | null;
}

async function subscribe(): Promise<Subscriber> {
  const { organization_id, project_id, users } = server.demo;
  const url = `${server.baseUrl.replace('http', 'ws')}/v1/organizations/${organization_id}/projects/${project_id}/notifications/ws`;
  const socket = new WebSocket(url, { headers: { authorization: `Bearer ${users.owner.token}` } });
  const received: Entry[] = [];
  let closing: string | null = null;
  await new Promise<void>((resolve, reject) => {
    socket.on('error', reject);
    socket.on('close', (code, reason) => {
      closing = `closed with ${code} ${reason} after ${received.length}`;
      reject(new Error(closing));
    });
    // The frames are large and many: only what is checked is read of them.
    socket.on('message', (data: Buffer) => {
      const head = data.toString('latin1', 0, 120);
      if (head.startsWith('{"type":"ready"')) resolve();
      const [, sequence, id] = /^\{"type":"notification","sequence":(\d+),"notification":\{"id":"([^"]+)"/.exec(head) ?? [];
      if (sequence && id) received.push({ sequence: Number(sequence), id });
    });
  });
  return { received, socket, transport: (socket as unknown as { _socket: Socket })._socket, closing: () => closing };
}

async function publish(count: number): Promise<void> {
  const { organization_id, project_id, users } = server.demo;
  const body = 'x'.repeat(EVENT_BYTES);
  if (server.databaseUrl) {
    const client = await connectTo(server.databaseUrl);
    const insert = `INSERT INTO notifications (project_id, kind, severity, title, body)
      SELECT $1, 'test.load', 'info', 'load', $2 FROM generate_series(1, $3::int)`;
    for (let done = 0; done < count; done += 50) await client.query(insert, [project_id, body, Math.min(50, count - done)]);
    await client.end();
    return;
  }
  const query = `mutation ($input: PublishNotificationInput!) { publishNotification(input: $input) { notification { id } } }`;
  const input = { organizationId: organization_id, projectId: project_id, kind: 'test.load', severity: 'info', title: 'load', body };
  const headers = { authorization: `Bearer ${users.owner.token}`, 'content-type': 'application/json' };
  for (let done = 0; done < count; done += 1) {
    const response = await fetch(`${server.baseUrl}/graphql`, {
      method: 'POST',
      headers,
      body: JSON.stringify({ query, variables: { input } }),
    });
    if (!response.ok) throw new Error(await response.text());
  }
}

it('keeps its memory and delivers to readers while some subscribers do not read, without a lost event', {
  timeout: isFull ? 1_200_000 : 180_000,
}, async () => {
  const from = 150;
  const all: Subscriber[] = [];
  for (let index = 0; index < live + paused; index += 1) all.push(await subscribe());
  const readers = all.slice(0, live);
  const sleepers = all.slice(live);
  const untilAll = async (subscribers: readonly Subscriber[], count: number) => {
    while (subscribers.some(({ received }) => received.length < count)) {
      expect(subscribers.map(({ closing }) => closing()).filter((closing) => closing !== null)).toEqual([]);
      await sleep(50);
    }
  };
  // As much as below, so that the process has grown by all that does not come of who reads nothing.
  const warmUp = events;
  await publish(warmUp);
  await untilAll(all, warmUp);
  for (const { transport } of sleepers) transport.pause();

  const before = server.memory();
  let most = before;
  const sampling = setInterval(() => {
    most = Math.max(most, server.memory());
  }, 100);
  const began = Date.now();
  await publish(events);
  await untilAll(readers, warmUp + events);
  const seconds = (Date.now() - began) / 1000;
  expect(sleepers.every(({ received }) => received.length < warmUp + events)).toBe(true);
  for (const { transport } of sleepers) transport.resume();
  await untilAll(sleepers, warmUp + events);
  clearInterval(sampling);

  const committed = Array.from({ length: from + warmUp + events }, (_, index) => ({ sequence: index + 1, id: '' }));
  const problems = all.flatMap(({ received }) =>
    checkHistory({ committed, from, received: received.map((entry) => ({ ...entry, id: '' })) }),
  );
  expect(problems).toEqual([]);
  const rate = Math.round((live * events) / seconds);
  console.log(
    `${events} events of 4 KB to ${live} live and ${paused} paused subscribers: ${rate} deliveries a second, ` +
      `memory ${before.toFixed(0)} MiB before, ${most.toFixed(0)} MiB at most`,
  );
  expect(most - before).toBeLessThanOrEqual(64);
  for (const { socket } of all) socket.terminate();
});
