import { randomBytes } from 'node:crypto';
import type { Socket } from 'node:net';
import { setImmediate as turn } from 'node:timers/promises';
import fc from 'fast-check';
import { afterAll, afterEach, beforeAll, expect, it, vi } from 'vitest';
import WebSocket from 'ws';
import { SocketConnection } from '../../src/transport/sockets/connection.ts';
import { ServerSocket } from '../../src/transport/sockets/socket.ts';
import { startApp, type TestApp } from '../support/app.ts';
import { countCases } from '../support/cases.ts';
import { type FeedSocket, openSocket, publish } from '../support/feed.ts';
import { countIterations } from '../support/iterations.ts';
import { openRawSocket } from '../support/raw.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startApp({ RATE_LIMIT_USER: '1000000000', RATE_LIMIT_ANONYMOUS: '1000000000', LOG_LEVEL: 'error' });
});
afterAll(() => app.close());
afterEach(() => void vi.useRealTimers());

const say = (feed: FeedSocket, message: unknown) => feed.socket.send(typeof message === 'string' ? message : JSON.stringify(message));
const subscription = () => ({
  query: `subscription { notificationFeed(organizationId: "${app.demo.organization_id}", projectId: "${app.demo.project_id}") { __typename } }`,
});

async function open(isAcknowledged = true): Promise<FeedSocket> {
  const feed = openSocket(app, '/graphql', { protocol: 'graphql-transport-ws' });
  await new Promise((resolve) => feed.socket.once('open', resolve));
  if (isAcknowledged) {
    say(feed, { type: 'connection_init', payload: { authorization: `Bearer ${app.demo.users.owner.token}` } });
    await feed.until(({ type }) => type === 'connection_ack');
  }
  return feed;
}

async function expectAlive(): Promise<void> {
  const feed = await open();
  say(feed, { id: '1', type: 'subscribe', payload: subscription() });
  expect((await feed.until(({ type }) => type === 'next')).payload.data.notificationFeed.__typename).toBe('FeedReady');
  feed.socket.terminate();
}

/** A frame of one byte. */
const TINY = Buffer.from([0x81, 0x81, 0, 0, 0, 0, 0x78]);
const READ_BYTES = 64 * 1024;
/** The header of a masked text of 16 KiB. */
const LARGE_BYTES = 16 * 1024;
const LARGE = Buffer.from([0x81, 0xfe, LARGE_BYTES >> 8, LARGE_BYTES & 0xff, 0, 0, 0, 0]);
/** More than two reads bring. */
const COUNT = 20_000;

it('a peer that sends too many messages at once is paused, and each of them is handled', async () => {
  const feed = await open();
  const { _socket: stream } = feed.socket as unknown as { _socket: Socket };
  const iterations = countIterations();
  const handled = new Map<number, number>();
  let all = 0;
  // A slow machine: what one read brings takes longer than the peer has to wait.
  const receive = vi.spyOn(SocketConnection.prototype, 'receive').mockImplementation(() => {
    const until = performance.now() + 0.02;
    while (performance.now() < until);
    all += 1;
    handled.set(iterations.current, (handled.get(iterations.current) ?? 0) + 1);
  });
  stream.write(Buffer.concat(Array.from({ length: COUNT }, () => TINY)));
  await expect.poll(() => all).toBe(COUNT);
  iterations.stop();
  receive.mockRestore();
  // The thousand are exceeded in the middle of a read, which is handled still.
  expect(Math.max(...handled.values())).toBeLessThanOrEqual(1_000 + READ_BYTES / TINY.length);
  feed.socket.terminate();
});

