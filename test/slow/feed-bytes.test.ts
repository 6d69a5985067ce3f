import type { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { stringifyJson } from '../../src/kernel/json/text.ts';
import { MemoryBudget } from '../../src/kernel/memorybudget.ts';
import { loadEntries } from '../../src/notifications/entries.ts';
import { loadLastSequence } from '../../src/notifications/log.ts';
import { cacheText } from '../../src/transport/delivery/texts.ts';
import { startApp, type TestApp } from '../support/app.ts';
import { insertLarge } from '../support/entries.ts';
import { openPlainFeed, openSocket } from '../support/feed.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startApp({ RATE_LIMIT_USER: '100000000', LOG_LEVEL: 'error' });
}, 300_000);
afterAll(() => app.close());

const insert = (count: number, bytes: number) =>
  insertLarge((sql, values = []) => app.app.database.prisma.$executeRawUnsafe(sql, ...values), project(), count, bytes);
const project = () => app.demo.project_id;
const last = () => loadLastSequence(app.app.database, project());
const numbers = (from: number, to: number) => Array.from({ length: to - from }, (_, index) => from + index + 1);

describe('a batch of the log', () => {
  it('ends at its limit of bytes, has one entry at least, and shows whether there is more', async () => {
    const from = await last();
    await insert(6, 20_000);
    const read = (after: number, limit: number, maxBytes: number) => loadEntries(app.app.database, project(), { after, limit, maxBytes });
    const all = await read(from, 10, 1_000_000);
    expect(all.entries.map(({ sequence }) => sequence)).toEqual(numbers(from, from + 6));
    expect(all.hasMore).toBe(false);
    expect(all.bytes).toBeGreaterThan(6 * 40_000);
    expect(all.bytes).toBeLessThan(6 * 41_000);
    const some = await read(from, 10, 130_000);
    expect(some.entries.map(({ sequence }) => sequence)).toEqual(numbers(from, from + 3));
    expect(some.hasMore).toBe(true);
    const one = await read(from + 2, 10, 100);
    expect(one.entries.map(({ sequence }) => sequence)).toEqual([from + 3]);
    expect(one.hasMore).toBe(true);
    const end = await read(from + 5, 10, 100);
    expect([end.entries.length, end.hasMore]).toEqual([1, false]);
    expect(await read(from + 6, 10, 100)).toEqual({ entries: [], bytes: 0, hasMore: false, isContinued: true });
    expect(JSON.parse(stringifyJson(all.entries[0]?.data))).toEqual({ text: 'd'.repeat(20_000) });
  });
});

it('evicts the oldest holder beyond the budget of all', () => {
  const evicted: string[] = [];
  const holderOf = (name: string) => ({ evict: () => void evicted.push(name) });
  const [a, b, c] = [holderOf('a'), holderOf('b'), holderOf('c')];
  const budget = new MemoryBudget(100);
  budget.reserve(a, 40);
  budget.reserve(b, 40);
  budget.reserve(a, 50);
  expect([budget.bytes, evicted]).toEqual([90, []]);
  budget.reserve(c, 30);
  expect([budget.bytes, evicted]).toEqual([80, ['b']]);
  budget.release(a);
  budget.reserve(b, 500);
  expect([budget.bytes, evicted]).toEqual([500, ['b', 'c']]);
  budget.reserve(b, 0);
  expect(budget.bytes).toBe(0);
});

it('drops the oldest texts of events beyond the limit, and keeps the newest', () => {
  const forms = Array.from({ length: 20 }, () => new WeakMap<object, Buffer>());
  const event = {};
  for (const texts of forms) cacheText(texts, event, Buffer.alloc(10_000), 100_000);
  expect(forms.map((texts) => texts.has(event))).toEqual(forms.map((_texts, index) => index >= 11));
  const [first] = forms;
  if (first) cacheText(first, event, Buffer.alloc(1_000_000), 100_000);
  expect(forms.map((texts) => texts.has(event))).toEqual(forms.map((_texts, index) => index === 0));
});

/** A socket that is acknowledged, for as many subscriptions as the test begins. */
async function openGraphql() {
  const feed = openSocket(app, '/graphql', {
    protocol: 'graphql-transport-ws',
    headers: { authorization: `Bearer ${app.demo.users.owner.token}` },
  });
  feed.socket.on('open', () => feed.socket.send('{"type":"connection_init"}'));
  await feed.until(({ type }) => type === 'connection_ack');
  const { _socket: transport } = feed.socket as unknown as { _socket: Socket };
  const begin = (id: string, fields: string, after: number) => {
    const query = `subscription { notificationFeed(organizationId: "${app.demo.organization_id}", projectId: "${project()}", after: ${after}) {
      __typename ... on FeedReady { sequence } ... on NotificationAdded { sequence notification { ${fields} } } } }`;
    feed.socket.send(JSON.stringify({ id, type: 'subscribe', payload: { query } }));
  };
  return { ...feed, transport, begin };
}

