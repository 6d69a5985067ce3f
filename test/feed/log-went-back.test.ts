import { afterAll, beforeAll, expect, it } from 'vitest';
import { openProject, type ProjectScope } from '../../src/access/scope.ts';
import { openFeed } from '../../src/notifications/feed.ts';
import type { Hub } from '../../src/notifications/hub.ts';
import { Hubs } from '../../src/notifications/hubs.ts';
import type { Database } from '../../src/platform/database.ts';
import { countJobFailures } from '../../src/platform/jobs.ts';
import { createLogger } from '../../src/platform/logger.ts';
import { openLocalWakeups } from '../../src/platform/wakeups.ts';
import { startApp, type TestApp } from '../support/app.ts';

let app: TestApp;
let scope: ProjectScope;
let hubs: Hubs;
/** Whether the hubs’ statements fail, as in an outage. */
let isAway = false;
/** Statements that contain the text wait for the promise. */
let held: { readonly text: string; readonly until: Promise<void> } | null = null;

beforeAll(async () => {
  app = await startApp({ LOG_LEVEL: 'error' });
  const { organization_id: organizationId, project_id: projectId, users } = app.demo;
  const session = { kind: 'session', expires: new Date(Date.now() + 3_600_000) } as const;
  const viewer = { userId: users.owner.id, email: '', name: '', created: new Date(), credential: session };
  scope = await openProject(app.app.database, viewer, { organizationId, projectId });
  const query = async (...statement: Parameters<Database['query']>) => {
    if (held && statement[0].join('').includes(held.text)) await held.until;
    if (isAway) throw Object.assign(new Error('away'), { code: 'ECONNREFUSED' });
    return scope.database.query(...statement);
  };
  const database = new Proxy(scope.database, { get: (target, name) => (name === 'query' ? query : Reflect.get(target, name)) });
  hubs = new Hubs({ database, wakeups: openLocalWakeups(), log: createLogger('silent'), pollIntervalMs: 50 });
});
afterAll(async () => {
  await hubs.close();
  await app.close();
});

/** A user's feed of the project, by these hubs or by others. */
function openAs(userId: string, by = hubs, after: number | null = null) {
  const viewer = { ...scope.viewer, userId };
  return openFeed({ ...scope, viewer }, { hubs: by, watchAccess: () => ({ stop: () => {} }) as never }, after);
}

const open = (after: number | null = null) => openAs(scope.viewer.userId, hubs, after);
type Feed = ReturnType<typeof open>;

/** A feed that has told the end of the log. */
async function openAtEnd(): Promise<{ feed: Feed; last: number }> {
  const feed = open();
  const { value } = await feed.next();
  return { feed, last: (value as { sequence: number }).sequence };
}

type Query = typeof scope.database.query;

const publish = (query: Query, count: number) => query`
  INSERT INTO notifications (project_id, kind, severity, title)
  SELECT ${scope.projectId}::uuid, 'test', 'info', 'Title ' || number FROM generate_series(1, ${count}::int) AS number`;

/** Takes the log back to a sequence, as a database that was restored, or a standby that lacks the end; then it grows again. */
const takeBack = (end: number, grown: number) =>
  scope.database.transact(async (query) => {
    await query`SET LOCAL session_replication_role = replica`;
    await query`DELETE FROM notifications WHERE project_id = ${scope.projectId}::uuid AND sequence > ${end}`;
    await query`UPDATE notification_logs SET last_sequence = ${end} WHERE project_id = ${scope.projectId}::uuid`;
    await query`SET LOCAL session_replication_role = origin`;
    if (grown > 0) await publish(query, grown);
  });

/** Reads what a feed tells of a log that went back: the gap, the cursor before it, and the end. */
async function expectBack(feed: Feed, fork: number, told: number): Promise<void> {
  expect((await feed.next()).value).toEqual({ type: 'gap', from: fork + 1, to: told });
  expect((await feed.next()).value).toMatchObject({ type: 'ready', sequence: fork });
  await expect(feed.next()).rejects.toMatchObject({ code: 'service_unavailable' });
}

