import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { isPostgres, startApp, type TestApp } from '../support/app.ts';
import { countCases } from '../support/cases.ts';
import { changeCounted as change, type Ground, resources, tables } from '../support/changes.ts';
import { type Random, seededRandom } from '../support/random.ts';
import { type Connection, openConnection, sqlState } from '../support/sql.ts';

let portico: TestApp;
let connection: Connection;

beforeAll(async () => {
  portico = await startApp();
  connection = await openConnection(portico);
});
afterAll(async () => {
  await connection.close();
  await portico.close();
});

async function createProjects(random: Random, count: number): Promise<string[]> {
  const ids = Array.from({ length: count }, () => random.uuid());
  for (const id of ids) {
    await connection.run(`INSERT INTO projects (id, organization_id, name) VALUES ('${id}', '${portico.demo.organization_id}', 'counted')`);
  }
  return ids;
}

/** SQL that compares every counter with a recount of the rows, in one statement so that both see the same snapshot. */
const differences = (() => {
  const instanceSums = 'sum(instances), sum(vcpu), sum(ram_mb), sum(storage_gb), sum(without_hypervisor), sum(throttled)';
  const taskSums = 'sum(pending), sum(running), sum(succeeded), sum(failed), sum(cancelled), sum(failures)';
  const dayAgo = `date_bin('15 minutes', now() - interval '24 hours', 'epoch')`;
  const counted = `
    SELECT project_id, status::text AS of, ${instanceSums} FROM instance_counters GROUP BY project_id, status
    HAVING (${instanceSums}) <> (0, 0, 0, 0, 0, 0)
    UNION ALL
    SELECT project_id, kind::text, sum(resources), sum(storage_gb), 0, 0, 0, 0 FROM resource_counters GROUP BY project_id, kind
    HAVING (sum(resources), sum(storage_gb)) <> (0, 0)
    UNION ALL
    SELECT project_id, since::text, ${taskSums} FROM task_counters WHERE since >= ${dayAgo} GROUP BY project_id, since
    HAVING (${taskSums}) <> (0, 0, 0, 0, 0, 0)`;
  const recounted = [
    `SELECT project_id, status::text AS of, count(*), sum(vcpu), sum(ram_mb), sum(storage_gb),
       count(*) FILTER (WHERE hypervisor IS NULL), count(*) FILTER (WHERE throttled)
     FROM instances GROUP BY project_id, status`,
    ...tables.map((table) => {
      const size = resources[table] ? `sum(${resources[table]})` : '0';
      return `SELECT project_id, '${table}', count(*), ${size}, 0, 0, 0, 0 FROM ${table} GROUP BY project_id`;
    }),
    `SELECT project_id, since::text, count(*) FILTER (WHERE of = 'pending'), count(*) FILTER (WHERE of = 'running'),
       count(*) FILTER (WHERE of = 'succeeded'), count(*) FILTER (WHERE of = 'failed'), count(*) FILTER (WHERE of = 'cancelled'),
       count(*) FILTER (WHERE of = 'failure')
     FROM (
       SELECT project_id, date_bin('15 minutes', created, 'epoch') AS since, status::text AS of FROM tasks
       UNION ALL SELECT project_id, date_bin('15 minutes', finished, 'epoch'), 'failure' FROM tasks WHERE status = 'failed'
     ) AS moments
     WHERE since >= ${dayAgo} GROUP BY project_id, since`,
  ].join(' UNION ALL ');
  return `WITH counted AS (${counted}), recounted AS (${recounted})
    (SELECT 'counted' AS which, to_json(counted)::text AS row FROM (SELECT * FROM counted EXCEPT SELECT * FROM recounted) AS counted)
    UNION ALL
    (SELECT 'recounted', to_json(rows)::text FROM (SELECT * FROM recounted EXCEPT SELECT * FROM counted) AS rows)`;
})();

async function expectNoDifferences(what: string) {
  expect(await connection.run(differences), what).toEqual([]);
}

