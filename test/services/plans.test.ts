import { randomBytes, randomUUID } from 'node:crypto';
import { tmpdir } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { databaseUrl as benchUrl, isFilled } from '../../bench/database.mjs';
import { fill, idOf } from '../../bench/fill.mjs';
import { Lifecycle } from '../../src/kernel/lifecycle.ts';
import { openDatabase } from '../../src/platform/database.ts';
import { needPostgres, startApp, type TestApp } from '../support/app.ts';
import { listBackgroundWork, listConsoleWork } from '../support/background.ts';
import { fillDemo } from '../support/database.ts';
import { openSocket } from '../support/feed.ts';
import { codeOf, send } from '../support/matrix.ts';
import { graphqlOperations, type Operation, routeOperations, variantsOf } from '../support/operations.ts';
import { explain, recordStatements, type Statement } from '../support/plans.ts';
import { connectTo, databaseUrl, execute } from '../support/sql.ts';

/** The tables with many rows, which no statement of any operation may scan sequentially. */
const large = [
  'instances',
  'tasks',
  'notifications',
  'dashboards',
  'backup_trials',
  'project_members',
  'instance_counters',
  'resource_counters',
  'task_counters',
];

/** The bench's database is copied if it exists; otherwise a tenth of it is generated, which the planner treats alike. */
const SCALE = 0.1;

/** The project with nearly a third of all rows, and an ordinary one. */
const organizationId = idOf('organization', 1);
const projects = { big: idOf('project', 1), ordinary: idOf('project', 10) };
const userId = idOf('user', 1);

const generous = { RATE_LIMIT_USER: '1000000', KEYS_PER_USER: '100000', DASHBOARDS_PER_PROJECT: '100000' };

let app: TestApp;
let recorded: Statement[];
let dropDatabase: () => Promise<unknown>;
let url: string;

beforeAll(async () => {
  const origin = needPostgres();
  const name = `${origin.template}_plans`;
  dropDatabase = () => execute(origin.server, `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`);
  url = databaseUrl(origin.server, name);
  const isCopied = process.env.BENCH_DATABASE_URL !== undefined && (await isFilled(1));
  await execute(origin.server, `CREATE DATABASE ${name} ${isCopied ? `TEMPLATE ${new URL(benchUrl(1)).pathname.slice(1)}` : ''}`);
  if (!isCopied) await makeTenth(url);
  // The test app needs the demo's users.
  await fillDemo(url);
  app = await startApp({ DATABASE_URL: url, ...generous });
  recorded = recordStatements(app);
}, 300_000);

afterAll(async () => {
  await app?.close();
  await dropDatabase?.();
});

async function makeTenth(url: string): Promise<void> {
  const lifecycle = new Lifecycle();
  await openDatabase({ dataDir: tmpdir(), database: { url, poolSize: 1 } }, lifecycle);
  await lifecycle.close();
  const client = await connectTo(url);
  try {
    await fill(client, { scale: SCALE });
  } finally {
    await client.end();
  }
}

const seen = new Set<string>();

const oneLine = (sql: string) => sql.replace(/\s+/g, ' ').trim();

/**
 * Explains each statement of `work` once; reports large tables that it scans, and generic plans that read much more than the
 * custom plan for the same values.
 */
async function findScans(name: string, work: () => Promise<unknown>): Promise<string[]> {
  recorded.length = 0;
  await work();
  const problems: string[] = [];
  for (const statement of recorded.slice()) {
    const key = JSON.stringify(statement);
    if (seen.has(key) || /COMMIT|ROLLBACK|BEGIN/.test(statement.sql)) continue;
    seen.add(key);
    const { scanned, readings, withItsValues } = await explain(app, statement);
    const own = new Map(withItsValues.map(({ table, rows }) => [table, rows]));
    for (const { table, rows } of readings.filter(({ table }) => large.includes(table)))
      if (rows > 2 * (own.get(table) ?? 0) + 200)
        problems.push(`${name} reads ${rows} ${table}, ${own.get(table) ?? 0} would do: ${oneLine(statement.sql)}`);
    const scans = [...scanned, ...readings.filter(({ scans }) => scans > 0).map(({ table }) => table)].filter((table) =>
      large.includes(table),
    );
    if (scans.length > 0) problems.push(`${name} scans ${[...new Set(scans)].join(', ')}: ${oneLine(statement.sql)}`);
  }
  return problems;
}