async function expectEntries(feed: Feed, from: number, to: number): Promise<void> {
  for (let sequence = from; sequence <= to; sequence += 1)
    expect((await feed.next()).value).toMatchObject({ type: 'notification', sequence });
}

it('a log that is shorter than before ends its feeds, with the cursor to resume from', async () => {
  const { feed, last } = await openAtEnd();
  const back = expectBack(feed, last - 10, last);
  await takeBack(last - 10, 0);
  await back;
  const again = open(last - 10);
  expect((await again.next()).value).toMatchObject({ type: 'ready', sequence: last - 10 });
  await publish(scope.database.query, 12);
  await expectEntries(again, last - 9, last + 2);
  await again.return();
});

it('a feed that resumes beyond the end of the log receives a gap, and then the new entries with these numbers', async () => {
  const { feed, last } = await openAtEnd();
  await feed.return();
  await takeBack(last - 10, 0);
  const again = open(last);
  expect((await again.next()).value).toEqual({ type: 'gap', from: last - 9, to: last });
  expect((await again.next()).value).toMatchObject({ type: 'ready', sequence: last - 10 });
  await publish(scope.database.query, 12);
  await expectEntries(again, last - 9, last + 2);
  await again.return();
});

it('a log that went back, and has more entries than before at the next poll, delivers all of them', async () => {
  const { feed, last } = await openAtEnd();
  await publish(scope.database.query, 3);
  await expectEntries(feed, last + 1, last + 3);
  const back = expectBack(feed, last + 1, last + 3);
  await takeBack(last + 1, 5);
  await back;
  const again = open(last + 1);
  await expectEntries(again, last + 2, last + 6);
  expect((await again.next()).value).toMatchObject({ type: 'ready', sequence: last + 6 });
  await again.return();
});

it('a log that went back beyond all checkpoints ends its feed with the cursor at which the feed began', async () => {
  const { feed, last } = await openAtEnd();
  const count = 8_500;
  await publish(scope.database.query, count);
  await expectEntries(feed, last + 1, last + count);
  const back = expectBack(feed, last, last + count);
  await takeBack(last + 10, 300);
  await back;
});

it('a log that went back does not end a feed that begins while its fork is determined', async () => {
  const { feed, last } = await openAtEnd();
  await publish(scope.database.query, 3);
  await expectEntries(feed, last + 1, last + 3);
  let findOut = () => {};
  let isFindingOut = false;
  const until = new Promise<void>((resolve) => {
    findOut = resolve;
  });
  held = {
    text: 'AS kept',
    get until() {
      isFindingOut = true;
      return until;
    },
  };
  await takeBack(last + 1, 0);
  await expect.poll(() => isFindingOut).toBe(true);
  await feed.return();
  const { feed: next, last: end } = await openAtEnd();
  expect(end).toBe(last + 1);
  held = null;
  findOut();
  await new Promise((resolve) => setTimeout(resolve, 50));
  await publish(scope.database.query, 1);
  await expectEntries(next, last + 2, last + 2);
  await next.return();
});

it('a log that grows to the same length again during an outage is recognized as one that went back', async () => {
  const { feed, last } = await openAtEnd();
  await publish(scope.database.query, 3);
  await expectEntries(feed, last + 1, last + 3);
  const back = expectBack(feed, last + 1, last + 3);
  const failures = countJobFailures()['poll the logs'] ?? 0;
  isAway = true;
  await takeBack(last + 1, 2);
  await expect.poll(() => countJobFailures()['poll the logs']).toBeGreaterThan(failures);
  isAway = false;
  await back;
  const again = open(last + 1);
  await expectEntries(again, last + 2, last + 3);
  await again.return();
});

