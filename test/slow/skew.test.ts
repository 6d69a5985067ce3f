import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readSnapshots } from '../../src/consoles/store.ts';
import { findFork } from '../../src/notifications/log.ts';
import { startApp, type TestApp } from '../support/app.ts';
import { explain, recordStatements, type Statement } from '../support/plans.ts';
import { loadSkewed } from '../support/skew.ts';
import { countBlocks, openConnection } from '../support/sql.ts';

/** What a statement may read of one table for a page of 20, with what it looks up beside each row. */
const MOST_ROWS = 250;

let app: TestApp;
let recorded: Statement[];

beforeAll(async () => {
  app = await startApp({ RATE_LIMIT_USER: '1000000' });
  await loadSkewed(app);
  recorded = recordStatements(app);
});
afterAll(() => app.close());

/** The statements of `work` that read more of a table than they may. */
async function findLongReads(work: () => Promise<unknown>, mostRows = MOST_ROWS): Promise<string[]> {
  recorded.length = 0;
  await work();
  const statements = recorded.filter(({ sql }) => !/COMMIT|ROLLBACK|BEGIN/.test(sql));
  expect(statements.length).toBeGreaterThan(0);
  const problems: string[] = [];
  for (const statement of statements) {
    const { readings } = await explain(app, statement);
    for (const { table, rows } of readings)
      if (rows > mostRows) problems.push(`${rows} rows of ${table}: ${statement.sql.replace(/\s+/g, ' ').trim()}`);
  }
  return problems;
}

/** Sends a query with the demo's ids in it. */
async function ask(as: 'owner' | 'member', query: string): Promise<void> {
  const { organization_id: organization, project_id: project, instances } = app.demo;
  const ids: Readonly<Record<string, string>> = { organization, project, instance: instances.eligible };
  const { json } = await app.graphql(`{ ${query.replace(/\$(\w+)/g, (_text, name) => JSON.stringify(ids[name]))} }`, {}, { as });
  expect(json.errors).toBeUndefined();
}

describe.each(['owner', 'member'] as const)('where most rows are in one place, a list reads its page: as %s', (as) => {
  test.each([
    'organization(id: $organization) { projects(first: 20) { nodes { id } } }',
    'organization(id: $organization) { projects(last: 20) { nodes { id } } }',
    'project(id: $project) { members(first: 20) { nodes { role } } }',
    'project(id: $project) { members(last: 20) { nodes { role } } }',
    'project(id: $project) { consoleSessions(first: 20) { nodes { id } } }',
    'project(id: $project) { consoleSessions(first: 20, filter: { instanceId: $instance }) { nodes { id } } }',
    'project(id: $project) { consoleSessions(last: 20, filter: { instanceId: $instance, running: false }) { nodes { id } } }',
    'project(id: $project) { instance(id: $instance) { consoleSessions(first: 20) { nodes { id } } } }',
    'project(id: $project) { instance(id: $instance) { consoleSessions(last: 20) { nodes { id } } } }',
    'project(id: $project) { instances(first: 20) { nodes { id } } }',
    'project(id: $project) { instances(first: 20, filter: { statuses: [active, stopped] }) { nodes { id } } }',
    'project(id: $project) { instances(last: 20, orderBy: { field: created, direction: desc }) { nodes { id } } }',
    'project(id: $project) { instances(first: 20, filter: { namePrefix: "instance" }, orderBy: { field: name, direction: asc }) { nodes { id } } }',
    'project(id: $project) { instancePage(page: 1, pageSize: 20, status: suspended) { results { id } } }',
    'project(id: $project) { tasks(first: 20) { nodes { id } } }',
    'project(id: $project) { tasks(first: 20, filter: { statuses: [cancelled] }) { totalCount nodes { id } } }',
    'project(id: $project) { notifications(first: 20) { nodes { id } } }',
    'project(id: $project) { notifications(first: 20, filter: { unread: true }) { nodes { id } } }',
  ])('%s', async (query) => {
    // A member's projects of an organization are found among all of theirs.
    const most = as === 'member' && query.includes('projects(') ? 2_300 : MOST_ROWS;
    expect(await findLongReads(() => ask(as, query), most)).toEqual([]);
  });
});

test('where most rows are in one place, what names them looks them up', async () => {
  const { database } = app.app;
  const { project_id: projectId } = app.demo;
  const newest = await database.prisma.notification.findMany({ where: { projectId }, orderBy: { sequence: 'desc' }, take: 100 });
  const checkpoints = newest.map(({ id, sequence }) => ({ projectId, id, sequence: Number(sequence) }));
  const sessions = await database.prisma.consoleSession.findMany({ where: { projectId }, take: 100 });
  const body = { notification_ids: newest.slice(0, 50).map(({ id }) => id) };
  const marking = await findLongReads(() => app.ask('POST', `${app.projectPath}/notifications/read`, { as: 'member', body }));
  const problems = [
    ...(await findLongReads(() => readSnapshots(database, sessions))),
    ...(await findLongReads(() => findFork(database, projectId, checkpoints))),
    // Single reads are counted, by their index.
    ...marking.filter((problem) => !problem.includes('rows of notification_reads')),
  ];
  expect(problems).toEqual([]);
});

test.each(['tasks', 'instances', 'consoleSessions'])('what is new of the %s is read without the rest of the list', async (list) => {
  const connection = await openConnection(app);
  const read = async (args: string) => {
    const query = `{ project(id: "${app.demo.project_id}") { ${list}(${args}) { nodes { id } pageInfo { startCursor endCursor } } } }`;
    const { json } = await app.graphql(query, {}, { as: 'owner' });
    return json.data.project[list];
  };
  for (const [end, beyond, start] of [
    ['first', 'before', 'endCursor'],
    ['last', 'after', 'startCursor'],
  ] as const) {
    const page = await read(`${end}: 5`);
    recorded.length = 0;
    const isNew = await read(`${end}: 20, ${beyond}: "${page.pageInfo[start]}"`);
    // All of the page but the one at the cursor.
    expect(isNew.nodes).toEqual(end === 'first' ? page.nodes.slice(0, 4) : page.nodes.slice(1));
    const statements = recorded.filter(({ sql }) => sql.includes('LIMIT') && sql.includes('listed'));
    expect(statements.length).toBeGreaterThan(0);
    for (const { sql, values } of statements) expect(await countBlocks(connection, () => sql, values), sql).toBeLessThan(120);
  }
  await connection.close();
});
