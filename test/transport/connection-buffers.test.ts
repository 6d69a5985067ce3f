import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { ConnectionBuffers } from '../../src/transport/http/connectionbuffers.ts';

// Both ends of real connections; a corked socket stands for a peer that reads nothing: its bytes wait until it is uncorked.
const server = createServer();
const clients: Socket[] = [];
const sockets: Socket[] = [];
let ended: number;
beforeEach(async () => {
  ended = 0;
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
});
afterEach(async () => {
  vi.useRealTimers();
  for (const socket of [...clients.splice(0), ...sockets.splice(0)]) socket.destroy();
  await new Promise((resolve) => server.close(resolve));
});

/** Sockets whose peers read nothing; from now on the test sets the clock. */
async function openCorked(count: number): Promise<Socket[]> {
  for (let index = 0; index < count; index += 1) {
    const client = connect((server.address() as AddressInfo).port, '127.0.0.1');
    const [socket] = (await once(server, 'connection')) as [Socket];
    client.resume();
    clients.push(client);
    sockets.push(socket);
    socket.cork();
  }
  vi.useFakeTimers({ toFake: ['performance', 'setInterval', 'clearInterval'] });
  return sockets.slice(-count);
}

const openBuffers = (perAddress: number, inAll = 1_000_000) =>
  new ConnectionBuffers({ limits: { perAddress, inAll }, onEnd: () => (ended += 1) });

/** Writes bytes that wait, and has them counted. */
function hold(buffers: ConnectionBuffers, socket: Socket | undefined, address: string, bytes: number, stallTimeoutMs?: number): void {
  socket?.write(Buffer.alloc(bytes));
  if (socket) buffers.record(socket, address, stallTimeoutMs);
}

/** Has the peer read all that waits. */
async function read(socket: Socket | undefined): Promise<void> {
  const written = new Promise((resolve) => socket?.write('.', resolve));
  socket?.uncork();
  await written;
  socket?.cork();
}

const destroyed = (of: readonly Socket[]) => of.map((socket) => socket.destroyed);

it('an address may have its limit to the byte; one more ends its connection that has stalled longest, and none of another', async () => {
  const [first, second, other] = await openCorked(3);
  const buffers = openBuffers(100);
  hold(buffers, other, 'other', 100);
  vi.advanceTimersByTime(10);
  hold(buffers, first, 'one', 60);
  vi.advanceTimersByTime(10);
  hold(buffers, second, 'one', 40);
  expect([ended, buffers.bytes]).toEqual([0, 200]);
  hold(buffers, second, 'one', 1);
  expect(destroyed(sockets)).toEqual([true, false, false]);
  expect([ended, buffers.bytes]).toEqual([1, 141]);
});

it('a connection that has been read from since has not stalled longest', async () => {
  const [first, second] = await openCorked(2);
  const buffers = openBuffers(100);
  if (first) buffers.reserve(first, 'one', 60);
  vi.advanceTimersByTime(10);
  hold(buffers, second, 'one', 40);
  vi.advanceTimersByTime(10);
  await read(first);
  hold(buffers, first, 'one', 1);
  expect(destroyed(sockets)).toEqual([false, true]);
});

it.each([
  { what: 'an address', perAddress: 100, inAll: 1_000 },
  { what: 'all', perAddress: 1_000, inAll: 100 },
])('bytes that have been read meanwhile do not count towards the limit of $what', async ({ perAddress, inAll }) => {
  const [first, second] = await openCorked(2);
  const buffers = openBuffers(perAddress, inAll);
  hold(buffers, first, 'one', 60);
  await read(first);
  hold(buffers, second, 'one', 50);
  expect([ended, buffers.bytes]).toEqual([0, 50]);
});

it('beyond the limit of all addresses the stalled connections of the largest address end first, and no more than necessary', async () => {
  const [few, many, more, fresh] = await openCorked(4);
  const buffers = openBuffers(1_000, 450);
  hold(buffers, few, 'few', 100);
  vi.advanceTimersByTime(100);
  hold(buffers, many, 'many', 150);
  vi.advanceTimersByTime(100);
  hold(buffers, more, 'many', 150);
  vi.advanceTimersByTime(2_000);
  hold(buffers, fresh, 'fresh', 50);
  expect([ended, buffers.bytes]).toEqual([0, 450]);
  hold(buffers, fresh, 'fresh', 1);
  expect(destroyed(sockets)).toEqual([false, true, false, false]);
  // One that is read from keeps its connection, however much waits for it.
  hold(buffers, fresh, 'fresh', 300);
  expect(destroyed(sockets)).toEqual([true, true, true, false]);
  expect([ended, buffers.bytes]).toEqual([3, 351]);
});

it('a response that has just begun is not ended before one that turns out to have been read from', async () => {
  const [slow, begun] = await openCorked(2);
  vi.useRealTimers();
  const buffers = openBuffers(1_000, 100);
  hold(buffers, slow, 'slow', 90);
  await read(slow);
  slow?.write(Buffer.alloc(90));
  if (begun) buffers.reserve(begun, 'begun', 90);
  expect(destroyed(sockets)).toEqual([true, false]);
});

it('a connection counts for the address of its last request, and its reservations do not fall below zero', async () => {
  const [proxied, other] = await openCorked(2);
  const buffers = openBuffers(100);
  hold(buffers, proxied, 'one', 80);
  hold(buffers, proxied, 'two', 10);
  hold(buffers, other, 'one', 80);
  expect([ended, buffers.bytes]).toEqual([0, 170]);
  if (!other) throw new Error('there are two sockets');
  buffers.reserve(other, 'one', 10);
  buffers.reserve(other, 'one', -30);
  buffers.reserve(other, 'one', 5);
  expect(buffers.bytes).toBe(175);
  other.destroy();
  buffers.record(other, 'one');
  buffers.reserve(other, 'one', -5);
  expect([ended, buffers.bytes]).toEqual([0, 90]);
});

it('a connection that is not read for its time ends at the next check, unless it has nothing to write', async () => {
  const [stalled, reading, patient, working] = await openCorked(4);
  const buffers = openBuffers(1_000);
  hold(buffers, stalled, 'one', 10, 5_000);
  hold(buffers, reading, 'one', 10, 5_000);
  hold(buffers, patient, 'one', 10);
  if (!reading || !working) throw new Error('there are four sockets');
  buffers.reserve(working, 'one', 10);
  working.uncork();
  buffers.record(working, 'one', 5_000);
  buffers.reserve(reading, 'one', 10);
  vi.advanceTimersByTime(3_000);
  await read(reading);
  reading.write('more');
  vi.advanceTimersByTime(2_000);
  expect(ended).toBe(0);
  vi.advanceTimersByTime(1_000);
  expect(destroyed(sockets)).toEqual([true, false, false, false]);
  // The look after four seconds found that it had been read from.
  vi.advanceTimersByTime(3_000);
  expect(ended).toBe(1);
  vi.advanceTimersByTime(1_000);
  expect(destroyed(sockets)).toEqual([true, true, false, false]);
  vi.advanceTimersByTime(290_000);
  expect(ended).toBe(2);
  // Without a time of its own it has five minutes.
  vi.advanceTimersByTime(5_000);
  expect(destroyed(sockets)).toEqual([true, true, true, false]);
});
