import { afterAll, beforeAll, expect, test } from 'vitest';
import { startApp, type TestApp } from '../support/app.ts';
import { explain, recordStatements, type Statement } from '../support/plans.ts';
import { type Connection, countBlocks, openConnection } from '../support/sql.ts';

const MANY = 20_000;
/** Of the instance in question, and of another one. */
const OWN = 4;

let app: TestApp;
let connection: Connection;

beforeAll(async () => {
  app = await startApp();
  connection = await openConnection(app);
  const { project_id: projectId, instances, users } = app.demo;
  // The member's own lie among those of others, here and on another instance.
  await connection.run(
    `INSERT INTO console_sessions (id, project_id, instance_id, instance_name, user_id, user_email, kind, owner, ended, end_reason)
     SELECT uuid_v7(), $1::uuid, CASE WHEN n % 5 = 1 THEN $3::uuid ELSE $2::uuid END, n::text,
       CASE WHEN n % ${MANY / OWN} IN (1, 2) THEN $4::uuid ELSE $5::uuid END, 'x', 'serial', uuid_v7(), now(), 'idle'
     FROM generate_series(1, ${MANY}) AS n`,
    [projectId, instances.eligible, instances.console, users.member.id, users.owner.id],
  );
  await connection.run('ANALYZE console_sessions');
});
afterAll(async () => {
  await connection.close();
  await app.close();
});

interface Session {
  readonly id: string;
  readonly instanceName: string;
}

const fields = '{ totalCount nodes { id instanceName } }';
const slices = (cursor: string) => ['first: 20', 'last: 2', `first: 1, after: "${cursor}"`, `last: 1, before: "${cursor}"`, 'first: 0'];

async function readSlices(user: 'member' | 'admin', cursor: string): Promise<Array<{ totalCount: number; nodes: Session[] }>> {
  const lists = slices(cursor).map((slice, index) => `l${index}: consoleSessions(${slice}) ${fields}`);
  const { json } = await app.graphql(
    `{ node(id: "${app.demo.instances.eligible}") { ... on Instance { ${lists.join(' ')} } } }`,
    undefined,
    {
      as: user,
    },
  );
  expect(json.errors).toBeUndefined();
  return Object.values(json.data.node);
}

const toCursor = (id: string) => Buffer.from(id).toString('base64url');

async function readAll(where: string): Promise<Session[]> {
  const rows = await connection.run(
    `SELECT id::text, instance_name FROM console_sessions WHERE instance_id = $1::uuid AND ${where} ORDER BY id DESC`,
    [app.demo.instances.eligible],
  );
  return rows.map(({ id, instance_name }) => ({ id: String(id), instanceName: String(instance_name) }));
}

test.each([
  ['member', 'a page of their own', OWN],
  ['admin', 'a page of all', (MANY * 4) / 5],
] as const)('a user who is %s gets the sessions of an instance: %s', async (user, _what, count) => {
  const all = await readAll(user === 'admin' ? 'true' : `user_id = '${app.demo.users.member.id}'`);
  expect(all).toHaveLength(count);
  const cursor = toCursor(all[2]?.id ?? '');
  const nodes = [all.slice(0, 20), all.slice(-2), all.slice(3, 4), all.slice(1, 2), []];
  expect(await readSlices(user, cursor)).toEqual(nodes.map((some) => ({ totalCount: count, nodes: some })));
});

test.each(['member', 'admin'] as const)('a page of sessions for a user who is %s reads no more rows than it shows', async (user) => {
  const all = await readAll(user === 'admin' ? 'true' : `user_id = '${app.demo.users.member.id}'`);
  const recorded = recordStatements(app);
  await readSlices(user, toCursor(all[2]?.id ?? ''));
  const counts = ({ sql }: Statement) => sql.includes('count(*)');
  const statements = recorded.filter((statement) => statement.sql.includes('console_sessions') && !(user === 'admin' && counts(statement)));
  expect(statements.length).toBeGreaterThanOrEqual(slices('').length);
  for (const statement of statements) {
    const { withItsValues, withAnyValues } = await explain(app, statement);
    for (const { table, rows } of [...withItsValues, ...withAnyValues])
      if (table === 'console_sessions') expect(rows, statement.sql).toBeLessThan(50);
    expect(await countBlocks(connection, () => statement.sql, statement.values), statement.sql).toBeLessThan(user === 'admin' ? 150 : 50);
  }
});
