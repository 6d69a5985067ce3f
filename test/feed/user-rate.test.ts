import { setImmediate as turn } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it, vi } from 'vitest';
import { SocketConnection } from '../../src/transport/sockets/connection.ts';
import { countOf, MessageRate } from '../../src/transport/sockets/messagerate.ts';
import { UserRates, type WaitingSocket } from '../../src/transport/sockets/userrates.ts';
import { startApp, type TestApp } from '../support/app.ts';
import { openRawSocket, type RawSocket } from '../support/raw.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startApp({ RATE_LIMIT_USER: '1000000000' });
});
afterAll(() => app.close());
// Time passes for the rates only where a test says so. Where an app runs, timers are real: the database has to answer within some.
const useRateTime = (...timers: Array<'setTimeout' | 'clearTimeout'>) => vi.useFakeTimers({ toFake: ['performance', ...timers] });
beforeEach(() => void useRateTime());
afterEach(() => void vi.useRealTimers());

async function until(isSo: () => boolean): Promise<void> {
  const deadline = Date.now() + 30_000;
  while (!isSo()) {
    if (Date.now() > deadline) throw new Error(`it does not come: ${isSo}`);
    await turn();
  }
}

/** Opens a GraphQL socket of a user. Its `connection_init` has left the rates of the socket and of the user. */
async function open(token = ''): Promise<RawSocket> {
  const headers = { authorization: `Bearer ${token}` };
  const socket = await openRawSocket(app.baseUrl, '/graphql', { protocol: 'graphql-transport-ws', headers });
  socket.say({ type: 'connection_init' });
  await socket.until(({ type }) => type === 'connection_ack');
  vi.advanceTimersByTime(1_000);
  return socket;
}

const pings = (count: number) => Array.from({ length: count }, () => ({ type: 'ping' }));
const countPongs = (...sockets: RawSocket[]) =>
  sockets.reduce((sum, { messages }) => sum + messages.filter(({ type }) => type === 'pong').length, 0);

it('the sockets of a user share a rate: messages beyond it wait, and those of others do not', async () => {
  const { owner, member } = app.demo.users;
  const join = vi.spyOn(UserRates.prototype, 'join');
  const receive = vi.spyOn(SocketConnection.prototype, 'receive');
  const sockets: RawSocket[] = [];
  while (sockets.length < 30) sockets.push(await open(owner.token));
  const other = await open(member.token);
  const [rates] = join.mock.contexts as UserRates[];
  expect(rates?.size).toBe(2);
  receive.mockClear();
  for (const socket of sockets) socket.say(...pings(200));
  await until(() => receive.mock.calls.length === 6_000);
  other.say(...pings(1));
  await other.until(({ type }) => type === 'pong');
  expect(countPongs(...sockets)).toBeLessThanOrEqual(2_000);
  await until(() => countPongs(...sockets) === 2_000);
  const before = new Map(sockets.map((socket) => [socket, countPongs(socket)]));
  // What a peer sends at its own rate while it is not read arrives at once in the end.
  sockets.find((socket) => countPongs(socket) < 200)?.say(...pings(350));
  vi.advanceTimersByTime(1_000);
  await until(() => countPongs(...sockets) === 2_500);
  expect(receive).toHaveBeenCalledTimes(6_001);
  // The sockets take turns.
  const waiting = sockets.filter((socket) => countPongs(socket) < 200);
  const gained = waiting.map((socket) => countPongs(socket) - (before.get(socket) ?? 0));
  expect(waiting.length).toBeGreaterThan(5);
  expect(Math.max(...gained) - Math.min(...gained)).toBeLessThanOrEqual(1);
  await until(() => {
    vi.advanceTimersByTime(1);
    return countPongs(...sockets) === 6_350;
  });
  expect(await Promise.race([...sockets.map(({ gone }) => gone), 'open'])).toBe('open');
  vi.advanceTimersByTime(4_000);
  for (const socket of [...sockets, other]) socket.destroy();
  await until(() => rates?.size === 0);
  join.mockRestore();
  receive.mockRestore();
});

/** Sends more on sockets of a user, who has sent nothing before, than may be handled; returns them, and the connection of one that waits. */
async function flood(token?: string): Promise<{ sockets: RawSocket[]; waiting: SocketConnection }> {
  const receive = vi.spyOn(SocketConnection.prototype, 'receive');
  const sockets: RawSocket[] = [];
  while (sockets.length < 12) sockets.push(await open(token));
  receive.mockClear();
  for (const socket of sockets) socket.say(...pings(200));
  await until(() => receive.mock.calls.length === 2_400);
  const waiting = (receive.mock.contexts as SocketConnection[]).find(({ inbox }) => inbox.isWaiting);
  receive.mockRestore();
  if (!waiting) throw new Error('no socket waits');
  expect(waiting.socket.isPaused).toBe(true);
  return { sockets, waiting };
}