it('large messages are handled one read at a time, with other work in between', async () => {
  const feed = await open();
  const { _socket: stream } = feed.socket as unknown as { _socket: Socket };
  const iterations = countIterations();
  const handled = new Map<number, number>();
  const receive = vi.spyOn(SocketConnection.prototype, 'receive').mockImplementation((bytes) => {
    handled.set(iterations.current, (handled.get(iterations.current) ?? 0) + bytes.length);
  });
  const messages = Array.from({ length: 200 }, () => Buffer.concat([LARGE, Buffer.alloc(LARGE_BYTES)]));
  stream.write(Buffer.concat(messages));
  await expect.poll(() => [...handled.values()].reduce((sum, bytes) => sum + bytes, 0)).toBe(200 * LARGE_BYTES);
  iterations.stop();
  receive.mockRestore();
  // A message before the bound is reached, the one that reaches it, and the rest of its read.
  expect(Math.max(...handled.values())).toBeLessThanOrEqual(3 * READ_BYTES);
  feed.socket.terminate();
});

it('messages on a refused socket are counted until it is closed', async () => {
  const counted = vi.spyOn(ServerSocket.prototype, 'countMessage');
  const socket = await openRawSocket(app.baseUrl, `${app.projectPath}/notifications/ws?ticket=none`);
  socket.say(...Array.from({ length: 500 }, () => 'x'));
  await expect.poll(() => counted.mock.calls.length).toBe(500);
  counted.mockRestore();
  expect(await socket.refused).toMatchObject({ code: 4401 });
  socket.destroy();
});

it.each<[string, boolean, number]>([
  ['counts as several messages', true, 40],
  ['counts as more of them before anybody has signed in', false, 190],
])('a large message %s', async (_label, isAcknowledged, count) => {
  const feed = await open(isAcknowledged);
  const { query } = subscription();
  const large = isAcknowledged
    ? { id: '1', type: 'subscribe', payload: { query: `${query}${' '.repeat(60_000)}`, variables: {} } }
    : { id: 'x', type: 'complete', padding: ' '.repeat(1_500) };
  for (let sent = 0; sent < count; sent += 1) say(feed, { ...large, id: String(sent) });
  expect(await feed.closed).toMatchObject({ code: 4429 });
});

it('a message of 1.5 KB counts once when its client has signed in', async () => {
  const feed = await open(true);
  for (let sent = 0; sent < 190; sent += 1) say(feed, { id: 'x', type: 'complete', padding: ' '.repeat(1_500) });
  say(feed, { type: 'ping' });
  expect(await feed.until(({ type }) => type === 'pong')).toBeDefined();
  feed.socket.terminate();
});

it('a long message that completes an operation is refused', async () => {
  const feed = await open();
  say(feed, { id: 'x', type: 'complete', padding: Array.from({ length: 10_000 }, () => ({})) });
  expect(await feed.closed).toMatchObject({ code: 4400 });
});

it.each<[string, number, { code: number } | null]>([
  ['as many parts as small packets make of it is taken', 120, null],
  ['more parts than that is refused, as each takes memory', 200, { code: 1008 }],
])('a message in %s', async (_label, parts, outcome) => {
  const feed = await open();
  const { _socket: stream } = feed.socket as unknown as { _socket: Socket };
  const text = JSON.stringify({ type: 'ping', payload: { x: 'x'.repeat(600) } });
  const frame = Buffer.concat([Buffer.from([0x81, 0x80 | 126, text.length >> 8, text.length & 255, 0, 0, 0, 0]), Buffer.from(text)]);
  stream.setNoDelay(true);
  const size = Math.ceil(frame.length / parts);
  for (let sent = 0; sent < frame.length; sent += size) {
    stream.write(frame.subarray(sent, sent + size));
    for (let turns = 0; turns < 10; turns += 1) await turn();
  }
  if (!outcome) expect(await feed.until(({ type }) => type === 'pong')).toMatchObject({ payload: { x: expect.any(String) } });
  else expect(await feed.closed).toMatchObject(outcome);
  feed.socket.terminate();
});

const deep = (depth: number) => `${'['.repeat(depth)}${']'.repeat(depth)}`;