it('a log that has the same length again at the next poll is recognized as one that went back', async () => {
  const { feed, last } = await openAtEnd();
  await publish(scope.database.query, 3);
  await expectEntries(feed, last + 1, last + 3);
  const back = expectBack(feed, last + 1, last + 3);
  const failures = countJobFailures()['poll the logs'] ?? 0;
  await takeBack(last + 1, 2);
  await back;
  expect(countJobFailures()['poll the logs'] ?? 0).toBe(failures);
});

it('a hub whose window is evicted keeps its newest entry as a checkpoint', async () => {
  const { feed, last } = await openAtEnd();
  await publish(scope.database.query, 50);
  await expectEntries(feed, last + 1, last + 50);
  const follower = await hubs.follow(scope.projectId, scope.viewer.userId, { notify() {}, end() {}, goBack() {} });
  const { log: hub } = follower as unknown as { log: Hub };
  hub.evict();
  expect(hub.checkpoints().at(-1)?.sequence).toBe(last + 50);
  follower.leave();
  await feed.return();
});

it('a log that went back beyond the window loses no entry of its feeds, and delivers some again', async () => {
  const { feed, last } = await openAtEnd();
  await publish(scope.database.query, 400);
  await expectEntries(feed, last + 1, last + 400);
  const back = (async () => {
    const gap = (await feed.next()).value as { from: number; to: number };
    expect(gap).toMatchObject({ type: 'gap', to: last + 400 });
    expect((await feed.next()).value).toMatchObject({ type: 'ready', sequence: gap.from - 1 });
    await expect(feed.next()).rejects.toMatchObject({ code: 'service_unavailable' });
    return gap.from - 1;
  })();
  await takeBack(last + 20, 500);
  const fork = await back;
  expect(fork).toBeGreaterThanOrEqual(last);
  expect(fork).toBeLessThanOrEqual(last + 20);
  const again = open(fork);
  await expectEntries(again, fork + 1, last + 520);
  await again.return();
});

it('a feed that lags behind the fork ends without a gap, as its cursor is still valid', async () => {
  const { feed, last } = await openAtEnd();
  await publish(scope.database.query, 3);
  await expectEntries(feed, last + 1, last + 1);
  await takeBack(last + 1, 5);
  await expect.poll(() => hubs.count().hubs).toBe(0);
  await expect(feed.next()).rejects.toMatchObject({ code: 'service_unavailable' });
});

it('a read state that is older than before ends the feeds of its user', async () => {
  const feed = open();
  await feed.next();
  const other = await openOther();
  const { projectId, viewer } = scope;
  await scope.database.query`SELECT marked FROM mark_notifications_read(${projectId}::uuid, ${viewer.userId}::uuid, NULL, NULL)`;
  expect((await feed.next()).value).toMatchObject({ type: 'read', unreadCount: 0 });
  const failure = feed.next().catch((reason) => reason);
  await scope.database.query`
    UPDATE notification_states SET version = version - 1, read_through = read_through - 3
    WHERE project_id = ${projectId}::uuid AND user_id = ${viewer.userId}::uuid`;
  expect(await failure).toMatchObject({ code: 'service_unavailable' });
  const again = open();
  expect((await again.next()).value).toMatchObject({ type: 'ready', unreadCount: 3 });
  await scope.database.query`SELECT marked FROM mark_notifications_read(${projectId}::uuid, ${viewer.userId}::uuid, NULL, NULL)`;
  expect((await again.next()).value).toMatchObject({ type: 'read', unreadCount: 0 });
  await publish(scope.database.query, 1);
  expect((await other.next()).value).toMatchObject({ type: 'notification' });
  await Promise.all([again.return(), other.return()]);
});

/** Another user's feed of the same project, which has told the end of the log. */
async function openOther(): Promise<Feed> {
  const feed = openAs(app.demo.users.admin.id);
  await feed.next();
  return feed;
}

