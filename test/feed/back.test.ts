import { afterAll, beforeAll, expect, it } from 'vitest';
import { openProject, type ProjectScope } from '../../src/access/scope.ts';
import { openFeed } from '../../src/notifications/feed.ts';
import { Hubs } from '../../src/notifications/hubs.ts';
import { createLogger } from '../../src/platform/logger.ts';
import { openLocalWakeups } from '../../src/platform/wakeups.ts';
import { startApp, type TestApp } from '../support/app.ts';

let app: TestApp;
let scope: ProjectScope;
let hubs: Hubs;

beforeAll(async () => {
  app = await startApp({ LOG_LEVEL: 'error' });
  const { organization_id: organizationId, project_id: projectId, users } = app.demo;
  const session = { kind: 'session', expires: new Date(Date.now() + 3_600_000) } as const;
  const viewer = { userId: users.owner.id, email: '', name: '', created: new Date(), credential: session };
  scope = await openProject(app.app.database, viewer, { organizationId, projectId });
  hubs = new Hubs({ database: scope.database, wakeups: openLocalWakeups(), log: createLogger('silent') });
});
afterAll(async () => {
  hubs.close();
  await app.close();
});

const open = (after: number | null = null) => openFeed(scope, { hubs, watchAccess: () => ({ stop: () => {} }) as never }, after);

it('a log that is shorter than what was read ends its feeds; the cursor of who comes back is told as a gap', async () => {
  const first = open();
  const { value } = await first.next();
  const last = (value as { sequence: number }).sequence;
  const failure = first.next().catch((reason) => reason);
  // The end of the log is lost, as in a database that was restored.
  const { projectId } = scope;
  await scope.database.transact(async (query) => {
    await query`SET LOCAL session_replication_role = replica`;
    await query`DELETE FROM notifications WHERE project_id = ${projectId}::uuid AND sequence > ${last - 10}`;
    await query`UPDATE notification_logs SET last_sequence = ${last - 10} WHERE project_id = ${projectId}::uuid`;
  });
  expect(await failure).toMatchObject({ code: 'service_unavailable' });
  const again = open(last);
  expect((await again.next()).value).toEqual({ type: 'gap', from: last - 9, to: last });
  expect((await again.next()).value).toMatchObject({ type: 'ready', sequence: last - 10 });
  await scope.database.query`
    INSERT INTO notifications (project_id, kind, severity, title)
    SELECT ${projectId}::uuid, 'test', 'info', 'Title ' || number FROM generate_series(1, 12) AS number`;
  for (let sequence = last - 9; sequence <= last + 2; sequence += 1)
    expect((await again.next()).value).toMatchObject({ type: 'notification', sequence });
  await again.return();
}, 20_000);

it('a read state that is older than what was read ends the feeds of its user', async () => {
  const feed = open();
  await feed.next();
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
  await again.return();
}, 20_000);