it('a socket whose messages wait is not dropped for a pong that arrives behind them', async () => {
  const { sockets, waiting } = await flood(app.demo.users.viewer.token);
  const terminate = vi.spyOn(waiting.socket, 'terminate');
  const sent = vi.spyOn(waiting.socket, 'ping');
  const keepAlive = waiting.keepAlive.bind(waiting);
  // The seconds that really pass do not count.
  vi.spyOn(waiting, 'keepAlive').mockReturnValue();
  const keepAliveFor = (seconds: number) => {
    for (let second = 0; second < seconds; second += 1) keepAlive();
  };
  while (sent.mock.calls.length === 0) keepAlive();
  vi.advanceTimersByTime(2_000);
  await until(() => !waiting.socket.isPaused);
  keepAliveFor(15);
  expect(sent).toHaveBeenCalledTimes(2);
  waiting.socket.throttle();
  keepAliveFor(14);
  // It is read again just before the next ping is due.
  waiting.socket.endThrottle();
  keepAliveFor(1);
  expect(terminate).not.toHaveBeenCalled();
  // From here on nothing excuses its silence: the peer answers no pings.
  keepAliveFor(15);
  expect(terminate).toHaveBeenCalled();
  for (const socket of sockets) socket.destroy();
});

it('the pongs that arrive once a paused socket is read again count only as far as they answer no ping', async () => {
  const receive = vi.spyOn(SocketConnection.prototype, 'receive');
  const socket = await open(app.demo.users.member.token);
  const [connection] = receive.mock.contexts as SocketConnection[];
  receive.mockRestore();
  if (!connection) throw new Error('nothing was received');
  connection.socket.pause();
  const sent = vi.spyOn(connection.socket, 'ping');
  while (sent.mock.calls.length < 30) connection.keepAlive();
  connection.socket.resume();
  for (let count = 0; count < 30; count += 1) connection.countPong();
  expect(connection.isOpen).toBe(true);
  for (let count = 0; count < 21; count += 1) connection.countPong();
  expect(connection.isOpen).toBe(false);
  socket.destroy();
});

it('a socket whose messages wait is not read again because another reason not to read it has ended', async () => {
  const { sockets, waiting } = await flood(app.demo.users.owner.token);
  waiting.socket.pause();
  waiting.socket.resume();
  expect(waiting.socket.isPaused).toBe(true);
  waiting.socket.endThrottle();
  expect(waiting.socket.isPaused).toBe(false);
  for (const socket of sockets) socket.destroy();
});

it('a socket whose messages wait is closed at once, and reads the close frame of its peer', async () => {
  const { sockets, waiting } = await flood(app.demo.users.outsider.token);
  const onClosed = vi.spyOn(waiting, 'onClosed');
  waiting.close(1012, 'restart');
  expect(waiting.inbox.isWaiting).toBe(false);
  expect(waiting.socket.isPaused).toBe(false);
  await Promise.race(sockets.map(({ refused }) => refused));
  for (const socket of sockets) socket.destroy();
  // Without the time passing after which ws drops a connection.
  await until(() => onClosed.mock.calls.length === 1);
});

it('a client that disconnects before its credential is checked does not count among the sockets of its user', async () => {
  const signIn = vi.spyOn(SocketConnection.prototype, 'signIn');
  const join = vi.spyOn(UserRates.prototype, 'join');
  const { receive } = SocketConnection.prototype;
  const leave = vi.spyOn(SocketConnection.prototype, 'receive').mockImplementation(function (this: SocketConnection, ...message) {
    receive.apply(this, message);
    this.socket.terminate();
  });
  const socket = await openRawSocket(app.baseUrl, '/graphql', { protocol: 'graphql-transport-ws' });
  socket.say({ type: 'connection_init', payload: { authorization: `Bearer ${app.demo.users.owner.token}` } });
  await until(() => signIn.mock.calls.length === 1);
  // Nothing would end the count.
  expect(join).not.toHaveBeenCalled();
  for (const spy of [signIn, join, leave]) spy.mockRestore();
  socket.destroy();
});