it.each([
  ['as many marks as before', 1, 2],
  ['fewer marks', 2, 2],
  ['more marks, of older notifications', -1, 6],
])('a read state that went back ends the feeds of its user alone, also where it has %s again', async (_label, lost, unread) => {
  const { projectId, viewer } = scope;
  // A poll may see the state only after it has grown.
  const slow = new Hubs({ database: scope.database, wakeups: openLocalWakeups(), log: createLogger('silent'), pollIntervalMs: 400 });
  const mark = async (upTo: number) => {
    await scope.database
      .query`SELECT marked FROM mark_notifications_read(${projectId}::uuid, ${viewer.userId}::uuid, NULL, ${upTo}::bigint)`;
    slow.wake({ projectId, userId: viewer.userId });
  };
  await publish(scope.database.query, 10);
  const [feed, other] = [openAs(viewer.userId, slow), openAs(app.demo.users.admin.id, slow)];
  const last = ((await feed.next()).value as { sequence: number }).sequence;
  await other.next();
  await mark(last - 5);
  expect((await feed.next()).value).toMatchObject({ type: 'read', readThrough: last - 5 });
  await mark(last - 4);
  expect((await feed.next()).value).toMatchObject({ type: 'read', readThrough: last - 4 });
  const next = feed.next().catch((reason) => reason);
  await scope.database.query`
    UPDATE notification_states SET version = version - ${lost}, read_through = read_through - 3
    WHERE project_id = ${projectId}::uuid AND user_id = ${viewer.userId}::uuid`;
  await mark(last - unread);
  expect(await next).toMatchObject({ code: 'service_unavailable' });
  await publish(scope.database.query, 1);
  slow.wake({ projectId });
  expect((await other.next()).value).toMatchObject({ type: 'notification', sequence: last + 1 });
  await other.return();
  await slow.close();
});

it('a read state that is absent again, as before the first mark, ends the feeds of its user alone', async () => {
  const { projectId, viewer } = scope;
  const other = await openOther();
  const feed = open();
  await feed.next();
  const mark = () =>
    scope.database.query`SELECT marked FROM mark_notifications_read(${projectId}::uuid, ${viewer.userId}::uuid, NULL, NULL)`;
  await publish(scope.database.query, 1);
  expect((await feed.next()).value).toMatchObject({ type: 'notification' });
  expect((await other.next()).value).toMatchObject({ type: 'notification' });
  await mark();
  expect((await feed.next()).value).toMatchObject({ type: 'read', unreadCount: 0 });
  const failure = feed.next().catch((reason) => reason);
  await scope.database.query`DELETE FROM notification_states WHERE project_id = ${projectId}::uuid AND user_id = ${viewer.userId}::uuid`;
  expect(await failure).toMatchObject({ code: 'service_unavailable' });
  const again = open();
  expect((await again.next()).value).toMatchObject({ type: 'ready', readThrough: 0 });
  await mark();
  expect((await again.next()).value).toMatchObject({ type: 'read', unreadCount: 0 });
  await publish(scope.database.query, 1);
  expect((await other.next()).value).toMatchObject({ type: 'notification' });
  await Promise.all([again.return(), other.return()]);
});

it('a log and a read state that both went back end the feed with the gap after the fork', async () => {
  const { feed, last } = await openAtEnd();
  const { projectId, viewer } = scope;
  await publish(scope.database.query, 2);
  await expectEntries(feed, last + 1, last + 2);
  await scope.database.query`SELECT marked FROM mark_notifications_read(${projectId}::uuid, ${viewer.userId}::uuid, NULL, NULL)`;
  expect((await feed.next()).value).toMatchObject({ type: 'read', unreadCount: 0 });
  await scope.database.transact(async (query) => {
    await query`SET LOCAL session_replication_role = replica`;
    await query`DELETE FROM notification_states WHERE project_id = ${projectId}::uuid AND user_id = ${viewer.userId}::uuid`;
    await query`DELETE FROM notifications WHERE project_id = ${projectId}::uuid AND sequence > ${last}`;
    await query`UPDATE notification_logs SET last_sequence = ${last} WHERE project_id = ${projectId}::uuid`;
  });
  await expect.poll(() => hubs.count().hubs).toBe(0);
  await expectBack(feed, last, last + 2);
});
