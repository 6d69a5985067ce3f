import { afterAll, beforeAll, expect, test } from 'vitest';
import { startApp, type TestApp } from '../support/app.ts';
import { listBackgroundWork, listConsoleWork } from '../support/background.ts';
import { loadMany } from '../support/load.ts';
import { sendInDemo } from '../support/matrix.ts';
import { graphqlOperations, type Operation, routeOperations, variantsOf } from '../support/operations.ts';
import { explain, recordStatements, type Statement } from '../support/plans.ts';

/** The tables that grow: none may be read from end to end. */
const growing = [
  'instances',
  'tasks',
  'notifications',
  'notification_reads',
  'dashboards',
  'backup_trials',
  'websocket_tickets',
  'kept_answers',
  'api_keys',
  'console_sessions',
];

/** What a statement may read of one table: a page of 20 takes no more, a longer one five times its rows. */
const MOST_ROWS = 100;

let app: TestApp;
let recorded: Statement[];

beforeAll(async () => {
  app = await startApp({ RATE_LIMIT_USER: '1000000' });
  await loadMany(app);
  recorded = recordStatements(app);
});

afterAll(() => app.close());

const seen = new Set<string>();

/** What is wrong with the plans of the statements that `work` takes: each is looked at once. */
async function findProblems(name: string, work: () => Promise<unknown>, mostRows = MOST_ROWS): Promise<string[]> {
  recorded.length = 0;
  await work();
  const problems: string[] = [];
  for (const statement of recorded.slice()) {
    const key = JSON.stringify([statement, mostRows]);
    if (seen.has(key) || /COMMIT|ROLLBACK|BEGIN/.test(statement.sql)) continue;
    seen.add(key);
    const { scanned, readings } = await explain(app, statement);
    const read = readings.filter(({ table }) => growing.includes(table));
    const scans = [
      ...scanned.filter((table) => growing.includes(table)),
      ...read.flatMap(({ table, scans }) => (scans > 0 ? [table] : [])),
    ];
    const text = statement.sql.replace(/\s+/g, ' ').trim();
    if (scans.length > 0) problems.push(`${name} scans ${[...new Set(scans)].join(', ')}: ${text}`);
    for (const { table, rows } of read) if (rows > mostRows) problems.push(`${name} reads ${rows} rows of ${table}: ${text}`);
  }
  return problems;
}

/**
 * The lists that look at every row which a filter leaves, or leaves out: to count them, or to find a page among them; and
 * the projects of a list, of which one statement answers (and counts) what hangs under all of a page.
 */
function mostRowsOf({ name }: Operation, label: string): number {
  if (/^query organization\.project(s|Page)$/.test(name)) return 50 * MOST_ROWS;
  // Of tasks and console sessions there is no counter: their `totalCount` looks at an index entry of each.
  if (/\.(tasks|taskPage|consoleSessions)$|\/tasks$/.test(name)) return 10 * MOST_ROWS;
  const counts = /notificationPage|notifications$/.test(name) && /^(severity|kind)/.test(label);
  return counts ? 500 : MOST_ROWS;
}

const ask = (user: 'owner' | 'member', operation: Operation, values: Record<string, unknown>) => sendInDemo(app, user, operation, values);

const operations = [...routeOperations(), ...graphqlOperations()];

test.each(['owner', 'member'] as const)('the reads of the %s use an index, and read no more rows than they return', async (user) => {
  const problems: string[] = [];
  for (const operation of operations.filter(({ isMutation }) => !isMutation)) {
    for (const { label, values } of variantsOf(operation)) {
      const most = mostRowsOf(operation, label);
      problems.push(...(await findProblems(`${operation.name} (${label})`, () => ask(user, operation, values), most)));
    }
  }
  expect(problems).toEqual([]);
});

test('a page in the middle or at the end of a list reads as few rows as the first', async () => {
  const problems: string[] = [];
  for (const operation of operations.filter(({ variables }) => variables.some(({ name }) => name === 'after'))) {
    const list = operation.name.replace(/.*\./, '');
    const first = (await ask('owner', operation, { first: 10 })).json.data;
    const cursor = (first.project ?? first.viewer ?? first.organization)[list].pageInfo.endCursor;
    for (const values of [{ first: 10, after: cursor }, { last: 10, before: cursor }, { last: 10 }]) {
      const most = mostRowsOf(operation, '');
      problems.push(...(await findProblems(`${operation.name} (${Object.keys(values)})`, () => ask('owner', operation, values), most)));
    }
  }
  for (const operation of operations.filter(({ variables }) => variables.some(({ name }) => name === 'page_size'))) {
    // Of organizations the owner has one, and of projects few.
    const page = operation.scope === 'project' ? 3 : 1;
    const work = () => ask('owner', operation, { page, page_size: 10 });
    problems.push(...(await findProblems(`${operation.name} (page ${page})`, work, mostRowsOf(operation, ''))));
  }
  expect(problems).toEqual([]);
});