const typeOf = ({ payload }: { payload?: { data?: { notificationFeed: { __typename: string } } } }) =>
  payload?.data?.notificationFeed.__typename;

it('reads nothing for a socket that does not read, and for each of its subscriptions in turn when it does', {
  timeout: 300_000,
}, async () => {
  const [subscriptions, count] = [40, 8];
  const after = await last();
  await insert(count, 500_000);
  const { frames, transport, begin, until, socket } = await openGraphql();
  transport.pause();
  const used = () => process.memoryUsage().heapUsed + process.memoryUsage().arrayBuffers;
  const before = used();
  let most = 0;
  for (let index = 0; index < subscriptions; index += 1) begin(`${index}`, `f${index}: id title body data`, after);
  for (let round = 0; round < 50; round += 1) {
    await sleep(100);
    most = Math.max(most, used() - before);
  }
  // 320 MB if each had its page.
  expect(most / 2 ** 20).toBeLessThan(150);
  const order: string[] = [];
  socket.on('message', (data: Buffer) => void order.push(/"id":"(\d+)"/.exec(data.toString('latin1', 0, 40))?.[1] ?? ''));
  transport.resume();
  for (let index = 0; index < subscriptions; index += 1) await until((frame) => frame.id === `${index}` && typeOf(frame) === 'FeedReady');
  for (let index = 0; index < subscriptions; index += 1) {
    const own = frames.filter((frame) => frame.id === `${index}` && typeOf(frame) === 'NotificationAdded');
    expect(own.map(({ payload }) => payload.data.notificationFeed.sequence)).toEqual(numbers(after, after + count));
  }
  // Nobody is done before everybody has begun.
  const firstDone = order.findIndex((id, at) => order.slice(0, at).filter((other) => other === id).length === count);
  expect(new Set(order.slice(0, firstDone)).size).toBe(subscriptions);
  socket.terminate();
});

it('ends only a subscription whose events would be too large, with an error', async () => {
  const after = await last();
  await insert(1, 500_000);
  const aliases = Array.from({ length: 10 }, (_, index) => `d${index}: data`).join(' ');
  const { frames, begin, until, socket } = await openGraphql();
  begin('replay', aliases, after);
  begin('live', aliases, after + 1);
  begin('other', 'id data', after);
  const failure = await until(({ id, type }) => id === 'replay' && type === 'error');
  expect(failure.payload[0]).toMatchObject({
    message: 'An event would be larger than 4194304 bytes: select fewer fields of it.',
    extensions: { code: 'invalid_request' },
  });
  await until((frame) => frame.id === 'live' && typeOf(frame) === 'FeedReady');
  await until((frame) => frame.id === 'other' && typeOf(frame) === 'FeedReady');
  await insert(1, 500_000);
  await until(({ id, type }) => id === 'live' && type === 'error');
  await until((frame) => frame.id === 'other' && frame.payload.data.notificationFeed.sequence === after + 2);
  expect(frames.filter(({ type }) => type === 'error').length).toBe(2);
  socket.terminate();

  const query = `subscription { notificationFeed(organizationId: "${app.demo.organization_id}", projectId: "${project()}", after: ${after}) {
    ... on NotificationAdded { sequence notification { ${aliases} } } } }`;
  const response = await app.graphql(query, {}, { headers: { accept: 'text/event-stream' } });
  const events = response.text.split('\n').filter((line) => line.startsWith('data: '));
  expect(events.length).toBe(1);
  expect(JSON.parse(events[0]?.slice(6) ?? '')).toMatchObject({ errors: [{ extensions: { code: 'invalid_request' } }] });
});

it('delivers plain JSON for any size of a row', async () => {
  const after = await last();
  const feed = openPlainFeed(app, { after });
  await feed.until(({ type }) => type === 'ready');
  await insert(3, 500_000);
  await feed.until(({ sequence }) => sequence === after + 3);
  feed.socket.terminate();
  expect(feed.frames.map(({ sequence }) => sequence)).toEqual([after, ...numbers(after, after + 3)]);
  expect(feed.frames[3].notification.data.text.length).toBe(500_000);
});
