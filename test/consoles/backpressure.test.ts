import { Socket } from 'node:net';
import { setTimeout as sleep, setImmediate as turn } from 'node:timers/promises';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { LiveSession } from '../../src/consoles/livesession.ts';
import type { ConsoleClient } from '../../src/graph/console.ts';
import { type Guest, openGuest } from '../support/console.ts';
import { countIterations } from '../support/iterations.ts';

const READ_BYTES = 64 * 1024;

let guest: Guest;
let session: LiveSession;
let isLineClosed = false;
beforeEach(async () => {
  guest = await openGuest();
  isLineClosed = false;
  const endpoint = { kind: 'serial', host: '127.0.0.1', port: guest.port, socketPath: null } as const;
  session = new LiveSession({ id: 'session', projectId: 'project', instanceId: 'instance', userId: 'user', endpoint }, () => {
    isLineClosed = true;
  });
});
afterEach(async () => {
  session.stop('idle');
  await guest.close();
});

/** A client whose connection takes no byte until `read`. */
function attachClient() {
  let isPaused = false;
  const waiting: Array<{ bytes: Buffer; onSent: () => void }> = [];
  const client: ConsoleClient = {
    get bufferedAmount() {
      return waiting.reduce((sum, { bytes }) => sum + bytes.length, 0);
    },
    send: (bytes, onSent) => void waiting.push({ bytes, onSent }),
    pause: () => {
      isPaused = true;
    },
    resume: () => {
      isPaused = false;
    },
    close: () => {},
  };
  session.attach(client, 0);
  return {
    client,
    waiting,
    isPaused: () => isPaused,
    read: () => {
      for (const { onSent } of waiting.splice(0)) onSent();
    },
  };
}

it('buffers one read of output for a client that does not read, however small it is', async () => {
  const { waiting, read } = attachClient();
  const line = await guest.called();
  const bytes = 300;
  for (let said = 0; said < bytes; said += 1) {
    line.write('x');
    for (let turns = 0; turns < 10; turns += 1) await turn();
  }
  const held = new Set(waiting.map(({ bytes: { buffer } }) => buffer));
  expect([...held].reduce((sum, { byteLength }) => sum + byteLength, 0)).toBeLessThanOrEqual(READ_BYTES);
  let heard = '';
  await expect
    .poll(() => {
      heard += Buffer.concat(waiting.map(({ bytes }) => bytes)).toString();
      read();
      return heard;
    })
    .toBe('x'.repeat(bytes));
});

it('does not read a client while its console has not accepted the input before', async () => {
  const write = vi.spyOn(Socket.prototype, 'write');
  const { client, isPaused } = attachClient();
  const line = await guest.called();
  line.pause();
  const waiting: number[] = [];
  let typed = 0;
  // Each read of the client's connection may bring little input, and is kept as a whole.
  while (!isPaused() && typed < 64 * 2 ** 20) {
    typed += 1_000;
    session.receive(client, Buffer.alloc(READ_BYTES, 'x').subarray(0, 1_000));
    await turn();
    const [socket] = write.mock.contexts as Socket[];
    if (!isPaused()) waiting.push(socket?.writableLength ?? -1);
  }
  write.mockRestore();
  expect(isPaused()).toBe(true);
  expect(Math.max(...waiting)).toBe(0);
  line.resume();
  await expect.poll(() => guest.heard().length).toBe(typed);
  expect(isPaused()).toBe(false);
});

it('a console that half-closes its side ends the session, also where it does not read its waiting input', async () => {
  const { client, isPaused, read } = attachClient();
  const line = await guest.called();
  line.pause();
  while (!isPaused()) {
    session.receive(client, Buffer.alloc(2 ** 20, 'x'));
    await turn();
  }
  line.end('bye');
  await expect
    .poll(
      () => {
        read();
        return isLineClosed;
      },
      { timeout: 20_000 },
    )
    .toBe(true);
  expect(String(session.scrollback.readFrom(0))).toBe('bye');
});

it('does not read the next client while the console has not accepted the input of the former one', async () => {
  const { client, isPaused } = attachClient();
  const line = await guest.called();
  line.pause();
  let typed = 0;
  while (!isPaused()) {
    session.receive(client, Buffer.alloc(2 ** 20, 'x'));
    typed += 2 ** 20;
    await turn();
  }
  session.detach(client);
  for (let clients = 0; clients < 3; clients += 1) {
    let isResumed = false;
    const endPause = session.pauseUntilAttached();
    session.attach({ bufferedAmount: 0, send: () => {}, pause: () => {}, resume: () => (isResumed = true), close: () => {} }, 0);
    endPause();
    await sleep(50);
    expect(isResumed).toBe(false);
    if (clients < 2) continue;
    line.resume();
    await expect.poll(() => guest.heard().length).toBe(typed);
    await expect.poll(() => isResumed).toBe(true);
  }
});

it('sends no more to a client that does not read, although another one is about to be attached', async () => {
  const { waiting, read } = attachClient();
  flood(await guest.called());
  await expect.poll(() => waiting.length).toBe(1);
  for (let attempts = 0; attempts < 5; attempts += 1) {
    const endPause = session.pauseUntilAttached();
    endPause();
    await sleep(20);
  }
  expect(waiting).toHaveLength(1);
  read();
  await expect.poll(() => waiting.length).toBe(1);
});

it('continues the output although a ping waits behind the sent bytes', async () => {
  const { client, waiting, read } = attachClient();
  const line = await guest.called();
  line.write('one');
  await expect.poll(() => waiting.length).toBe(1);
  Object.defineProperty(client, 'bufferedAmount', { value: 2 });
  read();
  line.write('two');
  await expect.poll(() => waiting.length).toBe(1);
});

/** Makes a console print without end. */
function flood(line: Socket): void {
  const print = () => {
    while (!line.destroyed && line.write(Buffer.alloc(READ_BYTES, 'y')));
  };
  line.on('drain', print);
  print();
}

it('reads ten times a second from a console without a client', async () => {
  const { client } = attachClient();
  const line = await guest.called();
  session.detach(client);
  flood(line);
  const [began, before] = [performance.now(), session.bytesOut];
  await sleep(1_000);
  const reads = (performance.now() - began) / 100 + 2;
  expect(session.bytesOut - before).toBeGreaterThan(0);
  expect(session.bytesOut - before).toBeLessThanOrEqual(reads * READ_BYTES);
  // A client that comes back is sent what was kept, and what is printed from now on, as fast as it reads.
  const sent: number[] = [];
  const endPause = session.pauseUntilAttached();
  session.attach(
    { ...client, bufferedAmount: 0, send: (bytes, onSent) => process.nextTick(onSent, sent.push(bytes.length)) },
    session.scrollback.start,
  );
  endPause();
  await expect.poll(() => sent.length).toBeGreaterThan(100);
});

it('reads at most one buffer of output in an iteration of the event loop', async () => {
  const iterations = countIterations();
  const read = new Map<number, number>();
  const send: ConsoleClient['send'] = (bytes, onSent) => {
    read.set(iterations.current, (read.get(iterations.current) ?? 0) + bytes.length);
    process.nextTick(onSent);
  };
  session.attach({ bufferedAmount: 0, send, pause: () => {}, resume: () => {}, close: () => {} }, 0);
  flood(await guest.called());
  await expect.poll(() => read.size).toBeGreaterThan(100);
  iterations.stop();
  expect(Math.max(...read.values())).toBeLessThanOrEqual(READ_BYTES);
});