/** The overview computed from the rows, without the cancellations, which have no counters. */
async function recountOverview(projectId: string) {
  const rows = (await connection.run(`
    SELECT status::text, vcpu, ram_mb, storage_gb, hypervisor IS NULL AS unplaced, throttled FROM instances
    WHERE project_id = '${projectId}' AND status <> 'deleted'`)) as unknown as Array<{
    readonly status: string;
    readonly vcpu: number;
    readonly ram_mb: number;
    readonly storage_gb: number;
    readonly unplaced: boolean;
    readonly throttled: boolean;
  }>;
  const sum = (of: (row: (typeof rows)[number]) => number) => rows.reduce((total, row) => total + of(row), 0);
  const present = [...new Set(rows.map(({ status }) => status))].sort();
  const [sizes] = await connection.run(`SELECT coalesce(sum(size_gb), 0)::int AS gb FROM volumes WHERE project_id = '${projectId}'`);
  const counts: Record<string, unknown> = {};
  for (const table of tables) {
    const [row] = await connection.run(`SELECT count(*)::int AS count FROM ${table} WHERE project_id = '${projectId}'`);
    counts[table] = row?.count;
  }
  const tasks = (await connection.run(`
    SELECT status::text, count(*) FILTER (WHERE created >= now() - interval '24 hours')::int AS recent,
      count(*) FILTER (WHERE status = 'failed' AND finished >= now() - interval '24 hours')::int AS failures,
      count(*) FILTER (WHERE status IN ('pending', 'running') AND created < now() - interval '1 hour')::int AS stuck
    FROM tasks WHERE project_id = '${projectId}' GROUP BY status ORDER BY status::text COLLATE "C"`)) as unknown as Array<{
    readonly status: string;
    readonly recent: number;
    readonly failures: number;
    readonly stuck: number;
  }>;
  const sumTasks = (of: 'recent' | 'failures' | 'stuck') => tasks.reduce((total, row) => total + row[of], 0);
  return {
    tasks_failed_24h: sumTasks('failures'),
    tasks_stuck: sumTasks('stuck'),
    tasks_by_status: tasks.filter(({ recent }) => recent > 0).map(({ status, recent }) => ({ status, count: recent })),
    tasks_recent_count: sumTasks('recent'),
    instances_without_hypervisor: sum((row) => Number(row.unplaced)),
    instances_suspended: sum((row) => Number(row.status === 'suspended')),
    instances_throttled: sum((row) => Number(row.throttled)),
    instances_by_status: present.map((status) => ({ status, count: sum((row) => Number(row.status === status)) })),
    instances_total: rows.length,
    resources_allocated: {
      vcpu: sum((row) => row.vcpu),
      ram_mb: sum((row) => row.ram_mb),
      ram_gb: Math.floor(sum((row) => row.ram_mb) / 1024),
      storage_gb: sum((row) => row.storage_gb),
    },
    resources_count: { ...counts, storage_gb: sizes?.gb },
  };
}

async function expectOverviewRight(projectId: string) {
  const path = `/v1/organizations/${portico.demo.organization_id}/projects/${projectId}/compute/overview`;
  const { status, json } = await portico.ask('GET', path);
  const [{ attention, ...overview }] = json;
  const { cancellations_scheduled: _scheduled, ...counted } = attention;
  expect([status, { ...counted, ...overview }]).toEqual([200, await recountOverview(projectId)]);
}

const seeds = Array.from({ length: countCases(20) }, (_, index) => index + 1);

describe('counters equal a recount', () => {
  test('of the demo', async () => {
    await expectNoDifferences('demo');
    await expectOverviewRight(portico.demo.project_id);
    await expectOverviewRight(portico.demo.empty_project_id);
  });

  test.each(seeds)('after a random run of statements, transactions and rollbacks: seed %i', async (seed) => {
    const random = seededRandom(seed);
    const ground = { random, projects: await createProjects(random, 4), owner: `run${seed}`, width: 8 };
    for (let step = 0; step < 60; step += 1) {
      const statements = Array.from({ length: 1 + random.below(4) }, () => change(ground));
      const isRolledBack = random.chance(0.25);
      await connection.run('BEGIN');
      for (const statement of statements) {
        await connection.run('SAVEPOINT before');
        await connection.run(statement);
        if (random.chance(0.2)) await connection.run('ROLLBACK TO SAVEPOINT before');
      }
      await connection.run(isRolledBack ? 'ROLLBACK' : 'COMMIT');
      await expectNoDifferences(`seed ${seed}, step ${step}: ${statements.join(';\n')}`);
    }
    const [rows] = await connection.run(`SELECT count(*)::int AS count FROM instances WHERE name LIKE '${ground.owner}-%'`);
    expect(rows?.count).toBeGreaterThan(0);
    for (const id of ground.projects) await expectOverviewRight(id);
  });

  test('after whole projects and a whole organization were deleted, and a deletion was rolled back', async () => {
    const random = seededRandom(4);
    const projects = await createProjects(random, 4);
    const ground = { random, projects, owner: 'gone', width: 8 };
    for (let step = 0; step < 60; step += 1) await connection.run(change(ground));
    await connection.run('BEGIN');
    await connection.run(`DELETE FROM projects WHERE id = '${projects[0]}'`);
    await connection.run('ROLLBACK');
    await expectNoDifferences('rolled back');
    await connection.run(`DELETE FROM projects WHERE id = '${projects[1]}'`);
    await expectNoDifferences('one project');
    await connection.run(`DELETE FROM projects WHERE id IN ('${projects[2]}', '${projects[3]}')`);
    await expectNoDifferences('two projects');
    await expectOverviewRight(projects[0] ?? '');
    await connection.run(`DELETE FROM organizations WHERE id = '${portico.demo.foreign.organization_id}'`);
    await expectNoDifferences('an organization');
    const left = await connection.run(`
      SELECT project_id FROM instance_counters UNION SELECT project_id FROM resource_counters UNION SELECT project_id FROM task_counters
      EXCEPT SELECT id FROM projects`);
    expect(left).toEqual([]);
  });
});

