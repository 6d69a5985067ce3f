import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { openProject, type ProjectScope, rebindScope } from '../../src/access/scope.ts';
import { openFeed } from '../../src/notifications/feed.ts';
import { Hubs } from '../../src/notifications/hubs.ts';
import type { Database } from '../../src/platform/database.ts';
import { createLogger } from '../../src/platform/logger.ts';
import { openLocalWakeups } from '../../src/platform/wakeups.ts';
import { startApp, type TestApp } from '../support/app.ts';

let app: TestApp;
let scope: ProjectScope;
let hubs: Hubs;
/** How many statements the feeds have sent themselves; each of them fails, as in an outage. */
let statements = 0;
/** Runs when such a statement has failed. */
let onFailed = () => {};

beforeAll(async () => {
  app = await startApp({ LOG_LEVEL: 'error' });
  const { organization_id: organizationId, project_id: projectId, users } = app.demo;
  const session = { kind: 'session', expires: new Date(Date.now() + 3_600_000) } as const;
  const viewer = { userId: users.owner.id, email: '', name: '', created: new Date(), credential: session };
  const { database } = app.app;
  const query = async () => {
    statements += 1;
    setImmediate(onFailed);
    throw Object.assign(new Error('away'), { code: 'ECONNREFUSED' });
  };
  const away = Object.create(database, { query: { value: query } }) as Database;
  scope = rebindScope(await openProject(database, viewer, { organizationId, projectId }), away);
  hubs = new Hubs({ database, wakeups: openLocalWakeups(), log: createLogger('silent') });
});
afterAll(async () => {
  await hubs.close();
  await app.close();
});
beforeEach(() => {
  statements = 0;
  onFailed = () => {};
});

const open = (after: number | null) => openFeed(scope, { hubs, watchAccess: () => ({ stop: () => {} }) as never }, after);

it('a feed that ends while it joins its hub leaves it, and sends no statement', async () => {
  const feed = open(1_000_000);
  const fetching = feed.fetch();
  feed.end();
  await fetching;
  expect(statements).toBe(0);
  expect(hubs.count()).toEqual({ hubs: 0, followers: 0 });
});

it('a feed that ends while it waits to repeat a query does not repeat it', async () => {
  const feed = open(null);
  await feed.fetch();
  onFailed = () => feed.end();
  await feed.fetch();
  expect(statements).toBe(1);
});