it.each<[string, { code: number; reason?: string }, (feed: FeedSocket) => void]>([
  ['not JSON', { code: 4400 }, (feed) => say(feed, '{')],
  ['JSON of another kind', { code: 4400 }, (feed) => say(feed, '5')],
  ['null', { code: 4400 }, (feed) => say(feed, 'null')],
  ['an unknown type', { code: 4400 }, (feed) => say(feed, { type: 'start' })],
  ['no type', { code: 4400 }, (feed) => say(feed, {})],
  ['an id that is not a string', { code: 4400 }, (feed) => say(feed, { id: 5, type: 'subscribe', payload: subscription() })],
  ['an empty id', { code: 4400 }, (feed) => say(feed, { id: '', type: 'subscribe', payload: subscription() })],
  ['a query that is not a string', { code: 4400 }, (feed) => say(feed, { id: '1', type: 'subscribe', payload: { query: {} } })],
  ['a message of the server', { code: 4400 }, (feed) => say(feed, { type: 'connection_ack' })],
  ['another message of the server', { code: 4400 }, (feed) => say(feed, { id: '1', type: 'next', payload: { data: null } })],
  ['a deep ping', { code: 4400 }, (feed) => say(feed, `{"type":"ping","payload":{"deep":${deep(20_000)}}}`)],
  ['binary', { code: 4400 }, (feed) => feed.socket.send(randomBytes(100))],
  ['JSON in a binary frame', { code: 4400 }, (feed) => feed.socket.send(Buffer.from('{"type":"ping"}'), { binary: true })],
  ['a second connection_init', { code: 4429 }, (feed) => say(feed, { type: 'connection_init' })],
  [
    'an id that is in use',
    { code: 4409 },
    (feed) => {
      say(feed, { id: '1', type: 'subscribe', payload: subscription() });
      say(feed, { id: '1', type: 'subscribe', payload: subscription() });
    },
  ],
  ['70 KB', { code: 1009 }, (feed) => say(feed, { id: '1', type: 'subscribe', payload: { query: `{ ${'a'.repeat(70_000)} }` } })],
  [
    '10,000 fragments',
    { code: 1008 },
    (feed) => {
      for (let index = 0; index < 10_000 && feed.socket.readyState === WebSocket.OPEN; index += 1) feed.socket.send('a', { fin: false });
    },
  ],
  [
    'a thousand messages at once',
    { code: 4429, reason: 'too_many_messages' },
    (feed) => {
      for (let index = 0; index < 1_000; index += 1) say(feed, { type: 'ping' });
    },
  ],
  [
    'thirty pings of the transport at once',
    { code: 4429, reason: 'too_many_messages' },
    (feed) => {
      for (let index = 0; index < 30; index += 1) feed.socket.ping();
    },
  ],
  [
    'pongs without a ping',
    { code: 4429, reason: 'too_many_messages' },
    (feed) => {
      for (let index = 0; index < 1_000; index += 1) feed.socket.pong();
    },
  ],
])('answers %s with its code', async (_what, expected, misbehave) => {
  const feed = await open();
  misbehave(feed);
  expect(await feed.closed).toMatchObject(expected);
  await expectAlive();
});

it.each<[string, number, unknown]>([
  ['subscribe', 4401, { id: '1', type: 'subscribe', payload: { query: '{ __typename }' } }],
  ['a connection_init without a credential', 4401, { type: 'connection_init' }],
  ['a connection_init with a bad one', 4403, { type: 'connection_init', payload: { authorization: 'Bearer rubbish' } }],
  ['a connection_init with a number', 4403, { type: 'connection_init', payload: { authorization: 5 } }],
])('answers %s before the acknowledgement with %i', async (_what, code, message) => {
  const feed = await open(false);
  say(feed, message);
  expect(await feed.closed).toMatchObject({ code });
});

