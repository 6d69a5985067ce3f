// The throughput and latency of a console, compared with a bare pipe.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { WebSocket } from 'ws';
import { query } from './database.mjs';
import { idOf } from './fill.mjs';
import { median } from './load.mjs';
import { cpuOf, memoryOf, start } from './servers.mjs';
import { short, table } from './table.mjs';

/** One frame of a large paste. */
const FRAME = Buffer.alloc(16 * 1024, 'y');
const ECHOES = 300;
const SETTLE_MS = 300;
const MIB = 2 ** 20;

/** Starts the process behind the console. */
async function openGuest() {
  const child = fork(new URL('guest.mjs', import.meta.url), { stdio: 'inherit' });
  const [{ port }] = await once(child, 'message');
  /** @param {object} message @returns {Promise<{heard: number}>} */
  const ask = async (message) => {
    const answered = once(child, 'message');
    child.send(message);
    const [reply] = await answered;
    return reply;
  };
  return {
    port: Number(port),
    become: (/** @type {'speak' | 'hear' | 'echo'} */ mode) => ask({ mode }),
    heard: async () => (await ask({})).heard,
    stop: async () => {
      child.disconnect();
      await once(child, 'exit');
    },
  };
}

/** @typedef {Awaited<ReturnType<typeof openGuest>>} Guest @typedef {{server: import('./servers.mjs').Server, path: string, guest: Guest, token: string}} Pipe */

/** @param {Pipe} pipe */
async function open({ server, path, token }) {
  const headers = { authorization: `Bearer ${token}` };
  const socket = new WebSocket(server.baseUrl.replace('http', 'ws') + path, { headers, perMessageDeflate: false });
  await once(socket, 'open');
  return socket;
}

/** @param {WebSocket} socket */
async function close(socket) {
  const closed = once(socket, 'close');
  socket.terminate();
  await closed;
  await sleep(SETTLE_MS);
}

/** Throughput from the console to the client. @param {Pipe} pipe @param {number} seconds */
async function measureOutput(pipe, seconds) {
  await pipe.guest.become('speak');
  const socket = await open(pipe);
  let received = 0;
  socket.on('message', (data) => {
    received += /** @type {Buffer} */ (data).length;
  });
  await sleep(SETTLE_MS);
  const [from, cpu, began] = [received, cpuOf(pipe.server.pid), performance.now()];
  await sleep(seconds * 1000);
  const mebibytes = (received - from) / MIB;
  const figures = { perSecond: mebibytes / ((performance.now() - began) / 1000), cpu: (cpuOf(pipe.server.pid) - cpu) / mebibytes };
  await close(socket);
  return figures;
}

/** Throughput from the client to the console. @param {Pipe} pipe @param {number} seconds */
async function measureInput(pipe, seconds) {
  await pipe.guest.become('hear');
  const socket = await open(pipe);
  let isOver = false;
  const send = () => {
    if (!isOver) socket.send(FRAME, send);
  };
  // Keeps 32 frames in flight.
  for (let index = 0; index < 32; index += 1) send();
  await sleep(SETTLE_MS);
  const [from, cpu, began] = [await pipe.guest.heard(), cpuOf(pipe.server.pid), performance.now()];
  await sleep(seconds * 1000);
  const mebibytes = ((await pipe.guest.heard()) - from) / MIB;
  const figures = { perSecond: mebibytes / ((performance.now() - began) / 1000), cpu: (cpuOf(pipe.server.pid) - cpu) / mebibytes };
  isOver = true;
  await close(socket);
  return figures;
}

/** The median time between a key and its echo, in milliseconds. @param {Pipe} pipe */
async function measureEcho(pipe) {
  await pipe.guest.become('echo');
  const socket = await open(pipe);
  const times = [];
  for (let index = 0; index < ECHOES; index += 1) {
    const heard = once(socket, 'message');
    const began = performance.now();
    socket.send('x', { binary: true });
    await heard;
    times.push(performance.now() - began);
  }
  await close(socket);
  return median(times);
}

