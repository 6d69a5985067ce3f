import { setImmediate as nextImmediate, setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { openProject, type ProjectScope } from '../../src/access/scope.ts';
import { Fault } from '../../src/kernel/fault.ts';
import { openFeed } from '../../src/notifications/feed.ts';
import { Hubs } from '../../src/notifications/hubs.ts';
import type { Database } from '../../src/platform/database.ts';
import { createLogger } from '../../src/platform/logger.ts';
import { openLocalWakeups } from '../../src/platform/wakeups.ts';
import { startApp, type TestApp } from '../support/app.ts';

/** That of the hubs of tests that wait for a poll. */
const POLL_INTERVAL_MS = 50;

let app: TestApp;
let scope: ProjectScope;

beforeAll(async () => {
  app = await startApp({ LOG_LEVEL: 'error' });
  const { organization_id: organizationId, project_id: projectId, users } = app.demo;
  const session = { kind: 'session', expires: new Date(Date.now() + 3_600_000) } as const;
  const viewer = { userId: users.admin.id, email: '', name: '', created: new Date(), credential: session };
  scope = await openProject(app.app.database, viewer, { organizationId, projectId });
});
afterAll(() => app.close());

it('slowly reading feeds do not hold up a feed that keeps up', async () => {
  const hubs = new Hubs({ database: scope.database, wakeups: openLocalWakeups(), log: createLogger('silent') });
  const open = () => openFeed(scope, { hubs, watchAccess: () => ({ stop: () => {} }) as never }, null);
  const [quick, ...slow] = [open(), open(), open(), open()] as const;
  const last = ((await quick.next()).value as { sequence: number }).sequence;
  for (const feed of slow) await feed.next();
  let isOver = false;
  const trickle = slow.map(async (feed) => {
    while (!isOver) {
      await feed.next();
      await sleep(400);
    }
  });
  // Far more than the window holds.
  const count = 800;
  await scope.database.query`
    INSERT INTO notifications (project_id, kind, severity, title)
    SELECT ${scope.projectId}::uuid, 'test', 'info', 'Title ' || number FROM generate_series(1, ${count}::int) AS number`;
  hubs.wake({ projectId: scope.projectId });
  for (let sequence = last + 1; sequence <= last + count; sequence += 1) {
    expect((await quick.next()).value).toMatchObject({ type: 'notification', sequence });
  }
  isOver = true;
  await Promise.all(trickle);
  hubs.close();
});

it('feeds that stop reading within the window delay a new entry for a moment, not until the next poll', async () => {
  const query = (...statement: Parameters<typeof scope.database.query>) =>
    statement[0].join().includes('AS wanted') ? new Promise<never>(() => {}) : scope.database.query(...statement);
  const hubs = new Hubs({ database: { query } as unknown as Database, wakeups: openLocalWakeups(), log: createLogger('silent') });
  const open = async () => {
    const feed = openFeed(scope, { hubs, watchAccess: () => ({ stop: () => {} }) as never }, null);
    await feed.next();
    return feed;
  };
  const quick = await open();
  const publish = async (count: number) => {
    await scope.database.query`
      INSERT INTO notifications (project_id, kind, severity, title)
      SELECT ${scope.projectId}::uuid, 'test', 'info', 'Title ' || number FROM generate_series(1, ${count}::int) AS number`;
    hubs.wake({ projectId: scope.projectId });
    for (let index = 0; index < count; index += 1) expect((await quick.next()).value).toMatchObject({ type: 'notification' });
  };
  // The window is full, and then the others are in its older half.
  await publish(300);
  const stopped = [await open(), await open()];
  await publish(130);
  for (let entry = 0; entry < 3; entry += 1) await publish(1);
  for (const feed of [quick, ...stopped]) await feed.return();
  void hubs.close();
});

it('a replaying feed does not wait for other statements of its user', async () => {
  const hubs = new Hubs({ database: scope.database, wakeups: openLocalWakeups(), log: createLogger('silent') });
  const query = (...statement: Parameters<typeof scope.database.query>) =>
    statement[0].join().includes('octet_length') ? new Promise<never>(() => {}) : scope.database.query(...statement);
  const database = { query } as unknown as Database;
  const feed = openFeed({ ...scope, database }, { hubs, watchAccess: () => ({ stop: () => {} }) as never }, 0);
  expect((await feed.next()).value).toMatchObject({ type: 'notification' });
  await feed.return();
  void hubs.close();
});

it('access is watched from the moment a feed is opened, however late its first event is fetched', async () => {
  const hubs = new Hubs({ database: scope.database, wakeups: openLocalWakeups(), log: createLogger('silent') });
  let leases = 0;
  const watchAccess = () => {
    leases += 1;
    return { stop: () => (leases -= 1) } as never;
  };
  const feed = openFeed(scope, { hubs, watchAccess }, 0);
  expect(leases).toBe(1);
  feed.end(new Fault('permission_denied', 'access_lost'));
  expect(leases).toBe(0);
  await expect(feed.next()).rejects.toMatchObject({ message: 'access_lost' });
  void hubs.close();
});

it('a lagging feed replays entries as unread until the read state follows', async () => {
  const hubs = new Hubs({ database: scope.database, wakeups: openLocalWakeups(), log: createLogger('silent') });
  const { projectId } = scope;
  const viewer = { ...scope.viewer, userId: app.demo.users.member.id };
  const open = () => openFeed({ ...scope, viewer }, { hubs, watchAccess: () => ({ stop: () => {} }) as never }, null);
  const [quick, slow] = [open(), open()];
  const { sequence } = (await quick.next()).value as { sequence: number };
  await slow.next();
  const count = 400;
  await scope.database.query`
    INSERT INTO notifications (project_id, kind, severity, title)
    SELECT ${projectId}::uuid, 'test', 'info', 'Title ' || number FROM generate_series(1, ${count}::int) AS number`;
  hubs.wake({ projectId });
  for (let index = 0; index < count; index += 1) await quick.next();
  await scope.database.query`SELECT mark_notifications_read(${projectId}::uuid, ${viewer.userId}::uuid, NULL, ${sequence + count}::bigint)`;
  hubs.wake({ projectId, userId: viewer.userId });
  expect((await quick.next()).value).toMatchObject({ type: 'read', unreadCount: 0 });
  for (let index = 1; index <= count; index += 1) {
    expect((await slow.next()).value).toMatchObject({ type: 'notification', sequence: sequence + index, notification: { read: false } });
  }
  expect((await slow.next()).value).toMatchObject({ type: 'read', readThrough: sequence + count, unreadCount: 0 });
  for (const feed of [quick, slow]) await feed.return();
  void hubs.close();
});

it('the replays of a user with many feeds delay those of another user only a little', async () => {
  // Reading takes longer than delivering, so that all of the many wait for it.
  const query = async (...statement: Parameters<typeof scope.database.query>) => {
    await sleep(25);
    return await scope.database.query(...statement);
  };
  const database = { query } as unknown as typeof scope.database;
  const hubs = new Hubs({ database, wakeups: openLocalWakeups(), log: createLogger('silent') });
  const openAs = (viewer: ProjectScope['viewer']) =>
    openFeed({ ...scope, viewer }, { hubs, watchAccess: () => ({ stop: () => {} }) as never }, 0);
  const count = 50;
  let delivered = 0;
  let isOver = false;
  let begin = () => {};
  const begun = new Promise<void>((resolve) => {
    begin = resolve;
  });
  const many = Array.from({ length: count }, async () => {
    const feed = openAs(scope.viewer);
    while (!isOver && !(await feed.next()).done) {
      delivered += 1;
      if (delivered === count) begin();
    }
    await feed.return();
  });
  await begun;
  const before = delivered;
  const one = openAs({ ...scope.viewer, userId: app.demo.users.member.id });
  let own = 0;
  while ((await one.next()).value?.type !== 'ready') own += 1;
  isOver = true;
  hubs.close();
  await Promise.all(many);
  expect(own).toBeGreaterThan(1_000);
  // In the order of asking, each of the many would have read as far.
  expect(delivered - before).toBeLessThan((count * own) / 4);
});

it('a wake-up while the first feed of a project opens does not lead its hub back to the beginning of the log', async () => {
  let entries = 0;
  const query = async (...statement: Parameters<typeof scope.database.query>) => {
    await sleep(5);
    const rows = await scope.database.query(...statement);
    if (statement[0].join().includes('octet_length')) entries += rows.length;
    return rows;
  };
  const database = { query } as unknown as typeof scope.database;
  const hubs = new Hubs({ database, wakeups: openLocalWakeups(), log: createLogger('silent') });
  const open = () => openFeed(scope, { hubs, watchAccess: () => ({ stop: () => {} }) as never }, null);
  const first = open();
  const joining = first.next();
  const waking = setInterval(() => hubs.wake({ projectId: scope.projectId }), 1);
  const { value: ready } = await joining;
  clearInterval(waking);
  expect((ready as { sequence: number }).sequence).toBeGreaterThan(1_000);
  await sleep(300);
  // Nothing is new.
  expect(entries).toBeLessThan(100);
  await first.return();
  hubs.close();
  await expect(open().next()).rejects.toMatchObject({ code: 'service_unavailable' });
});

it('a feed whose cursor is ahead of its hub, from another process, resumes without a gap', async () => {
  const hubs = new Hubs({
    database: scope.database,
    wakeups: openLocalWakeups(),
    log: createLogger('silent'),
    pollIntervalMs: 60_000,
  });
  const open = (after: number | null) => openFeed(scope, { hubs, watchAccess: () => ({ stop: () => {} }) as never }, after);
  const first = open(null);
  const { sequence } = (await first.next()).value as { sequence: number };
  // No wake-up tells the hub.
  await scope.database.query`
    INSERT INTO notifications (project_id, kind, severity, title) VALUES (${scope.projectId}::uuid, 'test', 'info', 'new')`;
  const ahead = open(sequence + 1);
  expect((await ahead.next()).value).toMatchObject({ type: 'ready', sequence: sequence + 1 });
  await hubs.close();
});

it('an unread count that retention has changed is delivered, also when reading it fails once', async () => {
  let reads = 0;
  let failures = 0;
  const query = async (...statement: Parameters<typeof scope.database.query>) => {
    const rows = await scope.database.query<{ prunedThrough?: number }>(...statement);
    if (!statement[0].join().includes('news.ids')) return rows;
    reads += 1;
    if (rows[0]?.prunedThrough === 10 && failures === 0) {
      failures += 1;
      throw new Error('the connection was lost');
    }
    return rows;
  };
  const database = { query } as unknown as typeof scope.database;
  const hubs = new Hubs({ database, wakeups: openLocalWakeups(), log: createLogger('silent'), pollIntervalMs: POLL_INTERVAL_MS });
  const feed = openFeed({ ...scope, database }, { hubs, watchAccess: () => ({ stop: () => {} }) as never }, null);
  const { unreadCount } = (await feed.next()).value as { unreadCount: number };
  // The feed has read the state, and so has the hub.
  hubs.wake({ projectId: scope.projectId, userId: scope.viewer.userId });
  await expect.poll(() => reads).toBeGreaterThan(1);
  // The first ten notifications are removed, as retention does.
  await scope.database.query`
    UPDATE notifications SET created = now() - interval '400 days' WHERE project_id = ${scope.projectId}::uuid AND sequence <= 10`;
  await scope.database.query`SELECT prune_notification_log(${scope.projectId}::uuid, now() - interval '300 days', 500)`;
  const { value } = await feed.next();
  expect(failures).toBe(1);
  expect(value).toMatchObject({ type: 'read' });
  expect((value as { unreadCount: number }).unreadCount).toBeLessThan(unreadCount);
  hubs.close();
});

it('retention that leaves the unread count as it is sends nothing', async () => {
  let pruned = 0;
  const query = async (...statement: Parameters<typeof scope.database.query>) => {
    const rows = await scope.database.query<{ prunedThrough?: number }>(...statement);
    if (statement[0].join().includes('news.ids')) pruned = rows[0]?.prunedThrough ?? 0;
    return rows;
  };
  const database = { query } as unknown as typeof scope.database;
  const { projectId, viewer } = scope;
  await scope.database.query`SELECT mark_notifications_read(${projectId}::uuid, ${viewer.userId}::uuid, NULL, 120)`;
  const publish = () =>
    scope.database.query`INSERT INTO notifications (project_id, kind, severity, title) VALUES (${projectId}::uuid, 'test', 'info', 'new')`;
  const prune = async (through: number) => {
    await scope.database.query`
      UPDATE notifications SET created = now() - interval '400 days' WHERE project_id = ${projectId}::uuid AND sequence <= ${through}`;
    await scope.database.query`SELECT prune_notification_log(${projectId}::uuid, now() - interval '300 days', 500)`;
    await expect.poll(() => pruned).toBe(through);
  };
  const hubs = new Hubs({ database, wakeups: openLocalWakeups(), log: createLogger('silent'), pollIntervalMs: POLL_INTERVAL_MS });
  const feed = openFeed({ ...scope, database }, { hubs, watchAccess: () => ({ stop: () => {} }) as never }, null);
  const { unreadCount } = (await feed.next()).value as { unreadCount: number };
  // The count of the client grows with each new notification.
  await publish();
  expect((await feed.next()).value).toMatchObject({ type: 'notification', notification: { title: 'new' } });
  await prune(115);
  await prune(120);
  await publish();
  expect((await feed.next()).value).toMatchObject({ type: 'notification', notification: { title: 'new' } });
  await prune(121);
  expect((await feed.next()).value).toMatchObject({ type: 'read', unreadCount: unreadCount + 1 });
  hubs.close();
});

it('entries that retention removes before the hub has read them are a gap, and hold up neither reads nor later entries', async () => {
  const { organization_id: organizationId, empty_project_id: projectId } = app.demo;
  const own = await openProject(scope.database, { ...scope.viewer, userId: app.demo.users.owner.id }, { organizationId, projectId });
  let reading: Promise<void> | null = null;
  let reads = 0;
  const query = async (...statement: Parameters<typeof scope.database.query>) => {
    if (statement[0].join().includes('octet_length')) {
      reads += 1;
      await reading;
    }
    return scope.database.query(...statement);
  };
  const database = { query } as unknown as typeof scope.database;
  const hubs = new Hubs({ database, wakeups: openLocalWakeups(), log: createLogger('silent'), pollIntervalMs: POLL_INTERVAL_MS });
  const open = () => openFeed({ ...own, database }, { hubs, watchAccess: () => ({ stop: () => {} }) as never }, null);
  const publish = (count: number) => scope.database.query`
    INSERT INTO notifications (project_id, kind, severity, title)
    SELECT ${projectId}::uuid, 'test', 'info', 'new' FROM generate_series(1, ${count}::int)`;
  const [quick, slow] = [open(), open()];
  const { sequence: start } = (await quick.next()).value as { sequence: number };
  await slow.next();
  await publish(2);
  for (const sequence of [start + 1, start + 2]) expect((await quick.next()).value).toMatchObject({ type: 'notification', sequence });
  const readsBefore = reads;
  let goOn = () => {};
  reading = new Promise((resolve) => {
    goOn = resolve;
  });
  await publish(3);
  await expect.poll(() => reads).toBe(readsBefore + 1);
  await scope.database.query`SELECT mark_notifications_read(${projectId}::uuid, ${own.viewer.userId}::uuid, NULL, NULL)`;
  await scope.database.query`UPDATE notifications SET created = now() - interval '400 days' WHERE project_id = ${projectId}::uuid`;
  await scope.database.query`SELECT prune_notification_log(${projectId}::uuid, now() - interval '300 days', 500)`;
  goOn();
  const end = start + 5;
  expect((await quick.next()).value).toEqual({ type: 'gap', from: start + 3, to: end });
  expect((await slow.next()).value).toEqual({ type: 'gap', from: start + 1, to: end });
  for (const feed of [quick, slow]) expect((await feed.next()).value).toMatchObject({ type: 'read', readThrough: end, unreadCount: 0 });
  await publish(1);
  for (const feed of [quick, slow]) expect((await feed.next()).value).toMatchObject({ type: 'notification', sequence: end + 1 });
  await hubs.close();
});

it('hubs that close end their feeds at once, and wait for the poll that is under way', async () => {
  let isHeld = false;
  let isPolling = false;
  let answer = () => {};
  const answered = new Promise<void>((resolve) => {
    answer = resolve;
  });
  const query = async (...statement: Parameters<Database['query']>) => {
    isPolling = isHeld;
    if (isHeld) await answered;
    return scope.database.query(...statement);
  };
  const database = Object.create(scope.database, { query: { value: query } }) as Database;
  const hubs = new Hubs({ database, wakeups: openLocalWakeups(), log: createLogger('silent'), pollIntervalMs: POLL_INTERVAL_MS });
  const feed = openFeed(scope, { hubs, watchAccess: () => ({ stop: () => {} }) as never }, null);
  await feed.next();
  isHeld = true;
  await expect.poll(() => isPolling).toBe(true);
  let isClosed = false;
  const closed = Promise.resolve(hubs.close()).then(() => {
    isClosed = true;
  });
  expect(feed.isEnded).toBe(true);
  await nextImmediate();
  expect(isClosed).toBe(false);
  answer();
  await closed;
});