async function ask(operation: Operation, ids: Record<string, unknown>, values: Record<string, unknown>, of = app) {
  const located = Object.fromEntries(operation.variables.filter(({ name }) => name in ids).map(({ name }) => [name, ids[name]]));
  const bearer = (await of.app.tokens.local?.sign(userId, 3600)) ?? '';
  const caller = { name: 'user', bearer, user: 'owner', isSession: true } as const;
  const response = await send(of, { caller, operation, values: { ...values, ...located } });
  expect(codeOf(operation, response), `${operation.name}: ${response.text.slice(0, 300)}`).toBeNull();
  return response;
}

const operations = [...routeOperations(), ...graphqlOperations()];

async function idsOf(projectId: string): Promise<Record<string, unknown>> {
  const { database } = app.app;
  const instance = await database.prisma.instance.findFirstOrThrow({ where: { projectId, status: 'active' } });
  const data = { projectId, createdById: userId, name: 'Made for a test', isPublic: true };
  const { id } = await database.prisma.dashboard.create({ data });
  const session = { id: randomUUID(), projectId, instanceId: instance.id, instanceName: instance.name, kind: 'serial' } as const;
  await database.prisma.consoleSession.create({ data: { ...session, userId, userEmail: '', owner: randomUUID() } });
  const key = await database.prisma.apiKey.create({ data: { userId, name: 'Made for a test', hint: 'hint', secretHash: randomBytes(32) } });
  const rows = await database.prisma.notification.findMany({ where: { projectId }, orderBy: { sequence: 'desc' }, take: 20 });
  return {
    organization_id: organizationId,
    project_id: projectId,
    instance_id: instance.id,
    dashboard_id: id,
    console_session_id: session.id,
    api_key_id: key.id,
    notification_ids: rows.map((row) => row.id),
  };
}

test.each(['big', 'ordinary'] as const)('no query scans a large table, in the %s project', async (which) => {
  const ids = await idsOf(projects[which]);
  const problems: string[] = [];
  for (const operation of operations.filter(({ isMutation }) => !isMutation))
    for (const { label, values } of variantsOf(operation))
      problems.push(...(await findScans(`${operation.name} (${label})`, () => ask(operation, ids, values))));
  expect(problems).toEqual([]);
});

test('no list scans a large table after a cursor, before one, or at its end', async () => {
  const ids = await idsOf(projects.big);
  const problems: string[] = [];
  for (const operation of operations.filter(({ variables }) => variables.some(({ name }) => name === 'after'))) {
    const list = operation.name.replace(/.*\./, '');
    const { data } = (await ask(operation, ids, { first: 10 })).json;
    const cursor = (data.project ?? data.viewer ?? data.organization)[list].pageInfo.endCursor;
    for (const values of [{ first: 10, after: cursor }, { last: 10, before: cursor }, { last: 10 }])
      problems.push(...(await findScans(`${operation.name} (${Object.keys(values)})`, () => ask(operation, ids, values))));
  }
  expect(problems).toEqual([]);
});

test.each(['big', 'ordinary'] as const)('no mutation scans a large table, in the %s project', async (which) => {
  const problems: string[] = [];
  for (const operation of operations.filter(({ isMutation, descriptions }) => isMutation && !descriptions.includes('On a WebSocket'))) {
    for (const { label, values } of variantsOf(operation)) {
      const ids = await idsOf(projects[which]);
      problems.push(...(await findScans(`${operation.name} (${label})`, () => ask(operation, ids, values))));
    }
  }
  expect(problems).toEqual([]);
});

