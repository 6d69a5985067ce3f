import { expect, vi } from 'vitest';
import { SocketConnection } from '../../src/transport/sockets/connection.ts';
import type { TestApp } from './app.ts';
import { openRawSocket, type RawSocket } from './raw.ts';

/**
 * A socket to which the server's answers are not sent, as those to a peer that does not read; `expectSent` waits for so many. The
 * test restores all mocks.
 */
export async function openStuck(app: TestApp): Promise<RawSocket & { expectSent(count: number): Promise<void> }> {
  const headers = { authorization: `Bearer ${app.demo.users.owner.token}` };
  const socket = await openRawSocket(app.baseUrl, '/graphql', { protocol: 'graphql-transport-ws', headers });
  socket.say({ type: 'connection_init' });
  await socket.until(({ type }) => type === 'connection_ack');
  const send = vi.spyOn(SocketConnection.prototype, 'send').mockReturnValue(new Promise(() => {}));
  return Object.assign(socket, { expectSent: (count: number) => expect.poll(() => send.mock.calls.length).toBe(count) });
}

export const subscribe = (id: number, payload: object) => ({ type: 'subscribe', id: String(id), payload });

/** The document of an operation, which uses no variables. */
export const query = '{ viewer { id } }';
/** Variables that take many times their text in memory. */
export const manyObjects = { a: Array.from({ length: 20_000 }, () => ({})) };
