import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { openProject, type ProjectScope } from '../../src/access/scope.ts';
import type { FeedEvent } from '../../src/notifications/events.ts';
import { openFeed } from '../../src/notifications/feed.ts';
import { Hubs } from '../../src/notifications/hubs.ts';
import { createLogger } from '../../src/platform/logger.ts';
import type { Wakeup } from '../../src/platform/wakeups.ts';
import { startApp, type TestApp } from '../support/app.ts';
import { openPlainFeed } from '../support/feed.ts';

/** What one event tells of single reads. */
const MOST_IDS = 1_000;

let app: TestApp;
let scope: ProjectScope;
/** The numbers by id, in the order of the log. */
let log: Map<string, number>;
let last: number;

beforeAll(async () => {
  app = await startApp({ RATE_LIMIT_USER: '100000000', LOG_LEVEL: 'error' });
  const { organization_id: organizationId, project_id: projectId, users } = app.demo;
  const session = { kind: 'session', expires: new Date(Date.now() + 3_600_000) } as const;
  const viewer = { userId: users.admin.id, email: '', name: '', created: new Date(), credential: session };
  scope = await openProject(app.app.database, viewer, { organizationId, projectId });
  await scope.database.query`
    INSERT INTO notifications (project_id, kind, severity, title)
    SELECT ${projectId}::uuid, 'test', 'info', 'Title ' || number FROM generate_series(1, 5000) AS number`;
  const rows = await scope.database.query<{ id: string; sequence: number }>`
    SELECT id, sequence FROM notifications WHERE project_id = ${projectId}::uuid ORDER BY sequence`;
  log = new Map(rows.map(({ id, sequence }) => [id, sequence]));
  last = rows.length;
});
afterAll(() => app.close());
beforeEach(() => scope.database.query`DELETE FROM notification_states WHERE project_id = ${scope.projectId}::uuid`);

/** The ids of every second notification from a place in the log on: the watermark moves over none of them. */
function pick(from: number, count: number): string[] {
  return [...log.keys()].filter((_id, index) => index > from && (index - from) % 2 === 1).slice(0, count);
}

async function mark(ids: readonly string[]): Promise<void> {
  await scope.database.query`SELECT mark_notifications_read(${scope.projectId}::uuid, ${scope.viewer.userId}::uuid, ${ids}::uuid[], NULL)`;
}

interface Read {
  readonly type: 'read';
  readonly readThrough: number;
  readonly notificationIds: readonly string[];
  readonly unreadCount: number;
}

/** Every event is bounded, and its count is what a client counts that knows what it was told. */
function expectWhole(events: readonly Read[], ids: readonly string[]): void {
  const told = new Set<string>();
  for (const { readThrough, notificationIds, unreadCount } of events) {
    expect(notificationIds.length).toBeLessThanOrEqual(MOST_IDS);
    for (const id of notificationIds) told.add(id);
    const singles = [...told].filter((id) => (log.get(id) ?? 0) > readThrough);
    expect(unreadCount).toBe(last - readThrough - singles.length);
  }
  expect([...told].sort()).toEqual([...ids].sort());
}

it('more single reads than one event holds are delivered in several, without a loss', async () => {
  const feed = openPlainFeed(app, { as: 'admin' });
  await feed.until(({ type }) => type === 'ready');
  const ids = pick(10, 2_500);
  await mark(ids);
  await feed.until((frame) => frame.type === 'read' && frame.unread_count === last - ids.length);
  const events = feed.frames.filter(({ type }) => type === 'read');
  expect(events.map(({ notification_ids }) => notification_ids.length)).toEqual([1_000, 1_000, 500]);
  expectWhole(
    events.map(({ read_through, notification_ids, unread_count }) => ({
      type: 'read',
      readThrough: read_through,
      notificationIds: notification_ids,
      unreadCount: unread_count,
    })),
    ids,
  );
  feed.socket.terminate();
});

