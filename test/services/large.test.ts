import { execFile } from 'node:child_process';
import type { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type pg from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import WebSocket from 'ws';
import { insertLarge } from '../support/entries.ts';
import { type ServerProcess, startServer } from '../support/process.ts';
import { connectTo } from '../support/sql.ts';

/** The size of `body` and of `data` in a row. */
const HALF_BYTES = 1_000_000;
/** The number of rows, together some 230 MiB. */
const COUNT = 120;
/**
 * The allowed growth over the idle process, in MiB: many times one row, and far less than all requested data. V8 frees memory
 * outside of its heap, such as buffers, only after some 64 MiB more have accumulated, and returns it to the system at its own
 * discretion, so the memory of a process just before a test is not a baseline.
 */
const MOST_GROWTH = 180;

let server: ServerProcess;
let idle: number;
let client: pg.Client;
beforeAll(async () => {
  // Compiling takes more memory than is measured here, so it is done beforehand.
  await promisify(execFile)(process.execPath, ['scripts/build.mjs'], { cwd: fileURLToPath(new URL('../..', import.meta.url)) });
  server = await startServer({ RATE_LIMIT_USER: '100000000' });
  client = await connectTo(server.databaseUrl ?? '');
  // This allocates what the server needs once for a feed and its documents.
  const { ready, socket } = readPlain(0);
  await ready;
  socket.terminate();
  idle = server.memory();
}, 300_000);
afterAll(async () => {
  await client?.end();
  await server?.stop();
});

const insert = (count: number, bytes = HALF_BYTES) =>
  insertLarge((sql, values) => client.query(sql, values && [...values]), server.demo.project_id, count, bytes);

async function readLast(): Promise<number> {
  const { rows } = await client.query('SELECT last_sequence::int AS last FROM notification_logs WHERE project_id = $1', [
    server.demo.project_id,
  ]);
  return rows[0].last;
}

const open = (path: string, protocol: string[]) =>
  new WebSocket(server.baseUrl.replace('http', 'ws') + path, protocol, {
    headers: { authorization: `Bearer ${server.demo.users.owner.token}` },
    maxPayload: 2 ** 30,
  });

/** Reads a plain feed; the sequences are parsed from the beginnings of its large frames. */
function readPlain(after: number | null): { received: number[]; ready: Promise<void>; socket: WebSocket } {
  const { organization_id, project_id } = server.demo;
  const query = after === null ? '' : `?after=${after}`;
  const socket = open(`/v1/organizations/${organization_id}/projects/${project_id}/notifications/ws${query}`, []);
  const received: number[] = [];
  const ready = new Promise<void>((resolve, reject) => {
    socket.on('error', reject);
    socket.on('message', (data: Buffer) => {
      const [, type, sequence] = /^\{"type":"(\w+)","sequence":(\d+)/.exec(data.toString('latin1', 0, 80)) ?? [];
      if (type === 'ready') resolve();
      else if (type === 'notification') received.push(Number(sequence));
      else reject(new Error(data.toString('latin1', 0, 80)));
    });
  });
  return { received, ready, socket };
}

/** The peak memory of the server during `work`, in MiB above the idle process. */
async function measureGrowth(work: () => Promise<void>): Promise<number> {
  let most = server.memory();
  const sampling = setInterval(() => {
    most = Math.max(most, server.memory());
  }, 20);
  try {
    await work();
  } finally {
    clearInterval(sampling);
  }
  console.log(`memory ${idle.toFixed(0)} MiB idle, ${most.toFixed(0)} MiB at most`);
  return most - idle;
}

const numbers = (from: number, to: number) => Array.from({ length: to - from }, (_, index) => from + index + 1);

it(`delivers ${COUNT} live notifications of 2 MB, all and in order, in bounded memory`, { timeout: 300_000 }, async () => {
  const from = await readLast();
  const { received, ready, socket } = readPlain(null);
  await ready;
  const growth = await measureGrowth(async () => {
    await insert(COUNT);
    while (received.length < COUNT) await sleep(50);
  });
  socket.terminate();
  expect(received).toEqual(numbers(from, from + COUNT));
  expect(growth).toBeLessThan(MOST_GROWTH);
});

it(`replays ${COUNT} notifications of 2 MB, all and in order, in bounded memory`, { timeout: 300_000 }, async () => {
  const last = await readLast();
  const growth = await measureGrowth(async () => {
    const { received, ready, socket } = readPlain(last - COUNT);
    await ready;
    socket.terminate();
    expect(received).toEqual(numbers(last - COUNT, last));
  });
  expect(growth).toBeLessThan(MOST_GROWTH);
});

interface Subscriber {
  readonly transport: Socket;
  /** The sequences delivered to each subscription, by its id. */
  readonly received: Map<string, number[]>;
  readonly ready: Set<string>;
  readonly socket: WebSocket;
}

/** Opens a socket with `count` subscriptions from a cursor on, which reads nothing until its transport is resumed. */
async function subscribe(count: number, after: number, name: string): Promise<Subscriber> {
  const { organization_id, project_id } = server.demo;
  const socket = open('/graphql', ['graphql-transport-ws']);
  const received = new Map<string, number[]>();
  const ready = new Set<string>();
  await new Promise<void>((resolve, reject) => {
    socket.on('error', reject);
    socket.on('open', () => socket.send('{"type":"connection_init"}'));
    socket.on('message', (data: Buffer) => {
      const head = data.toString('latin1', 0, 140);
      if (head.includes('connection_ack')) return resolve();
      const [, id = '', type, sequence] = /^\{"id":"([^"]+)".*"__typename":"(\w+)","sequence":(\d+)/.exec(head) ?? [];
      if (type === 'FeedReady') ready.add(id);
      else if (type === 'NotificationAdded') received.set(id, [...(received.get(id) ?? []), Number(sequence)]);
      else reject(new Error(head));
    });
  });
  const { _socket: transport } = socket as unknown as { _socket: Socket };
  transport.pause();
  for (let index = 0; index < count; index += 1) {
    // Each subscription has its own selection, so that no rendering is shared.
    const query = `subscription { notificationFeed(organizationId: "${organization_id}", projectId: "${project_id}", after: ${after}) {
      __typename ... on FeedReady { sequence }
      ... on NotificationAdded { sequence notification { ${name}${index}: id title body data } } } }`;
    socket.send(JSON.stringify({ id: `${index}`, type: 'subscribe', payload: { query } }));
  }
  return { transport, received, ready, socket };
}

it('buffers one write for a socket that does not read, and delivers everything when it does', { timeout: 600_000 }, async () => {
  const [sockets, subscriptions, count] = [2, 15, 6];
  const last = await readLast();
  const all: Subscriber[] = [];
  const unread = await measureGrowth(async () => {
    for (let index = 0; index < sockets; index += 1) all.push(await subscribe(subscriptions, last - count, `socket${index}_`));
    await sleep(8_000);
  });
  expect(unread).toBeLessThan(MOST_GROWTH);
  const read = await measureGrowth(async () => {
    for (const { transport } of all) transport.resume();
    while (all.some(({ ready }) => ready.size < subscriptions)) await sleep(100);
  });
  for (const { received, socket } of all) {
    expect([...received.values()]).toEqual(Array.from({ length: subscriptions }, () => numbers(last - count, last)));
    socket.terminate();
  }
  expect(read).toBeLessThan(MOST_GROWTH);
});

it('buffers a few events for a stream that is not read', { timeout: 300_000 }, async () => {
  const last = await readLast();
  const { organization_id, project_id, users } = server.demo;
  const query = `subscription { notificationFeed(organizationId: "${organization_id}", projectId: "${project_id}", after: ${last - COUNT}) {
    __typename ... on NotificationAdded { sequence notification { body data } } } }`;
  const responses: Response[] = [];
  const growth = await measureGrowth(async () => {
    for (let index = 0; index < 4; index += 1) {
      const response = await fetch(`${server.baseUrl}/graphql`, {
        method: 'POST',
        headers: { authorization: `Bearer ${users.owner.token}`, 'content-type': 'application/json', accept: 'text/event-stream' },
        body: JSON.stringify({ query }),
      });
      expect(response.status).toBe(200);
      responses.push(response);
    }
    await sleep(5_000);
  });
  for (const response of responses) await response.body?.cancel();
  expect(growth).toBeLessThan(MOST_GROWTH);
});