it.each([undefined, {}, { headers: { authorization: 'Bearer x' } }, { apiKey: 'x' }])(
  'names the form of a connection_init in reply to one with %j',
  async (payload) => {
    const feed = await open(false);
    say(feed, { type: 'connection_init', payload });
    const reason = 'not_authenticated: connection_init takes {"authorization": "Bearer …"}';
    expect(await feed.closed).toMatchObject({ code: 4401, reason });
  },
);

it('closes a socket without a connection_init with 4408, and one of another protocol with 4406', async () => {
  const other = openSocket(app, '/graphql', { protocol: 'graphql-ws', headers: { authorization: `Bearer ${app.demo.users.owner.token}` } });
  expect(await other.closed).toMatchObject({ code: 4406 });
  vi.useFakeTimers({ toFake: ['setTimeout'] });
  const silent = await open(false);
  await vi.advanceTimersByTimeAsync(4_999);
  silent.socket.ping();
  await new Promise((resolve) => silent.socket.once('pong', resolve));
  expect(silent.socket.readyState).toBe(WebSocket.OPEN);
  await vi.advanceTimersByTimeAsync(1);
  expect(await silent.closed).toEqual({ code: 4408, reason: 'connection_init_timeout' });
});

it.each<[string, Record<string, unknown>, string]>([
  ['a syntax error', { query: '{' }, 'invalid_request'],
  ['an unknown field', { query: '{ nope }' }, 'invalid_request'],
  ['no such operation', { query: 'query A { __typename }', operationName: 'B' }, 'invalid_request'],
  [
    'a variable that does not fit',
    { query: 'query ($id: ID!) { organization(id: $id) { id } }', variables: { id: {} } },
    'validation_failed',
  ],
  ['too many tokens', { query: `{ ${'__typename '.repeat(3_000)} }` }, 'invalid_request'],
  ['too many aliases', { query: `{ ${Array.from({ length: 60 }, (_, n) => `a${n}: viewer { email }`).join(' ')} }` }, 'invalid_request'],
  ['a deep list', { query: `mutation { revokeApiKey(input: ${deep(2_500)}) { apiKey { id } } }` }, 'invalid_request'],
])('answers %s with an error message', async (_what, payload, code) => {
  const feed = await open();
  say(feed, { id: '1', type: 'subscribe', payload });
  const { type, payload: response } = await feed.until(({ id }) => id === '1');
  const [error] = type === 'error' ? response : response.errors;
  expect(error.extensions.code).toBe(code);
  if (payload.operationName) expect(error.message).toBe('The document has no operation with the given name.');
  say(feed, { id: '2', type: 'subscribe', payload: { query: '{ viewer { email } }' } });
  expect((await feed.until(({ id }) => id === '2')).payload).toEqual({ data: { viewer: { email: 'owner@acme.example' } } });
  feed.socket.terminate();
});

it('carries fifty operations, and refuses the 51st; an id like __proto__ is an id', async () => {
  const feed = await open();
  for (let index = 1; index < 50; index += 1) say(feed, { id: `s${index}`, type: 'subscribe', payload: subscription() });
  say(feed, { id: '__proto__', type: 'subscribe', payload: subscription() });
  expect((await feed.until(({ id }) => id === '__proto__')).type).toBe('next');
  await feed.until(({ id }) => id === 's49');
  say(feed, { id: 's51', type: 'subscribe', payload: subscription() });
  expect(await feed.until(({ id }) => id === 's51')).toMatchObject({
    type: 'error',
    payload: [{ extensions: { code: 'invalid_request' } }],
  });
  say(feed, { id: 's1', type: 'complete' });
  say(feed, { id: 's52', type: 'subscribe', payload: subscription() });
  expect(await feed.until(({ id }) => id === 's52')).toMatchObject({ type: 'next' });
  feed.socket.terminate();
});