/** Feeds of one user that are read by hand, on hubs that are woken by hand. */
function openFeeds(count: number) {
  let wake: (wakeup: Wakeup) => void = () => {};
  const wakeups = {
    listen: (listener: typeof wake) => {
      wake = listener;
      return () => {};
    },
    send: () => {},
  };
  const hubs = new Hubs({ database: scope.database, wakeups, log: createLogger('silent') });
  const open = (after: number | null) => openFeed(scope, { hubs, watchAccess: () => ({ stop: () => {} }) as never }, after);
  const feeds = Array.from({ length: count }, () => open(null));
  const readNext = async (feed: (typeof feeds)[number]): Promise<Read | null> => {
    if (feed.needsFetch) await feed.fetch();
    const event = feed.read();
    if (event === null && feed.needsFetch) return readNext(feed);
    return event as Read | null;
  };
  const readAll = async (feed: (typeof feeds)[number]) => {
    const events: Read[] = [];
    for (let event = await readNext(feed); event; event = await readNext(feed)) if (event.type === 'read') events.push(event);
    return events;
  };
  const markAndWake = async (ids: readonly string[]) => {
    const readable = new Promise<void>((resolve) => {
      (feeds[0] as (typeof feeds)[number]).consumer = { onReadable: resolve };
    });
    await mark(ids);
    wake({ projectId: scope.projectId, userId: scope.viewer.userId });
    await readable;
  };
  const close = () => {
    hubs.close();
    for (const feed of feeds) feed.end();
  };
  return { hubs, feeds, open, wake: () => wake({ projectId: scope.projectId }), readAll, readNext, markAndWake, close };
}

it('a feed that has missed read states receives all reads of them, and holds up no other feed', async () => {
  const { feeds, readAll, markAndWake, close } = openFeeds(2);
  const [quick, slow] = feeds as [(typeof feeds)[number], (typeof feeds)[number]];
  await Promise.all([readAll(quick), readAll(slow)]);
  const parts = [pick(10, 800), pick(1_610, 800), pick(3_210, 800), pick(4_810, 3)];
  const events: Read[] = [];
  for (const part of parts) {
    await markAndWake(part);
    // What all have together: nothing of it is fetched for the one that keeps up.
    expect(quick.needsFetch).toBe(false);
    events.push(...(await readAll(quick)));
  }
  expectWhole(events, parts.flat());
  expect(slow.needsFetch).toBe(true);
  const late = await readAll(slow);
  expectWhole(late, parts.flat());
  expect(late.map(({ notificationIds }) => notificationIds.length)).toEqual([1_000, 1_000, 403]);
  expect(await readAll(slow)).toEqual([]);
  await markAndWake(pick(4_820, 1));
  expect([(await readAll(quick)).length, (await readAll(slow)).length]).toEqual([1, 1]);
  close();
});

it('the single reads that hubs keep are bounded, and a feed whose hub has dropped them fetches them all', async () => {
  const { hubs, feeds, readAll, markAndWake, close } = openFeeds(2);
  const [quick, slow] = feeds as [(typeof feeds)[number], (typeof feeds)[number]];
  await Promise.all([readAll(quick), readAll(slow)]);
  const ids = pick(10, 800);
  await markAndWake(ids);
  expectWhole(await readAll(quick), ids);
  expect(hubs.singleReads.bytes).toBe(ids.length * 64);
  // Another reader needs all of the budget.
  const another = { evict: () => {} };
  hubs.singleReads.reserve(another, 8 * 1024 * 1024);
  expect(hubs.singleReads.bytes).toBe(8 * 1024 * 1024);
  expect([quick.needsFetch, slow.needsFetch]).toEqual([false, true]);
  expectWhole(await readAll(slow), ids);
  hubs.singleReads.release(another);
  const more = pick(1_610, 3);
  await markAndWake(more);
  expect(hubs.singleReads.bytes).toBe(more.length * 64);
  for (const feed of feeds)
    expect((await readAll(feed)).flatMap(({ notificationIds }) => notificationIds).sort()).toEqual([...more].sort());
  close();
  expect(hubs.singleReads.bytes).toBe(0);
});

it('fetched single reads that were released are fetched again', async () => {
  const { feeds, readAll, readNext, markAndWake, close } = openFeeds(1);
  const feed = feeds[0] as (typeof feeds)[number];
  await readAll(feed);
  const ids = pick(10, 2_000);
  await markAndWake(ids);
  const first = (await readNext(feed)) as Read;
  await feed.fetch();
  feed.release();
  expect(feed.needsFetch).toBe(true);
  const rest = await readAll(feed);
  expect(rest.map(({ notificationIds }) => notificationIds.length)).toEqual([1_000]);
  expectWhole([first, ...rest], ids);
  close();
});

