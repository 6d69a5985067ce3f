import { afterAll, beforeAll, expect, test } from 'vitest';
import { startApp, type TestApp } from '../support/app.ts';
import { makeProject } from '../support/fixtures.ts';
import { type ListArgs, type ListName, type OrderBy, orderables, readList } from '../support/lists.ts';
import { explain, recordStatements, type Statement } from '../support/plans.ts';
import { openConnection } from '../support/sql.ts';

const MANY = 12_000;
/** A page of 20 and the row behind it, of each of three statuses: what a list in an order may read of its table. */
const MOST_ROWS = 3 * 21 + 5;

let app: TestApp;
let projectId: string;
/** The instance of all tasks and volumes of the project. */
let holderId: string;
let recorded: Statement[];

beforeAll(async () => {
  app = await startApp({ RATE_LIMIT_USER: '1000000' });
  // A connection of its own, without the time limits of the gateway's.
  const connection = await openConnection(app);
  const run = (sql: string, ...values: unknown[]) => connection.run(sql, values);
  projectId = await makeProject(app);
  const others = await makeProject(app);
  for (const [id, count] of [
    [projectId, MANY],
    [others, MANY],
  ] as const) {
    // What is asked for below is spread over the others as it would be, but for the newest region and the machines in error.
    await run(
      `INSERT INTO instances (project_id, name, status, plan, region, vcpu, ram_mb, storage_gb, throttled, created)
       SELECT $1::uuid, (ARRAY['web', 'db', 'cache'])[1 + n % 3] || '-' || n * 7919 % 1000003,
         (CASE WHEN n % 1000 = 1 THEN 'error' WHEN n % 7 < 2 THEN 'stopped' ELSE 'active' END)::instance_status,
         CASE WHEN n % 500 = 3 THEN 'rare-plan' ELSE 'vps-m' END, CASE WHEN n > $2::int - 300 THEN 'new-region' ELSE 'eu-central-1' END,
         1, 1024, 10, n % 1000 = 7, now() - ($2::int - n) * interval '1 minute'
       FROM generate_series(1, $2::int) AS n`,
      id,
      count,
    );
    const { id: instanceId } = await app.app.database.prisma.instance.findFirstOrThrow({
      where: { projectId: id },
      orderBy: { id: 'asc' },
    });
    if (id === projectId) holderId = instanceId;
    await run(
      `INSERT INTO tasks (project_id, instance_id, kind, status, created)
       SELECT $1::uuid, $3::uuid, 'test', (ARRAY['succeeded', 'succeeded', 'cancelled'])[1 + n % 3]::task_status, now() - n * interval '1 minute'
       FROM generate_series(1, $2::int) AS n`,
      id,
      count,
      instanceId,
    );
    await run(
      `INSERT INTO volumes (project_id, instance_id, name, size_gb, created) SELECT $1::uuid, $3::uuid, 'vol-' || n * 7919 % 1000003, 1, now() - n % 1000 * interval '1 minute'
       FROM generate_series(1, $2::int) AS n`,
      id,
      count,
      instanceId,
    );
  }
  await run('VACUUM ANALYZE');
  await connection.close();
  recorded = recordStatements(app);
}, 300_000);

afterAll(() => app.close());

/** What a part of a list reads of its table; a statement is looked at twice, as it is planned for its values and for any. */
async function countRead(list: ListName, args: ListArgs): Promise<number> {
  recorded.length = 0;
  await readList(app, projectId, list, args);
  let most = 0;
  for (const statement of recorded.slice().filter(({ sql }) => sql.includes(`FROM ${list}`) && !/count\(\*\)(?!.*LIMIT)/s.test(sql))) {
    const { scanned, readings } = await explain(app, statement);
    const read = readings.filter(({ table }) => table === list);
    expect(scanned.filter((table) => table === list)).toEqual([]);
    expect(read.filter(({ scans }) => scans > 0)).toEqual([]);
    most = Math.max(most, ...read.map(({ rows }) => rows));
  }
  return most;
}

