import { afterAll, beforeAll, expect, it } from 'vitest';
import { refreshViewer } from '../../src/access/viewer.ts';
import { Lifecycle } from '../../src/kernel/lifecycle.ts';
import { type Database, openDatabase } from '../../src/platform/database.ts';
import { toFault } from '../../src/platform/errors.ts';
import { type Cluster, openCluster } from '../support/cluster.ts';
import { execute } from '../support/sql.ts';

/** A primary whose only synchronous standby is away: its commits wait without an end. */
let cluster: Cluster;
let database: Database;
/** Its role becomes another one in each session. */
let delegate: Database;
const lifecycle = new Lifecycle();
beforeAll(async () => {
  cluster = await openCluster();
  await execute(cluster.url, "ALTER SYSTEM SET synchronous_standby_names = 'away'");
  await cluster.stop();
  await cluster.start();
  const open = async (url: string) => (await openDatabase({ dataDir: '', database: { url, poolSize: 4 } }, lifecycle)).database;
  await execute(withoutStandby(), 'CREATE ROLE delegate LOGIN IN ROLE postgres; ALTER ROLE delegate SET role = postgres');
  database = await open(cluster.url);
  delegate = await open(cluster.url.replace('postgres@', 'delegate@'));
});
afterAll(async () => {
  await lifecycle.close();
  await cluster?.close();
});

/** The URL of sessions whose commits wait for no standby. */
const withoutStandby = () => `${cluster.url}?options=-csynchronous_commit%3Dlocal`;

const add = (query: Database['query']) => query`INSERT INTO organizations (name) VALUES ('waits for a standby')`;

it.each([
  ['by one statement', () => add(database.query)],
  ['in a transaction', () => database.transact((query) => add(query))],
  ['by a role that has become another one', () => add(delegate.query)],
])('a write %s that waits for the standby is given up, and its backend ended', async (_how, write) => {
  const failures = await Promise.all([write(), write()].map((writing) => writing.catch((failure: unknown) => toFault(failure).code)));
  expect(failures).toEqual(['service_unavailable', 'service_unavailable']);
  const waiting = async () => {
    const [row] = await execute(cluster.url, "SELECT count(*)::int AS waiting FROM pg_stat_activity WHERE wait_event = 'SyncRep'");
    return row?.waiting;
  };
  await expect.poll(waiting).toBe(0);
  expect(await database.query<{ one: number }>`SELECT 1 AS one`).toEqual([{ one: 1 }]);
});

it('a key is admitted at once, though its last use is written', async () => {
  const [key] = await execute(
    withoutStandby(),
    `INSERT INTO api_keys (user_id, name, hint, secret_hash) SELECT id, 'key', 'pk', 'hash' FROM users LIMIT 1
     RETURNING id, user_id AS "userId"`,
  );
  const { id, userId } = key as { id: string; userId: string };
  const startedAt = performance.now();
  const viewer = { userId, email: '', name: '', created: new Date(), credential: { kind: 'api_key', id } } as const;
  expect(await refreshViewer(database, viewer)).toMatchObject({ userId });
  expect(performance.now() - startedAt).toBeLessThan(5_000);
  expect(await execute(cluster.url, `SELECT last_used FROM api_keys WHERE id = '${id}'`)).toEqual([{ last_used: expect.any(Date) }]);
});
