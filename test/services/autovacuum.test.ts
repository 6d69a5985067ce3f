import { readdirSync } from 'node:fs';
import { expect, onTestFinished, test } from 'vitest';
import { migrate } from '../../src/platform/migrate.ts';
import { openCluster } from '../support/cluster.ts';
import { connectTo } from '../support/sql.ts';

/** The rows of the table: at the pace that is set below, a vacuum of them takes minutes. */
const ROWS = 20_000;

const workers = `SELECT count(*)::int AS working FROM pg_stat_activity WHERE query LIKE 'autovacuum:%public.projects%'`;

test('a migration of a table that is being vacuumed ends the vacuum', async () => {
  const cluster = await openCluster();
  onTestFinished(cluster.close);
  const client = await connectTo(cluster.url);
  onTestFinished(() => client.end());
  const name = readdirSync(new URL('../../prisma/migrations/', import.meta.url)).find((entry) => entry.endsWith('_edges'));
  await client.query('DROP TRIGGER keep_project_id ON projects; DROP FUNCTION keep_project_id');
  await client.query('DELETE FROM _prisma_migrations WHERE migration_name = $1', [name]);
  await client.query(
    `INSERT INTO projects SELECT (json_populate_record(one, json_build_object('id', gen_random_uuid(), 'name', 'of many ' || number))).*
     FROM (SELECT one FROM projects AS one LIMIT 1) AS demo, generate_series(1, ${ROWS}) AS number`,
  );
  await client.query('UPDATE projects SET name = name || number FROM generate_series(1, 1) AS number');
  for (const setting of ['naptime = 1', 'vacuum_cost_delay = 100', 'vacuum_cost_limit = 1'])
    await client.query(`ALTER SYSTEM SET autovacuum_${setting}`);
  await client.query('SELECT pg_reload_conf()');
  const countWorkers = async () => (await client.query<{ working: number }>(workers)).rows[0]?.working;
  await expect.poll(countWorkers).toBe(1);
  const applied = await migrate({
    runScript: async (sql) => void (await client.query(sql)),
    query: async (sql, values) => (await client.query(sql, [...values])).rows,
  });
  expect(applied).toEqual([name]);
});