/** @param {import('./main.mjs').Bench} bench @returns {Promise<import('./main.mjs').Section>} */
export async function measureConsole({ databaseUrl, key, rounds, seconds, say }) {
  const guest = await openGuest();
  const instance = idOf('instance', 1);
  await query(
    databaseUrl,
    `INSERT INTO console_endpoints (instance_id, kind, host, port) VALUES ($1, 'serial', '127.0.0.1', $2)
     ON CONFLICT (instance_id) DO UPDATE SET port = excluded.port`,
    [instance, guest.port],
  );
  const token = await key.tokenOf(1);
  const env = { GUEST_PORT: String(guest.port) };
  const servers = await Promise.all([start('portico', { databaseUrl, key }), start('pipe', { key, env })]);
  const [row] = await query(
    databaseUrl,
    'SELECT project_id, organization_id FROM instances JOIN projects ON projects.id = project_id WHERE instances.id = $1',
    [instance],
  );
  const paths = [`/v1/organizations/${row.organization_id}/projects/${row.project_id}/compute/instances/${instance}/console/ws`, '/'];
  const pipes = servers.map((server, index) => ({ server, path: String(paths[index]), guest, token }));
  const measured = pipes.map(() => ({
    output: /** @type {Array<{perSecond: number, cpu: number}>} */ ([]),
    input: /** @type {Array<{perSecond: number, cpu: number}>} */ ([]),
    echo: /** @type {number[]} */ ([]),
  }));
  try {
    // Alternates between the servers, so that other load on the machine affects both alike.
    for (let round = 0; round <= rounds; round += 1) {
      for (const [index, pipe] of pipes.entries()) {
        const figures = {
          output: await measureOutput(pipe, seconds),
          input: await measureInput(pipe, seconds),
          echo: await measureEcho(pipe),
        };
        // The first round is a warm-up.
        if (round === 0) continue;
        measured[index]?.output.push(figures.output);
        measured[index]?.input.push(figures.input);
        measured[index]?.echo.push(figures.echo);
      }
    }
    const rows = measured.map(({ output, input, echo }, index) => ({
      name: index === 0 ? 'portico' : 'ws and net alone',
      output: median(output.map(({ perSecond }) => perSecond)),
      outputCpu: median(output.map(({ cpu }) => cpu)),
      input: median(input.map(({ perSecond }) => perSecond)),
      inputCpu: median(input.map(({ cpu }) => cpu)),
      echo: median(echo),
      memory: memoryOf(Number(servers[index]?.pid)),
    }));
    for (const { name, output, input } of rows) say(`  ${name}: ${output.toFixed(0)} MiB/s out, ${input.toFixed(0)} MiB/s in`);
    const [ours, bare] = rows;
    return {
      title: 'Consoles',
      text: table(
        ['server', 'MiB/s from the console', 'CPU µs/MiB', 'MiB/s to the console', 'CPU µs/MiB', 'a key and its echo: p50 ms', 'RSS MiB'],
        rows.map((figures) => [
          figures.name,
          short(figures.output),
          short(figures.outputCpu),
          short(figures.input),
          short(figures.inputCpu),
          short(figures.echo),
          short(figures.memory),
        ]),
      ),
      claims: [
        {
          what: 'console: bytes from it against a bare ws and net pipe',
          figure: (ours?.output ?? Number.NaN) / (bare?.output ?? Number.NaN),
          bound: 0.7,
          atLeast: true,
        },
        {
          what: 'console: bytes to it against a bare ws and net pipe',
          figure: (ours?.input ?? Number.NaN) / (bare?.input ?? Number.NaN),
          bound: 0.7,
          atLeast: true,
        },
      ],
    };
  } finally {
    await Promise.all(servers.map((server) => server.stop()));
    await guest.stop();
    await query(databaseUrl, 'DELETE FROM console_endpoints WHERE instance_id = $1', [instance]);
  }
}