it('reads that are made while earlier ones are delivered count for none of their events', async () => {
  const { feeds, readAll, markAndWake, close } = openFeeds(1);
  const feed = feeds[0] as (typeof feeds)[number];
  await readAll(feed);
  const ids = pick(10, 1_500);
  await markAndWake(ids);
  await mark(pick(3_010, 700));
  const events = await readAll(feed);
  expect(events.map(({ notificationIds }) => notificationIds.length)).toEqual([1_000, 500]);
  expectWhole(events, ids);
  close();
});

it('single reads that readThrough passes while they are delivered are left out', async () => {
  const { feeds, readAll, readNext, markAndWake, close } = openFeeds(1);
  const feed = feeds[0] as (typeof feeds)[number];
  await readAll(feed);
  await markAndWake(pick(10, 2_500));
  expect((await readNext(feed))?.notificationIds).toHaveLength(1_000);
  await scope.database.query`SELECT mark_notifications_read(${scope.projectId}::uuid, ${scope.viewer.userId}::uuid, NULL, NULL)`;
  expect((await readNext(feed))?.notificationIds).toEqual([]);
  expect(await readNext(feed)).toBeNull();
  close();
});

const countUnread = async () => {
  const [row] = await scope.database.query<{ unread: number }>`
    SELECT unread_notifications(${scope.projectId}::uuid, ${scope.viewer.userId}::uuid)::int AS unread`;
  return row?.unread;
};

/** The events of a feed up to the one that tells of the read of an entry. */
async function readUntilRead(feed: ReturnType<ReturnType<typeof openFeeds>['open']>, id: string): Promise<FeedEvent[]> {
  const events: FeedEvent[] = [];
  for await (const event of feed) {
    events.push(event);
    if (event.type === 'read' && event.notificationIds.includes(id)) break;
  }
  return events;
}

it('an entry that is replayed as unread, and read before the boundary, is delivered as read', async () => {
  const { open, close } = openFeeds(0);
  const feed = open(last - 300);
  const { value: first } = await feed.next();
  if (first?.type !== 'notification') throw new Error('the first event is not a notification');
  expect(first.notification.read).toBe(false);
  await mark([first.notification.id]);
  const events = await readUntilRead(feed, first.notification.id);
  expect(events.map(({ type }) => type)).toEqual([...Array(299).fill('notification'), 'ready', 'read']);
  expect(events.at(-2)).toMatchObject({ unreadCount: last - 1 });
  expect(events.at(-1)).toMatchObject({ unreadCount: last - 1 });
  close();
});

it.each([
  ['singly', (ids: readonly string[]) => mark(ids.slice(1))],
  [
    'with all before it',
    () => scope.database.query`
      SELECT mark_notifications_read(${scope.projectId}::uuid, ${scope.viewer.userId}::uuid, NULL, ${last}::bigint)`,
  ],
])('an entry that is read %s before a feed begins, and follows its boundary, is delivered as read', async (_how, read) => {
  const { feeds, open, wake, readNext, close } = openFeeds(1);
  // The hub has its position, and learns of what is added only when it is woken.
  await readNext(feeds[0] as (typeof feeds)[number]);
  const boundary = last;
  const added = await scope.database.query<{ id: string }>`
    INSERT INTO notifications (project_id, kind, severity, title)
    SELECT ${scope.projectId}::uuid, 'test', 'info', 'Late ' || number FROM generate_series(1, 2) AS number RETURNING id`;
  last += added.length;
  await read(added.map(({ id }) => id));
  const feed = open(null);
  expect((await feed.next()).value).toMatchObject({ type: 'ready', sequence: boundary });
  wake();
  const events: FeedEvent[] = [];
  for await (const event of feed) {
    events.push(event);
    if (event.type === 'read') break;
  }
  expect(events.map((event) => (event.type === 'notification' ? event.notification.read : event.type))).toEqual([false, false, 'read']);
  expect(events.at(-1)).toMatchObject({ unreadCount: await countUnread() });
  close();
});