test('the feed, tickets, jobs and consoles do not scan a large table', async () => {
  const { database } = app.app;
  const { instance_id } = await idsOf(projects.big);
  const place = { projectId: projects.big, userId, instanceId: String(instance_id) };
  const problems: string[] = [];
  // All task counters of this data are old, so that a batch of them is the table.
  const works = [...listBackgroundWork(database, place), ...listConsoleWork(database, place)].filter(
    ([name]) => name !== 'deleteOldTaskCounters',
  );
  for (const [name, work] of works) problems.push(...(await findScans(name, work)));
  expect(problems).toEqual([]);
});

test('a look-up of roles reads those of one user, in a project with a thousand members', async () => {
  const member = `SELECT $1::uuid, id, 'member' FROM users ON CONFLICT DO NOTHING`;
  await execute(url, `INSERT INTO organization_members (organization_id, user_id, role) ${member}`, [organizationId]);
  await execute(url, `INSERT INTO project_members (project_id, user_id, role) ${member}`, [projects.big]);
  await execute(url, 'ANALYZE organization_members, project_members');
  const ids = await idsOf(projects.big);
  const bearer = (await app.app.tokens.local?.sign(userId, 3600)) ?? '';
  recorded.length = 0;
  // The permission of a feed is polled.
  const path = `/v1/organizations/${organizationId}/projects/${projects.big}/notifications/ws`;
  const feed = openSocket(app, path, { headers: { authorization: `Bearer ${bearer}` } });
  await expect.poll(() => recorded.some(({ sql }) => sql.includes('AS part ('))).toBe(true);
  feed.socket.close();
  await feed.closed;
  for (const operation of operations.filter(({ name, isMutation }) => /node$|viewer|overview/i.test(name) && !isMutation))
    await ask(operation, ids, variantsOf(operation)[0]?.values ?? {});
  const lookups = recorded.filter(({ sql }) => sql.includes('project_members'));
  expect(lookups.length).toBeGreaterThan(2);
  const problems: string[] = [];
  for (const statement of lookups) {
    const { readings } = await explain(app, statement);
    for (const { table, rows } of readings)
      if (table.endsWith('_members') && rows > 100) problems.push(`${rows} ${table}: ${oneLine(statement.sql)}`);
  }
  expect(problems).toEqual([]);
});

/** Gives each of 200 users a single read in each of 100 projects, except the user of this file. */
async function addSingleReads(): Promise<void> {
  await execute(
    url,
    `INSERT INTO notification_states (project_id, user_id)
     SELECT project.id, users.id FROM (SELECT id FROM projects LIMIT 100) AS project, (SELECT id FROM users LIMIT 200) AS users
     ON CONFLICT DO NOTHING`,
  );
  await execute(
    url,
    `INSERT INTO notification_reads (project_id, user_id, sequence, version)
     SELECT project_id, user_id, 1, 1 FROM notification_states WHERE user_id <> '${userId}'
     ON CONFLICT DO NOTHING`,
  );
}

