import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { ResponseBudget } from '../../src/graph/responsebudget.ts';
import { loadEntries } from '../../src/notifications/entries.ts';
import { startApp, type TestApp } from '../support/app.ts';
import { recordStatements, type Statement } from '../support/plans.ts';
import { type Connection, countBlocks, openConnection } from '../support/sql.ts';

const COUNT = 40;
/** What is text in one value; all of them together are more than a response may hold here, or a batch of a feed. */
const BYTES = 60_800;

let app: TestApp;
let connection: Connection;
let statements: Statement[];
let dashboardIds: string[];
let notificationIds: string[];

beforeAll(async () => {
  app = await startApp({ MAX_ANSWER_BYTES: '1000000' });
  connection = await openConnection(app);
  statements = recordStatements(app);
  // Each text is another one, which PostgreSQL cannot make shorter.
  const text = `(SELECT string_agg(md5(n || '.' || part), '') FROM generate_series(1, ${BYTES / 32}) AS part)`;
  const add = async (sql: string) =>
    (await connection.run(`${sql} FROM generate_series(1, ${COUNT}) AS n RETURNING id`)).map(({ id }) => String(id));
  dashboardIds = await add(
    `INSERT INTO dashboards (project_id, created_by, name, description, widgets, is_public)
     SELECT '${app.demo.empty_project_id}', '${app.demo.users.owner.id}', 'Large', 'Small', to_json(${text}), true`,
  );
  notificationIds = await add(
    `INSERT INTO notifications (project_id, kind, severity, title, body, data)
     SELECT '${app.demo.empty_project_id}', 'test', 'info', 'Large', 'Small', json_build_object('text', ${text})`,
  );
});
afterAll(async () => {
  await connection.close();
  await app.close();
});

const place = () => `project(organizationId: "${app.demo.organization_id}", id: "${app.demo.empty_project_id}")`;
const nodes = (ids: readonly string[], type: string, field: string) =>
  `{ nodes(ids: ${JSON.stringify(ids)}) { ... on ${type} { ${field} } } }`;

/** The blocks that the last statement read. */
function blocksOfLast(): Promise<number> {
  const { sql, values } = statements.at(-1) ?? { sql: '', values: [] };
  return countBlocks(connection, () => sql, values);
}

async function refuse(query: string): Promise<number> {
  const { json } = await app.graphql(query, {}, { headers: { 'x-graphql-cost': '1' } });
  expect(json.extensions.cost.requested, query).toBeGreaterThan(0);
  expect(json.errors, query).toMatchObject([
    { extensions: { code: 'invalid_request' }, message: expect.stringContaining('1000000 bytes') },
  ]);
  return blocksOfLast();
}

test('a failed field’s siblings are neither read nor reported', async () => {
  const lists = Array.from({ length: 12 }, (_, index) => `a${index}: dashboards(first: 100) { nodes { widgets } }`).join(' ');
  const { json } = await app.graphql(`{ ${place()} { dashboardPage(page: 9999) { count } ${lists} } }`);
  expect(json.errors.map(({ extensions }: { extensions: object }) => extensions)).toEqual([{ code: 'not_found' }]);
});

test('a list that exceeds the limit of a response or a batch is refused without its texts being read', async () => {
  const blocks: Record<string, number> = {
    dashboards: await refuse(`{ ${place()} { dashboards(first: 100) { nodes { widgets } } } }`),
    dashboardsByName: await refuse(`{ ${place()} { dashboards(first: 100, orderBy: { field: name }) { nodes { widgets } } } }`),
    dashboardsById: await refuse(nodes(dashboardIds, 'Dashboard', 'widgets')),
    notifications: await refuse(`{ ${place()} { notifications(first: 100) { nodes { data } } } }`),
    notificationsOfKind: await refuse(`{ ${place()} { notifications(first: 100, filter: { kind: "test" }) { nodes { data } } } }`),
    notificationsById: await refuse(nodes(notificationIds, 'Notification', 'data')),
  };
  const batch = await loadEntries(app.app.database, app.demo.empty_project_id, { after: 0, limit: COUNT, maxBytes: 256 * 1024 });
  expect(batch.entries).toHaveLength(4);
  blocks.batch = await blocksOfLast();
  // To read all of the texts would take more than 1,000.
  for (const [name, count] of Object.entries(blocks)) expect(count, name).toBeLessThan(300);
});

