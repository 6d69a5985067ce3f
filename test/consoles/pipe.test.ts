import { randomBytes } from 'node:crypto';
import { Socket } from 'node:net';
import { setImmediate as turn } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { SocketConnection } from '../../src/transport/sockets/connection.ts';
import { startApp, type TestApp } from '../support/app.ts';
import { type Guest, openConsole, openConsoleSocket, openGuest, setEndpoint } from '../support/console.ts';

let app: TestApp;
let guest: Guest;
let instance: string;
beforeAll(async () => {
  app = await startApp({ RATE_LIMIT_USER: '100000000', RATE_LIMIT_ANONYMOUS: '100000000' });
  instance = app.demo.instances.eligible;
});
afterAll(() => app.close());
beforeEach(async () => {
  guest = await openGuest();
  await setEndpoint(app, instance, { port: guest.port });
});
afterEach(() => guest.close());

const everyByte = Buffer.from(Array.from({ length: 256 }, (_, value) => value));

async function countAttached(): Promise<number> {
  const { text } = await app.ask('GET', '/metrics', { as: null });
  return Number(/^portico_consoles\{state="attached"\} (\d+)$/m.exec(text)?.[1]);
}

describe('a console', () => {
  it.each([[[]], [['binary']], [['something', 'binary']]])(
    'passes every byte as it is, both ways, with the subprotocols %j',
    async (protocols) => {
      const console = await openConsole(app, instance, { protocols });
      await console.opened;
      expect(console.socket.protocol).toBe(protocols.length > 0 ? 'binary' : '');
      expect(console.socket.extensions).toBe('');
      await guest.called();
      const [said, typed] = [Buffer.concat([everyByte, randomBytes(300_000)]), Buffer.concat([everyByte, randomBytes(900_000)])];
      guest.say(said);
      console.socket.send(typed);
      await expect.poll(() => console.output().length).toBe(said.length);
      await expect.poll(() => guest.heard().length).toBe(typed.length);
      expect(console.output().equals(said)).toBe(true);
      expect(guest.heard().equals(typed)).toBe(true);
      expect(console.texts).toEqual([]);
      console.socket.terminate();
    },
  );

  it('accepts text frames as input where it is a serial one', async () => {
    const console = await openConsole(app, instance);
    await console.opened;
    console.socket.send('grüße\r');
    await expect.poll(() => guest.heard().toString()).toBe('grüße\r');
    console.socket.terminate();
  });

  it('writes the frames that arrive at once as one, and nothing for empty ones', async () => {
    const console = await openConsole(app, instance);
    await console.opened;
    await guest.called();
    const frame = (text: string) => Buffer.from([0x82, 0x80 | text.length, 0, 0, 0, 0, ...Buffer.from(text)]);
    const frames = Array.from({ length: 5_000 }, (_, index) => [frame(String(index % 10)), frame('')]);
    const { _socket: stream } = console.socket as unknown as { _socket: Socket };
    const write = vi.spyOn(Socket.prototype, 'write');
    stream.write(Buffer.concat(frames.flat()));
    await expect.poll(() => guest.heard().toString()).toBe('0123456789'.repeat(500));
    // The client's own is among them.
    const writes = write.mock.calls.map(([bytes]) => bytes.length);
    write.mockRestore();
    expect(writes).not.toContain(0);
    expect(writes.length).toBeLessThan(20);
    console.socket.terminate();
  });

  it.each(['serial', 'vnc'] as const)('receives the input that a client of a %s console sends before it disconnects', async (kind) => {
    await setEndpoint(app, instance, { kind, port: guest.port });
    const console = await openConsole(app, instance);
    await console.opened;
    await guest.called();
    for (let index = 0; index < 100; index += 1) console.socket.send(Buffer.from('x'));
    console.socket.close();
    await expect.poll(() => guest.heard().toString()).toBe('x'.repeat(100));
  });

  it('detaches a client that disconnects while its input waits', async () => {
    const console = await openConsole(app, instance);
    await console.opened;
    (await guest.called()).pause();
    const keepAlive = vi.spyOn(SocketConnection.prototype, 'keepAlive');
    const { _socket: stream } = console.socket as unknown as { _socket: Socket };
    while (stream.writableLength < 1024 * 1024) {
      console.socket.send(Buffer.alloc(64 * 1024));
      await turn();
    }
    await expect.poll(() => keepAlive.mock.contexts.length).toBeGreaterThan(0);
    const [connection] = keepAlive.mock.contexts as SocketConnection[];
    keepAlive.mockRestore();
    expect(await countAttached()).toBe(1);
    stream.resetAndDestroy();
    // Two intervals of its pings.
    for (let second = 0; second < 30; second += 1) {
      connection?.keepAlive();
      await turn();
    }
    await expect.poll(countAttached, { timeout: 5_000 }).toBe(0);
  });

  it('refuses text frames where it is a screen', async () => {
    await setEndpoint(app, instance, { kind: 'vnc', port: guest.port });
    const console = await openConsole(app, instance);
    await console.opened;
    console.socket.send('text');
    expect(await console.closed).toEqual({ code: 1003, reason: 'binary_only' });
  });

  it('is opened by a header as by a ticket', async () => {
    const path = `${app.projectPath}/compute/instances/${instance}/console/ws`;
    const console = openConsoleSocket(app.baseUrl, path, { headers: { authorization: `Bearer ${app.demo.users.member.api_key}` } });
    await console.opened;
    await guest.called();
    guest.say('login:');
    await expect.poll(() => String(console.output())).toContain('login:');
    console.socket.terminate();
  });
});
