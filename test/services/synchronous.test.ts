import { afterAll, beforeAll, expect, it } from 'vitest';
import { Lifecycle } from '../../src/kernel/lifecycle.ts';
import { type Database, openDatabase } from '../../src/platform/database.ts';
import { toFault } from '../../src/platform/errors.ts';
import { type Cluster, openCluster } from '../support/cluster.ts';
import { execute } from '../support/database.ts';

/** A primary whose only synchronous standby is away: its commits wait without an end. */
let cluster: Cluster;
let database: Database;
const lifecycle = new Lifecycle();
beforeAll(async () => {
  cluster = await openCluster();
  await execute(cluster.url, "ALTER SYSTEM SET synchronous_standby_names = 'away'");
  await cluster.stop();
  await cluster.start();
  const settings = { dataDir: '', database: { url: cluster.url, pool: 4 } };
  ({ database } = await openDatabase(settings, lifecycle));
});
afterAll(async () => {
  await lifecycle.close();
  await cluster?.close();
});

const add = (query: Database['query']) => query`INSERT INTO organizations (name) VALUES ('waits for a standby')`;

it.each([
  ['by one statement', () => add(database.query)],
  ['in a transaction', () => database.transact((query) => add(query))],
])('a write %s that waits for the standby is given up, and so is its backend', async (_how, write) => {
  const failures = await Promise.all([write(), write()].map((writing) => writing.catch((failure: unknown) => toFault(failure).code)));
  expect(failures).toEqual(['service_unavailable', 'service_unavailable']);
  const waiting = async () => {
    const [row] = await execute(cluster.url, "SELECT count(*)::int AS waiting FROM pg_stat_activity WHERE wait_event = 'SyncRep'");
    return row?.waiting;
  };
  await expect.poll(waiting).toBe(0);
  expect(await database.query<{ one: number }>`SELECT 1 AS one`).toEqual([{ one: 1 }]);
});