/** Twice the number of a counter's slots, so that some writers share one. PGlite has one connection and therefore one writer. */
const WRITERS = isPostgres ? 16 : 1;

/** Runs one random series per writer, all at once, and compares throughout. Returns the SQLSTATEs of the failed statements. */
async function runWriters(seed: number, width: number, write: (writer: Connection, ground: Ground) => Promise<void>): Promise<string[]> {
  const projects = await createProjects(seededRandom(seed), 4);
  const failures: string[] = [];
  let isOver = false;
  const series = Array.from({ length: WRITERS }, async (_, index) => {
    const writer = await openConnection(portico);
    const ground = { random: seededRandom(seed * 100 + index), projects, owner: `writer${seed}${index}-`, width };
    for (let step = 0; step < 40; step += 1) {
      await write(writer, ground).catch((failure) => {
        failures.push(sqlState(failure) ?? String(failure));
      });
    }
    await writer.close();
  });
  const compare = async () => {
    for (let look = 0; !isOver; look += 1) await expectNoDifferences(`seed ${seed}, look ${look}`);
  };
  const comparing = isPostgres ? compare() : Promise.resolve();
  await Promise.all(series).finally(() => {
    isOver = true;
  });
  await comparing;
  await expectNoDifferences(`seed ${seed}, in the end`);
  for (const id of projects) {
    const [row] = await connection.run(`SELECT count(*)::int AS count FROM projects WHERE id = '${id}'`);
    if (row?.count) await expectOverviewRight(id);
  }
  return failures;
}

describe('with writers at once', () => {
  test('single statements that insert, update or delete in several projects: none waits in a circle, and the counters are right at every moment', async () => {
    const failures = await runWriters(11, 60, async (writer, ground) => {
      await writer.run(change({ ...ground, countsOnce: true }));
    });
    expect(failures).toEqual([]);
  });

  test('transactions, some of which are rolled back or lose a deadlock, while projects are deleted', async () => {
    const failures = await runWriters(12, 8, async (writer, ground) => {
      const { random, projects } = ground;
      await writer.run('BEGIN');
      try {
        for (const statement of Array.from({ length: 1 + random.below(3) }, () => change(ground))) await writer.run(statement);
        if (random.chance(0.01)) await writer.run(`DELETE FROM projects WHERE id = '${random.pick(projects.slice(0, 2))}'`);
        await writer.run(random.chance(0.2) ? 'ROLLBACK' : 'COMMIT');
      } catch (failure) {
        await writer.run('ROLLBACK');
        throw failure;
      }
    });
    // Deadlocks and rows for a deleted project are expected.
    expect(failures.filter((state) => state !== '40P01' && state !== '23503')).toEqual([]);
  });

  // This needs two connections: on PGlite no statement ever waits.
  if (isPostgres) {
    test('counters are taken in the order of their key, whatever the order of the rows', async () => {
      const projects = (await createProjects(seededRandom(13), 2)).sort();
      const writer = await openConnection(portico);
      const keys = projects.flatMap((project) => ['active', 'stopped'].map((status) => `('${project}', '${status}')`));
      const rows = keys.toReversed().map((key) => key.replace(')', `, 'ordered', 'vps-s', 'eu', 1, 1, 1)`));
      const insert = `INSERT INTO instances (project_id, status, name, plan, region, vcpu, ram_mb, storage_gb) VALUES ${rows.join(', ')}`;
      await writer.run(insert);
      const [{ pid } = {}] = await writer.run('SELECT pg_backend_pid() AS pid');
      const ofWriter = `slot = ${Number(pid) % 8} AND (project_id::text, status::text) IN`;
      for (const [index, key] of keys.entries()) {
        await connection.run('BEGIN');
        await connection.run(`SELECT FROM instance_counters WHERE ${ofWriter} (${key}) FOR UPDATE`);
        const written = writer.run(insert);
        await untilWaiting(Number(pid));
        const free = await connection.run(`
          SELECT format('(%L, %L)', project_id, status) AS key FROM instance_counters WHERE ${ofWriter} (${keys.join(', ')})
          ORDER BY project_id, status FOR UPDATE SKIP LOCKED`);
        await connection.run('COMMIT');
        await written;
        expect(free.map((row) => row.key)).toEqual(keys.slice(index));
      }
      await writer.close();
    });
  }
});

/** Resolves once the connection waits for a lock. */
async function untilWaiting(pid: number): Promise<void> {
  await expect
    .poll(() => connection.run(`SELECT wait_event_type AS event FROM pg_stat_activity WHERE pid = ${pid}`))
    .toEqual([{ event: 'Lock' }]);
}
