import { createHash, randomBytes } from 'node:crypto';
import type { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import WebSocket from 'ws';
import { type Guest, openGuest } from '../support/console.ts';
import { type ServerProcess, startServer } from '../support/process.ts';
import { execute } from '../support/sql.ts';

/** The number of bytes sent in each direction. */
const VOLUME = Number(process.env.CONSOLE_MEBIBYTES ?? 1024) * 2 ** 20;
const WARM_UP = 256 * 2 ** 20;
const BLOCK = randomBytes(64 * 1024);

/** What the console may buffer for a client or a guest that stops reading. */
const BUFFERED_MIB = 32;

/** V8 collects buffers once they are 64 MiB more than at the last collection: peaks of equal work may lie that far apart. */
const UNCOLLECTED_MIB = 64;

let server: ServerProcess;
let guest: Guest;
let path: string;
beforeAll(async () => {
  server = await startServer({ RATE_LIMIT_USER: '100000000' });
  guest = await openGuest();
  const { demo, databaseUrl } = server;
  const instance = demo.instances.eligible;
  if (!databaseUrl) throw new Error('needs PostgreSQL');
  await execute(
    databaseUrl,
    `INSERT INTO console_endpoints (instance_id, kind, host, port) VALUES ('${instance}', 'serial', '127.0.0.1', ${guest.port})`,
  );
  path = `/v1/organizations/${demo.organization_id}/projects/${demo.project_id}/compute/instances/${instance}/console/ws`;
});
afterAll(async () => {
  await server.stop();
  await guest.close();
});

async function open(): Promise<{ socket: WebSocket; line: Socket }> {
  const before = guest.connections();
  const headers = { authorization: `Bearer ${server.demo.users.member.api_key}` };
  const socket = new WebSocket(server.baseUrl.replace('http', 'ws') + path, { headers, perMessageDeflate: false });
  await new Promise((resolve, reject) => socket.once('open', resolve).once('error', reject));
  // The connection of the previous session may still be open.
  await expect.poll(() => guest.connections()).toBe(before + 1);
  const line = [...guest.lines].at(-1) as Socket;
  line.removeAllListeners('data');
  return { socket, line };
}

/** Generates `volume` bytes in blocks that all differ, and updates their checksum. */
function* blocks(volume: number, hash: ReturnType<typeof createHash>): Generator<Buffer> {
  for (let sent = 0, index = 0; sent < volume; sent += BLOCK.length, index += 1) {
    const block = Buffer.from(BLOCK);
    block.writeUInt32BE(index, 0);
    hash.update(block);
    yield block;
  }
}

/** Sends from the console to the client; resolves with the checksums of both sides. */
async function say({ socket, line }: { socket: WebSocket; line: Socket }, volume: number): Promise<[string, string]> {
  const [said, heard] = [createHash('sha256'), createHash('sha256')];
  let received = 0;
  const all = new Promise<void>((resolve) => {
    socket.on('message', function take(data) {
      heard.update(data as Buffer);
      received += (data as Buffer).length;
      if (received < volume) return;
      socket.off('message', take);
      resolve();
    });
  });
  for (const block of blocks(volume, said)) if (!line.write(block)) await new Promise((resolve) => line.once('drain', resolve));
  await all;
  return [said.digest('hex'), heard.digest('hex')];
}

/** Sends from the client to the console; resolves likewise. */
async function type({ socket, line }: { socket: WebSocket; line: Socket }, volume: number): Promise<[string, string]> {
  const [typed, heard] = [createHash('sha256'), createHash('sha256')];
  let received = 0;
  const all = new Promise<void>((resolve) => {
    line.on('data', function take(data: Buffer) {
      heard.update(data);
      received += data.length;
      if (received < volume) return;
      line.off('data', take);
      resolve();
    });
  });
  for (const block of blocks(volume, typed)) {
    await new Promise<void>((resolve) => socket.send(block, () => resolve()));
  }
  await all;
  return [typed.digest('hex'), heard.digest('hex')];
}

/** The peak memory of the server so far, in MiB, because V8 releases memory when idle and takes it again. */
let known = 0;

/** The growth of the server's peak memory during `work`, in MiB. */
async function growth(work: () => Promise<void>): Promise<number> {
  const before = Math.max(known, server.memory());
  let most = before;
  const sampling = setInterval(() => {
    most = Math.max(most, server.memory());
  }, 50);
  try {
    await work();
  } finally {
    clearInterval(sampling);
  }
  known = Math.max(most, server.memory());
  return known - before;
}

it(`passes ${VOLUME / 2 ** 20} MiB each way, whole and in flat memory`, { timeout: 600_000 }, async () => {
  const ends = await open();
  await growth(async () => {
    await say(ends, WARM_UP);
    await type(ends, WARM_UP);
  });
  const began = performance.now();
  const grown = await growth(async () => {
    const checksums = [await say(ends, VOLUME), await type(ends, VOLUME)];
    for (const [sent, received] of checksums) expect(received).toBe(sent);
  });
  const seconds = (performance.now() - began) / 1000;
  console.log(`${VOLUME / 2 ** 20} MiB each way in ${seconds.toFixed(1)} s; memory grew by ${grown.toFixed(1)} MiB`);
  expect(grown).toBeLessThanOrEqual(UNCOLLECTED_MIB);
  ends.socket.terminate();
});

/** Waits until a figure has not changed for a second; returns it. */
async function standstill(read: () => number): Promise<number> {
  for (let last = -1, since = performance.now(); ; await sleep(50)) {
    const now = read();
    if (now !== last) [last, since] = [now, performance.now()];
    else if (performance.now() - since > 1_000) return now;
  }
}

it('a client that stops reading pauses the console, and receives all output when it resumes', async () => {
  const ends = await open();
  ends.socket.pause();
  const volume = 96 * 2 ** 20;
  let written = 0;
  const grown = await growth(async () => {
    const [said, heard] = [createHash('sha256'), createHash('sha256')];
    const speaking = (async () => {
      for (const block of blocks(volume, said)) {
        if (!ends.line.write(block)) await new Promise((resolve) => ends.line.once('drain', resolve));
        written += block.length;
      }
    })();
    const stood = await standstill(() => written);
    // The system buffers data for two connections, and Portico buffers some too.
    expect(stood).toBeLessThan(volume / 2);
    let received = 0;
    const all = new Promise<void>((resolve) =>
      ends.socket.on('message', (data) => {
        heard.update(data as Buffer);
        received += (data as Buffer).length;
        if (received === volume) resolve();
      }),
    );
    ends.socket.resume();
    await Promise.all([speaking, all]);
    expect(heard.digest('hex')).toBe(said.digest('hex'));
  });
  expect(grown).toBeLessThanOrEqual(BUFFERED_MIB);
  ends.socket.terminate();
});

it('a console that stops reading pauses the client, and receives all input when it resumes', async () => {
  const ends = await open();
  ends.line.pause();
  const volume = 96 * 2 ** 20;
  let gone = 0;
  const grown = await growth(async () => {
    const [typed, heard] = [createHash('sha256'), createHash('sha256')];
    const typing = (async () => {
      for (const block of blocks(volume, typed)) {
        await new Promise<void>((resolve) => ends.socket.send(block, () => resolve()));
        gone += block.length;
      }
    })();
    const stood = await standstill(() => gone);
    expect(stood).toBeLessThan(volume / 2);
    let received = 0;
    const all = new Promise<void>((resolve) =>
      ends.line.on('data', (data: Buffer) => {
        heard.update(data);
        received += data.length;
        if (received === volume) resolve();
      }),
    );
    ends.line.resume();
    await Promise.all([typing, all]);
    expect(heard.digest('hex')).toBe(typed.digest('hex'));
  });
  expect(grown).toBeLessThanOrEqual(BUFFERED_MIB);
  ends.socket.terminate();
});