test.each([0, 2])('read notifications are found alone, with a watermark of %i and the newest as a single read', async (readThrough) => {
  const { database } = app.app;
  const { project_id: projectId, users } = app.demo;
  const userId = users.member.id;
  await database.prisma.notificationRead.deleteMany({ where: { userId } });
  await database.prisma.notificationState.updateMany({ where: { userId }, data: { readThrough } });
  const { sequence } = await database.prisma.notification.findFirstOrThrow({ where: { projectId }, orderBy: { sequence: 'desc' } });
  await database.prisma.notificationRead.create({ data: { projectId, userId, sequence, version: 1 } });
  const lists = operations.filter(({ name }) => /notification(s|Page)$/.test(name) && !name.startsWith('mutation'));
  expect(lists.length).toBeGreaterThan(2);
  const problems: string[] = [];
  for (const operation of lists) {
    const unread = variantsOf(operation).find(({ label }) => label === 'unread: false');
    if (!unread) continue;
    const ways = operation.variables.some(({ name }) => name === 'last') ? [{}, { first: undefined, last: 20 }] : [{}];
    for (const way of ways)
      problems.push(...(await findProblems(operation.name, () => ask('member', operation, { ...unread.values, ...way }), 12)));
  }
  expect(problems).toEqual([]);
});

test('the writes use an index', async () => {
  const { database } = app.app;
  const { project_id: projectId, users } = app.demo;
  const rows = await database.prisma.notification.findMany({ where: { projectId }, orderBy: { sequence: 'desc' }, take: 200 });
  const problems: string[] = [];
  for (const operation of operations.filter(({ isMutation, descriptions }) => isMutation && !descriptions.includes('On a WebSocket'))) {
    for (const { label, values } of variantsOf(operation)) {
      const data = { projectId, createdById: users.owner.id, name: 'Made for a test' };
      const { id } = await database.prisma.dashboard.create({ data });
      const key = await database.prisma.apiKey.findFirstOrThrow({ where: { userId: users.owner.id } });
      const session = await database.prisma.consoleSession.findFirstOrThrow({ where: { projectId, userId: users.owner.id } });
      const ids: Record<string, unknown> = {
        dashboard_id: id,
        api_key_id: key.id,
        notification_ids: rows.map((row) => row.id),
        console_session_id: session.id,
      };
      const own = Object.fromEntries(operation.variables.filter(({ name }) => name in ids).map(({ name }) => [name, ids[name]]));
      const work = () => ask('owner', operation, { ...values, ...own });
      // Of 200 notifications that are marked as read, each is looked at, and its number written down; the figure of what is
      // unread, which a response may show, leaves each of them out. Beside what is published or deleted stands the project,
      // with the `totalCount` of each of its lists.
      const showsMany = own.notification_ids || /publishNotifications|deleteDashboard/.test(operation.name);
      problems.push(...(await findProblems(`${operation.name} (${label})`, work, showsMany ? 10 * MOST_ROWS : 3 * MOST_ROWS)));
    }
  }
  expect(problems).toEqual([]);
});

test('the feed, tickets and jobs use an index', async () => {
  const { project_id: projectId, users } = app.demo;
  const problems: string[] = [];
  for (const [name, work] of listBackgroundWork(app.app.database, { projectId, userId: users.member.id })) {
    // The oldest of every log is looked at.
    problems.push(...(await findProblems(name, work, name === 'pruneNotifications' ? 250 : MOST_ROWS)));
  }
  const byKey = () => app.ask('GET', `${app.projectPath}/compute/overview`, { as: { bearer: users.owner.api_key } });
  expect([...problems, ...(await findProblems('a key', byKey))]).toEqual([]);
});

test('consoles use an index', async () => {
  const { project_id: projectId, users, instances } = app.demo;
  const place = { projectId, userId: users.member.id, instanceId: instances.eligible };
  const problems: string[] = [];
  for (const [name, work] of listConsoleWork(app.app.database, place)) problems.push(...(await findProblems(name, work)));
  expect(problems).toEqual([]);
});

test('a page of console sessions reads no more than its own, of many that others had', async () => {
  const { database } = app.app;
  const { project_id: projectId, instances } = app.demo;
  await database.prisma.$executeRaw`
    INSERT INTO console_sessions (id, project_id, instance_id, instance_name, user_id, user_email, kind, owner, ended, end_reason)
    SELECT uuid_v7(), ${projectId}::uuid, ${instances.eligible}::uuid, 'x', id, 'x', 'serial', uuid_v7(), now(), 'idle'
    FROM users, generate_series(1, 20)`;
  await database.prisma.$executeRaw`ANALYZE console_sessions`;
  const problems: string[] = [];
  for (const as of ['owner', 'member'] as const) {
    for (const args of ['first: 20', 'last: 20', 'first: 20, filter: { running: false }']) {
      const query = `query ($id: ID!) { project(id: $id) { consoleSessions(${args}) { nodes { id } } } }`;
      const work = async () => {
        const { json } = await app.graphql(query, { id: projectId }, { as });
        expect(json.data.project.consoleSessions.nodes).toHaveLength(20);
      };
      problems.push(...(await findProblems(`the sessions of the ${as} (${args})`, work)));
    }
  }
  expect(problems).toEqual([]);
});

test('the check detects a scan, and counts the rows that are read and dropped', async () => {
  const { database } = app.app;
  const scan = await findProblems('scan', () => database.prisma.task.findMany({ where: { error: 'nothing like it' } }));
  expect(scan.map((problem) => problem.replace(/:.*/, ''))).toEqual([
    'scan scans tasks',
    expect.stringMatching(/^scan reads \d{5} rows of tasks$/),
  ]);
  const unlike = await findProblems('drop', () =>
    database.prisma.notification.findMany({ where: { projectId: app.demo.project_id, title: 'x' } }),
  );
  expect(unlike.map((problem) => problem.replace(/:.*/, ''))).toEqual([expect.stringMatching(/^drop reads \d{3} rows of notifications$/)]);
});