it('a client that has not signed in waits for no others at its address', async () => {
  const receive = vi.spyOn(SocketConnection.prototype, 'receive');
  const openAnonymous = () => openRawSocket(app.baseUrl, '/graphql', { protocol: 'graphql-transport-ws' });
  const strangers = await Promise.all(Array.from({ length: 40 }, openAnonymous));
  const client = await openAnonymous();
  // Together they count as 2,360 messages.
  for (const socket of strangers) socket.say({ type: 'connection_init', payload: { padding: 'x'.repeat(60_000) } });
  await until(() => receive.mock.calls.length === strangers.length);
  client.say({ type: 'connection_init', payload: { authorization: `Bearer ${app.demo.users.owner.token}` } });
  await client.until(({ type }) => type === 'connection_ack');
  expect(client.messages).toHaveLength(1);
  receive.mockRestore();
  for (const socket of [...strangers, client]) socket.destroy();
});

it('a large message counts as several, one for each part of it that is begun', () => {
  expect([0, 4_096, 4_097, 8_193].map((bytes) => countOf(bytes, true))).toEqual([1, 1, 2, 3]);
  expect([1_024, 1_025, 2_049].map((bytes) => countOf(bytes, false))).toEqual([1, 2, 3]);
});

it('the credit for paused time is spent once, on messages alone', () => {
  const rate = new MessageRate();
  const countMessages = () => {
    let count = 0;
    while (rate.countMessage(1)) count += 1;
    return count;
  };
  const countControls = () => {
    let count = 0;
    while (rate.countControl()) count += 1;
    return count;
  };
  rate.addCredit(60_000);
  expect(countControls()).toBe(20);
  vi.advanceTimersByTime(60_000);
  expect(countMessages()).toBe(200 + 3_000);
  vi.advanceTimersByTime(60_000);
  expect(countMessages()).toBe(200);
});

/** A socket with messages that wait, which count as `counts`. */
function waitingSocket(name: string, counts: number[], handled: string[]): WaitingSocket {
  return {
    get isWaiting() {
      return counts.length > 0;
    },
    handleNext() {
      handled.push(name);
      return counts.shift() ?? 0;
    },
  };
}

it('a user may send 2,000 messages at once, and 500 a second', () => {
  useRateTime('setTimeout', 'clearTimeout');
  const rate = new UserRates().join('owner');
  const send = () => {
    let count = 0;
    while (rate.spend(1)) count += 1;
    return count;
  };
  expect(send()).toBe(2_000);
  expect(send()).toBe(0);
  vi.advanceTimersByTime(1_000);
  expect(send()).toBe(500);
  vi.advanceTimersByTime(60_000);
  expect(send()).toBe(2_000);
});

it('sockets whose messages wait take turns, and a message that arrives waits behind them', () => {
  useRateTime('setTimeout', 'clearTimeout');
  const rate = new UserRates().join('owner');
  while (rate.spend(1));
  const handled: string[] = [];
  rate.wait(waitingSocket('a', [10, 10, 10], handled));
  rate.wait(waitingSocket('b', [1, 1], handled));
  const gone = waitingSocket('c', [1], handled);
  rate.wait(gone);
  rate.stopWaiting(gone);
  vi.advanceTimersByTime(99);
  expect(rate.spend(1)).toBe(false);
  expect(handled).toEqual([]);
  vi.advanceTimersByTime(1);
  expect(handled).toEqual(['a', 'b', 'a', 'b', 'a']);
  // What they count as is 32 of the 50 messages that have come within the rate.
  let left = 0;
  while (rate.spend(1)) left += 1;
  expect(left).toBe(18);
  expect(vi.getTimerCount()).toBe(0);
});

it('a large message needs what is left for one, and those after it wait for what it counts as', () => {
  useRateTime('setTimeout', 'clearTimeout');
  const rate = new UserRates().join('owner');
  while (rate.spend(1));
  const handled: string[] = [];
  rate.wait(waitingSocket('a', [64, 64], handled));
  vi.advanceTimersByTime(100);
  expect(handled).toEqual(['a']);
  vi.advanceTimersByTime(100);
  expect(handled).toEqual(['a', 'a']);
});

it('the rate of a user is kept until the last socket has closed and its messages no longer count', () => {
  useRateTime('setTimeout', 'clearTimeout');
  const rates = new UserRates();
  const rate = rates.join('owner');
  expect(rates.join('owner')).toBe(rate);
  for (let sent = 0; sent < 500; sent += 1) rate.spend(1);
  rates.leave(rate);
  rates.leave(rate);
  vi.advanceTimersByTime(500);
  expect(rates.join('owner')).toBe(rate);
  vi.advanceTimersByTime(500);
  expect(rates.join('owner')).toBe(rate);
  rates.leave(rate);
  rates.leave(rate);
  expect(rates.size).toBe(0);
});