test('of the heavy fields only those that are selected count, and are read', async () => {
  const small = async (query: string) => {
    const { text } = await app.graphql(query);
    expect(text.match(/"Small"/g), query).toHaveLength(COUNT);
    expect(await blocksOfLast(), query).toBeLessThan(300);
  };
  const { organization_id, empty_project_id } = app.demo;
  const input = `{ organizationId: "${organization_id}", projectId: "${empty_project_id}" }`;
  await app.graphql(`mutation { markNotificationsRead(input: ${input}) { marked } }`);
  await small(`{ ${place()} { dashboards(first: 100) { nodes { description } } } }`);
  await small(`{ ${place()} { dashboards(first: 100, orderBy: { field: name }) { nodes { description } } } }`);
  await small(`{ ${place()} { dashboardPage(pageSize: 100) { results { description } } } }`);
  await small(nodes(dashboardIds, 'Dashboard', 'description'));
  await small(`{ ${place()} { notifications(first: 100) { nodes { body } } } }`);
  await small(`{ ${place()} { notifications(first: 100, filter: { kind: "test" }) { nodes { body } } } }`);
  await small(`{ ${place()} { notifications(first: 100, filter: { unread: false }) { nodes { body } } } }`);
  await small(nodes(notificationIds, 'Notification', 'body'));
  const one = `(id: "${dashboardIds[0]}")`;
  const { json } = await app.graphql(`{ ${place()} { a: dashboard${one} { description } b: dashboard${one} { widgets } } }`);
  expect(json.data.project).toEqual({ a: { description: 'Small' }, b: { widgets: expect.stringMatching(/^\w{60000,}$/) } });
});

test('a text that an earlier version stored compressed counts with its uncompressed size', async () => {
  await connection.run('ALTER TABLE dashboards ALTER COLUMN widgets SET STORAGE EXTENDED');
  const sizes = 'pg_column_size(widgets) AS stored, json_bytes(widgets) AS counted';
  const [dashboard] = await connection.run(
    `INSERT INTO dashboards (project_id, created_by, name, widgets, is_public)
     SELECT '${app.demo.project_id}', '${app.demo.users.owner.id}', 'Compressed', to_json(repeat('x', 250000)), true RETURNING id`,
  );
  const [found] = await connection.run(`SELECT ${sizes} FROM dashboards WHERE id = '${dashboard?.id}'`);
  expect(found).toEqual({ stored: expect.closeTo(2_900, -3), counted: 250_002 });
});

test('a large response is serialized in steps by POST, GET, HEAD and as a stream, with the same text', async () => {
  const serialize = vi.spyOn(ResponseBudget.prototype, 'serialize');
  const query = `{ ${place()} { dashboards(first: ${Math.floor(900_000 / BYTES)}) { nodes { widgets } } } }`;
  const path = `/graphql?query=${encodeURIComponent(query)}`;
  const { text } = await app.graphql(query);
  expect(text.length).toBeGreaterThan(500_000);
  const { text: byGet } = await app.ask('GET', path);
  const { text: asStream } = await app.ask('GET', path, { headers: { accept: 'text/event-stream' } });
  const { headers } = await app.ask('HEAD', path);
  expect([byGet === text, Number(headers['content-length'])]).toEqual([true, Buffer.byteLength(text)]);
  expect(asStream).toContain(`event: next\ndata: ${text}\n\n`);
  expect(serialize).toHaveBeenCalledTimes(4);
  serialize.mockRestore();
});
