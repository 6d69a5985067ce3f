import { type AddressInfo, createServer, type Socket } from 'node:net';
import { afterEach, beforeEach, expect, it, onTestFinished, vi } from 'vitest';
import { Probe } from '../../src/platform/probe.ts';

/** What PostgreSQL sends to a client that it accepts: AuthenticationOk and ReadyForQuery. */
const ACCEPTED = Buffer.from('R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I', 'latin1');
/** The response to a client that it rejects: FATAL, with the code of a server that is full. */
const REJECTED = Buffer.from('E\0\0\0\x19SFATAL\0C53300\0Mfull\0\0', 'latin1');
/** What it answers to a statement: EmptyQueryResponse and ReadyForQuery. */
const ANSWERED = Buffer.from('I\0\0\0\x04Z\0\0\0\x05I', 'latin1');

// The deadlines of a probe are short, and the machine may be busy.
beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout'] }));
afterEach(() => void vi.useRealTimers());

/** A server that answers every statement, and accepts a client when the test says so. */
async function openServer() {
  const connections: Array<{ readonly socket: Socket; readonly ended: Promise<void> }> = [];
  const server = createServer((socket) => {
    connections.push({ socket, ended: new Promise((resolve) => socket.once('end', resolve)) });
    socket.on('error', () => {});
    socket.on('data', (bytes) => bytes.includes('SELECT') && socket.write(ANSWERED));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    for (const { socket } of connections) socket.destroy();
    server.close();
  });
  const url = `postgresql://someone@127.0.0.1:${(server.address() as AddressInfo).port}/any?sslmode=disable`;
  return { connections, probe: new Probe(url, '') };
}

it('a probe that is closed while it connects closes that connection too', async () => {
  const { connections, probe } = await openServer();
  const rows = probe.query('SELECT 1');
  await expect.poll(() => connections.length).toBe(1);
  probe.close();
  connections[0]?.socket.write(ACCEPTED);
  await expect(rows).rejects.toThrow('the probe is closed');
  await connections[0]?.ended;
});

it('a closed probe opens no connection', async () => {
  const { connections, probe } = await openServer();
  probe.close();
  await expect(probe.query('SELECT 1')).rejects.toThrow('the probe is closed');
  expect(connections).toEqual([]);
});

it('a probe that is alone keeps its connection, and fails, where another one is rejected', async () => {
  const { connections, probe } = await openServer();
  const open = async (answer: Buffer, query: () => Promise<unknown[]>) => {
    const before = connections.length;
    const rows = query();
    rows.catch(() => {});
    await expect.poll(() => connections.length).toBe(before + 1);
    connections[before]?.socket.write(answer);
    return rows;
  };
  await open(ACCEPTED, () => probe.query('SELECT 1'));
  let isOpen = true;
  connections[0]?.ended.then(() => (isOpen = false));
  const askAnew = () => probe.query('SELECT 1', undefined, { isAlone: true, isRejected: true });
  await expect(open(REJECTED, askAnew)).rejects.toMatchObject({ code: '53300' });
  expect(isOpen).toBe(true);
  await open(ACCEPTED, askAnew);
  await connections[0]?.ended;
  probe.close();
});