it('does not execute an operation that is completed before it begins, or while it waits for its id', async () => {
  const feed = await open();
  const inProject = { organizationId: app.demo.organization_id, projectId: app.demo.project_id };
  const publishing = (title: string) => ({
    query: 'mutation ($input: PublishNotificationInput!) { publishNotification(input: $input) { notification { title sequence } } }',
    variables: { input: { ...inProject, kind: 'test.frames', severity: 'info', title } },
  });
  const before = await publish(app, 'before');
  for (const title of ['at once', 'waiting']) {
    say(feed, { id: '1', type: 'subscribe', payload: publishing(title) });
    say(feed, { id: '1', type: 'complete' });
  }
  say(feed, { id: '1', type: 'subscribe', payload: publishing('last') });
  const { payload } = await feed.until(({ id, type }) => id === '1' && type === 'next');
  expect(payload.data.publishNotification.notification).toEqual({ title: 'last', sequence: before + 1 });
  feed.socket.terminate();
});

it('survives fuzzed frames, and never closes with 4500', { timeout: 240_000 }, async () => {
  const seed = Number(process.env.FUZZ_SEED ?? 20261120);
  const runs = countCases(50_000, 'FUZZ_FRAMES');
  const types = ['connection_init', 'connection_ack', 'ping', 'pong', 'subscribe', 'next', 'error', 'complete', 'start', ''];
  const queries = [
    '{ __typename }',
    '{',
    '{ viewer { name } }',
    subscription().query,
    'mutation { __typename }',
    'query A { a } query B { b }',
    '#',
  ];
  const message = fc.record(
    {
      id: fc.oneof(fc.constantFrom('1', '2', '__proto__', ''), fc.anything()),
      type: fc.oneof({ weight: 9, arbitrary: fc.constantFrom(...types) }, { weight: 1, arbitrary: fc.anything() }),
      payload: fc.oneof(
        fc.record(
          {
            query: fc.oneof(fc.constantFrom(...queries), fc.string()),
            variables: fc.anything(),
            operationName: fc.anything(),
            extensions: fc.anything(),
          },
          { requiredKeys: [] },
        ),
        fc.anything(),
      ),
    },
    { requiredKeys: [] },
  );
  const toText = (value: unknown) => {
    try {
      return JSON.stringify(value, (_key, part) => (typeof part === 'bigint' ? String(part) : part)) ?? 'undefined';
    } catch {
      return '{';
    }
  };
  const frame = fc.oneof(
    { weight: 8, arbitrary: message.map(toText) },
    { weight: 1, arbitrary: fc.string() },
    { weight: 1, arbitrary: fc.tuple(message.map(toText), fc.nat(400)).map(([text, at]) => text.slice(0, at)) },
    { weight: 1, arbitrary: fc.uint8Array({ maxLength: 50 }).map((bytes) => Buffer.from(bytes)) },
  );
  const frames = fc.sample(frame, { seed, numRuns: runs });
  const codes = new Map<number, number>();
  let next = 0;
  const lane = async () => {
    while (next < frames.length) {
      const feed = await open(next % 5 !== 0);
      const batch = frames.slice(next, next + 1 + (next % 40));
      next += batch.length;
      for (const part of batch) if (feed.socket.readyState === WebSocket.OPEN) feed.socket.send(part);
      // Whatever came of it, the socket answers a ping of the transport, or has been closed.
      if (feed.socket.readyState === WebSocket.OPEN) feed.socket.ping();
      const pong = new Promise<void>((resolve) => feed.socket.once('pong', () => resolve()));
      await Promise.race([pong, feed.closed]);
      feed.socket.close();
      const { code } = await feed.closed;
      codes.set(code, (codes.get(code) ?? 0) + 1);
    }
  };
  await Promise.all(Array.from({ length: 16 }, lane));
  console.log(`${runs} frames, seed ${seed}; closed with ${JSON.stringify([...codes].sort())}`);
  const documented = new Set([1000, 1005, 4400, 4401, 4403, 4409, 4429]);
  expect([...codes.keys()].filter((code) => !documented.has(code))).toEqual([]);
  await expectAlive();
});