const filters: ReadonlyArray<{ readonly list: ListName; readonly filter: object | null; readonly most: number }> = [
  { list: 'tasks', filter: null, most: MOST_ROWS },
  { list: 'tasks', filter: { statuses: ['cancelled', 'failed'] }, most: MOST_ROWS },
  { list: 'volumes', filter: null, most: MOST_ROWS },
  { list: 'instances', filter: null, most: MOST_ROWS },
  { list: 'instances', filter: { statuses: ['error', 'active'] }, most: MOST_ROWS },
  { list: 'instances', filter: { region: 'eu-central-1' }, most: 2 * MOST_ROWS + 300 },
  { list: 'instances', filter: { plan: 'vps-m' }, most: 2 * MOST_ROWS },
  // These are few, and sorted: 300 of the newest region, 60 of the plan, 30 that are throttled.
  { list: 'instances', filter: { region: 'new-region' }, most: 400 },
  { list: 'instances', filter: { plan: 'rare-plan', region: 'eu-central-1' }, most: 100 },
  { list: 'instances', filter: { attention: 'throttled' }, most: 200 },
  { list: 'instances', filter: { namePrefix: 'web-1' }, most: 1_500 },
];

test.each(filters)('$list, $filter: a page in any order reads at most $most rows', async ({ list, filter, most }) => {
  for (const field of orderables[list]) {
    for (const direction of ['asc', 'desc'] as const) {
      const orderBy: OrderBy = { field, direction };
      const { edges } = await readList(app, projectId, list, { orderBy, filter, first: 100 });
      const cursor = edges.at(-1)?.cursor as string;
      for (const args of [{ first: 20 }, { last: 20 }, { first: 20, after: cursor }, { last: 20, before: cursor }])
        expect(await countRead(list, { orderBy, filter, ...args }), `${field} ${direction} ${Object.keys(args)}`).toBeLessThanOrEqual(most);
    }
  }
});

const filtersOfInstance: ReadonlyArray<{ readonly list: ListName; readonly filter: object | null }> = [
  { list: 'tasks', filter: null },
  { list: 'tasks', filter: { statuses: ['cancelled', 'failed'] } },
  { list: 'tasks', filter: { status: 'succeeded' } },
  { list: 'volumes', filter: null },
];

test.each(filtersOfInstance)(
  `$list of an instance, $filter: a page in any order reads at most ${MOST_ROWS} rows`,
  async ({ list, filter }) => {
    const orders = orderables[list].flatMap((field) => (['asc', 'desc'] as const).map((direction): OrderBy => ({ field, direction })));
    for (const orderBy of [null, ...orders]) {
      const { edges } = await readList(app, projectId, list, { orderBy, filter, instanceId: holderId, first: 100 });
      expect(edges).toHaveLength(100);
      const cursor = edges.at(-1)?.cursor as string;
      for (const args of [{ first: 20 }, { last: 20 }, { first: 20, after: cursor }, { last: 20, before: cursor }]) {
        const what = `${JSON.stringify(orderBy)} ${Object.keys(args)}`;
        expect(await countRead(list, { orderBy, filter, instanceId: holderId, ...args }), what).toBeLessThanOrEqual(MOST_ROWS);
      }
    }
  },
);

test('names with a prefix are read in their order up to the end of a page', async () => {
  for (const direction of ['asc', 'desc'] as const) {
    const args = { orderBy: { field: 'name', direction }, filter: { namePrefix: 'web-' } } as const;
    const { edges } = await readList(app, projectId, 'instances', { ...args, first: 100 });
    expect(edges).toHaveLength(100);
    for (const part of [{ first: 20 }, { last: 20 }, { first: 20, after: edges.at(-1)?.cursor as string }])
      expect(await countRead('instances', { ...args, ...part })).toBeLessThanOrEqual(MOST_ROWS);
  }
});

test('the check detects a list that is scanned', async () => {
  recorded.length = 0;
  await app.app.database.prisma.volume.findMany({ where: { projectId, name: { contains: 'no volume' } } });
  const { readings } = await explain(app, recorded[0] as Statement);
  expect(readings.find(({ table }) => table === 'volumes')?.rows).toBeGreaterThanOrEqual(MANY);
});
