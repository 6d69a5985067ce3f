import { afterAll, beforeAll, expect, it } from 'vitest';
import { startRestingApp, type TestApp } from '../support/app.ts';
import { makeProject } from '../support/fixtures.ts';
import { readList } from '../support/lists.ts';
import { explain, recordStatements } from '../support/plans.ts';
import { openConnection } from '../support/sql.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startRestingApp();
});
afterAll(() => app.close());

// The embedded database is a PostgreSQL 18, which skips over the values of a leading column.
it('no index of a filter is taken for one of the project where all instances are of one plan and one region', async () => {
  const projectId = await makeProject(app);
  const connection = await openConnection(app);
  await connection.run('DELETE FROM instances', []);
  for (const id of [projectId, await makeProject(app)])
    await connection.run(
      `INSERT INTO instances (project_id, name, status, plan, region, vcpu, ram_mb, storage_gb)
       SELECT $1::uuid, 'instance', (ARRAY['active', 'stopped'])[1 + n % 2]::instance_status, 'vps-m', 'eu-central-1', 1, 1024, 10
       FROM generate_series(1, 12000) AS n`,
      [id],
    );
  await connection.run('VACUUM ANALYZE instances', []);
  await connection.close();
  const recorded = recordStatements(app);
  await readList(app, projectId, 'instances', { orderBy: { field: 'status', direction: 'asc' }, first: 20 });
  const read: number[] = [];
  for (const statement of recorded.slice()) {
    const { withAnyValues } = await explain(app, statement);
    read.push(withAnyValues.find(({ table }) => table === 'instances')?.rows ?? 0);
  }
  expect(Math.max(...read)).toBeGreaterThan(0);
  expect(Math.max(...read)).toBeLessThan(100);
});