test('a list takes no longer for somebody with thousands of single reads', async () => {
  await addSingleReads();
  const bounds = [projects.big, userId];
  await execute(url, 'INSERT INTO notification_states (project_id, user_id) VALUES ($1, $2) ON CONFLICT DO NOTHING', bounds);
  await execute(
    url,
    `INSERT INTO notification_reads (project_id, user_id, sequence, version)
     SELECT project_id, $2::uuid, sequence, 1 FROM notifications WHERE project_id = $1 ORDER BY sequence DESC LIMIT 2000
     ON CONFLICT DO NOTHING`,
    bounds,
  );
  await execute(url, 'VACUUM ANALYZE notification_reads, notification_states');
  recorded.length = 0;
  const ids = await idsOf(projects.big);
  const lists = operations.filter(({ name, isMutation }) => /notification(s|Page)$/.test(name) && !isMutation);
  expect(lists.length).toBeGreaterThan(2);
  for (const operation of lists) for (const { values } of variantsOf(operation)) await ask(operation, ids, values);
  for (const [, work] of listBackgroundWork(app.app.database, { projectId: projects.big, userId })) await work();
  const statements = new Map(
    recorded
      .filter(({ sql }) => /^\s*(SELECT|WITH).*notification_reads/s.test(sql))
      .map((statement) => [JSON.stringify(statement), statement]),
  );
  expect(statements.size).toBeGreaterThan(20);
  const slow: string[] = [];
  for (const statement of statements.values()) {
    const { compared } = await explain(app, statement);
    if (compared > 2_000) slow.push(`${compared} pairs: ${oneLine(statement.sql)} ${JSON.stringify(statement.values)}`);
  }
  expect(slow).toEqual([]);
});

test('no statement is planned twice on a connection', async () => {
  const single = await startApp({ DATABASE_URL: url, DATABASE_POOL: '1', ...generous });
  try {
    const { database } = single.app;
    for (const operation of operations.filter(({ descriptions }) => !descriptions.includes('On a WebSocket'))) {
      const [base] = variantsOf(operation);
      await ask(operation, await idsOf(projects.ordinary), base?.values ?? {}, single);
    }
    // By default PostgreSQL makes at least five custom plans for a statement.
    const statements = await database.query<{ statement: string; planned: number; runs: number }>`
      SELECT statement, custom_plans::int AS planned, generic_plans::int AS runs FROM pg_prepared_statements WHERE name LIKE 'portico_%'`;
    expect(statements.length).toBeGreaterThan(40);
    expect(statements.filter(({ planned }) => planned > 0)).toEqual([]);
  } finally {
    await single.close();
  }
});

test('a plan that was made while its tables were empty is right when they have grown', async () => {
  const tables = ['notification_reads', 'notification_states'];
  for (const table of tables) {
    await execute(url, `DELETE FROM ${table}`);
    await execute(url, `ALTER TABLE ${table} SET (autovacuum_enabled = false)`);
    await execute(url, `VACUUM FULL ANALYZE ${table}`);
  }
  const single = await startApp({ DATABASE_URL: url, DATABASE_POOL: '1', ...generous });
  try {
    const { database } = single.app;
    const bearer = (await single.app.tokens.local?.sign(userId, 3600)) ?? '';
    const path = `/v1/organizations/${organizationId}/projects/${projects.big}/notifications/read`;
    const rows = await database.query<{ id: string }>`
      SELECT id FROM notifications WHERE project_id = ${projects.big}::uuid ORDER BY sequence DESC LIMIT 21`;
    const mark = async (id: string | undefined) => {
      const { json } = await single.ask('POST', path, { as: { bearer }, body: { notification_ids: [id] } });
      expect(json.marked).toBe(1);
    };
    const readInSequence = async () => {
      const [row] = await database.query<{ rows: number }>`
        SELECT sum(seq_tup_read)::int AS rows FROM pg_stat_user_tables WHERE relname = ANY (${tables}::text[])`;
      return Number(row?.rows);
    };
    await mark(rows.pop()?.id);
    await addSingleReads();
    // A connection reports its statistics once a second.
    await sleep(1_500);
    const before = await readInSequence();
    for (const { id } of rows) await mark(id);
    await sleep(1_500);
    await database.query<{ one: number }>`SELECT 1::int AS one`;
    await sleep(500);
    expect((await readInSequence()) - before).toBeLessThan(20_000);
  } finally {
    await single.close();
  }
});

test('the check detects a scan', async () => {
  const scan = await findScans('scan', () => app.app.database.prisma.task.findMany({ where: { error: 'nothing like it' } }));
  expect(scan.map((problem) => problem.replace(/:.*/, ''))).toContain('scan scans tasks');
});
