import { afterAll, beforeAll, expect, test } from 'vitest';
import { organization, project } from '../../demo/people.ts';
import { startRestingApp, type TestApp } from '../support/app.ts';
import { explain, recordStatements, type Statement } from '../support/plans.ts';

/** The number of notifications about each instance. */
const COUNT = 250;

let app: TestApp;
let instanceIds: string[];
let recorded: Statement[];

beforeAll(async () => {
  app = await startRestingApp({ RATE_LIMIT_USER: '1000000' });
  const { database } = app.app;
  const made = await database.prisma.project.create({ data: { name: 'Elsewhere', organizationId: organization.id } });
  const rows = await database.prisma.instance.findMany({ where: { projectId: project.id }, orderBy: { id: 'asc' }, take: 2 });
  instanceIds = rows.map(({ id }) => id);
  for (const id of instanceIds) {
    await database.prisma.$executeRawUnsafe(
      `INSERT INTO notifications (project_id, kind, severity, title, body, resource_type, resource_id)
       SELECT project_id, 'test', 'info', 'Title ' || number, 'Body ' || number, 'instance', CASE number % 2 WHEN 0 THEN $1 ELSE upper($1) END
       FROM generate_series(1, ${COUNT}) AS number, unnest($2::uuid[]) AS project_id`,
      id,
      [project.id, made.id],
    );
  }
  await database.prisma.$executeRawUnsafe('ANALYZE notifications');
  recorded = recordStatements(app);
});
afterAll(() => app.close());

interface Item {
  readonly sequence: number;
  readonly body: string;
  readonly read: boolean;
  readonly resource: { readonly id: string } | null;
}

interface Page {
  readonly nodes: readonly Item[];
  readonly totalCount: number;
  readonly pageInfo: {
    readonly startCursor: string;
    readonly endCursor: string;
    readonly hasNextPage: boolean;
    readonly hasPreviousPage: boolean;
  };
}

async function read(args: string): Promise<Page[]> {
  const { json } = await app.graphql(
    `query ($ids: [ID!]!) { nodes(ids: $ids) { ... on Instance { notifications(${args}) {
    nodes { sequence body read resource { id } } totalCount pageInfo { startCursor endCursor hasNextPage hasPreviousPage } } } } }`,
    { ids: instanceIds },
  );
  expect(json.errors).toBeUndefined();
  return json.data.nodes.map(({ notifications }: { notifications: Page }) => notifications);
}

/** The sequences of an instance's notifications in the project's log. */
async function readLog(id: string): Promise<number[]> {
  const rows = await app.app.database.prisma.notification.findMany({
    where: { projectId: project.id, resourceId: { equals: id, mode: 'insensitive' } },
    orderBy: { sequence: 'desc' },
    select: { sequence: true },
  });
  return rows.map(({ sequence }) => Number(sequence));
}

test('an instance has the notifications that link to it, the newest first', async () => {
  const pages = await read('first: 100');
  for (const [index, id] of instanceIds.entries()) {
    const log = await readLog(id);
    expect(log.length).toBeGreaterThanOrEqual(COUNT);
    const { nodes, totalCount } = pages[index] as Page;
    expect(totalCount).toBe(log.length);
    expect(nodes.map(({ sequence }) => sequence)).toEqual(log.slice(0, 100));
    expect(new Set(nodes.map(({ resource }) => resource?.id))).toEqual(new Set([id]));
    expect(nodes[0]).toMatchObject({ body: `Body ${COUNT}`, read: false });
  }
});

test('the pages of an instance’s notifications are complete in both directions', async () => {
  const [log = []] = await Promise.all(instanceIds.slice(0, 1).map(readLog));
  for (const [size, cursor, more, next] of [
    ['first', 'endCursor', 'hasNextPage', 'after'],
    ['last', 'startCursor', 'hasPreviousPage', 'before'],
  ] as const) {
    const seen: number[] = [];
    for (let place = ''; ; ) {
      const [page] = await read(`${size}: 60${place}`);
      const part = page?.nodes.map(({ sequence }) => sequence) ?? [];
      if (size === 'first') seen.push(...part);
      else seen.unshift(...part);
      if (!page?.pageInfo[more]) break;
      place = `, ${next}: "${page.pageInfo[cursor]}"`;
    }
    expect(seen).toEqual(log);
  }
});

test('an instance’s notifications are found by the index, and no more rows are read than returned', async () => {
  recorded.length = 0;
  await read('first: 10');
  await read('last: 10');
  const problems: string[] = [];
  for (const statement of recorded.slice()) {
    const { scanned, readings } = await explain(app, statement);
    if (scanned.includes('notifications')) problems.push(`scans: ${statement.sql}`);
    // Ten rows for each of two instances, and one more that shows whether a next page exists; counting reads an index only.
    for (const { table, rows } of readings)
      if (table === 'notifications' && !statement.sql.includes('count(*)') && rows > 2 * 2 * 11)
        problems.push(`${rows} rows: ${statement.sql}`);
  }
  expect(recorded.length).toBeGreaterThan(4);
  expect(problems).toEqual([]);
});
