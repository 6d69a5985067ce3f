import { afterAll, beforeAll, expect, it } from 'vitest';
import { startApp, type TestApp } from '../support/app.ts';
import { countCases } from '../support/cases.ts';
import {
  compareItems,
  drawName,
  fillLists,
  type Item,
  instanceLists,
  type ListName,
  type OrderBy,
  orderables,
  readList,
  statusOrders,
} from '../support/lists.ts';
import { type Random, seededRandom } from '../support/random.ts';
import { type Connection, openConnection } from '../support/sql.ts';

const STEPS = countCases(10_000);
/** How many changes there are between two pages. */
const STEPS_A_PAGE = 3;

let app: TestApp;
let connection: Connection;
let random: Random;
let projectId: string;
/** The instance of half of the tasks and volumes. */
let holderId: string;

beforeAll(async () => {
  app = await startApp({ RATE_LIMIT_USER: '1000000', DASHBOARDS_PER_PROJECT: '100000' });
  connection = await openConnection(app);
  random = seededRandom(10_000);
  projectId = await fillLists(app, random, { instances: 120, tasks: 120, volumes: 120, dashboards: 120 });
  const { instanceId } = await app.app.database.prisma.task.findFirstOrThrow({ where: { projectId, instanceId: { not: null } } });
  holderId = instanceId ?? '';
}, 180_000);
afterAll(async () => {
  await connection.close();
  await app.close();
});

const lists = Object.keys(orderables) as ListName[];

/** A walk over a whole list, page by page, in one order and from one end. */
interface Walk {
  readonly list: ListName;
  readonly isOfInstance: boolean;
  readonly orderBy: OrderBy;
  readonly isBackwards: boolean;
  cursor: string | null;
  seen: Item[];
  walks: number;
}

/** The rows that stay as they are from beginning to end, by list, and those of the instance among them. */
const steady = new Map<ListName, Map<string, Item>>();
const steadyOfInstance = new Set<string>();

const columns: Readonly<Record<ListName, string>> = {
  instances: 'name, status, plan, region, vcpu, ram_mb, storage_gb',
  tasks: 'kind, status, instance_id, finished',
  volumes: 'name, size_gb, instance_id',
  dashboards: 'name, created_by',
};

const drawHolder = () => (random.chance(0.5) ? holderId : null);

/** A task that failed has an end. */
const finishedOf = (status: string) => `CASE WHEN ${status}::task_status = 'failed' THEN now() END`;

/** One change of a list: a row comes, goes, or moves to another place of an order. */
function drawChange(list: ListName): { sql: string; values: unknown[] } {
  const statuses = statusOrders[list] ?? [];
  const created = new Date(Date.now() - random.below(12) * 18_000_000);
  const kept = [...(steady.get(list)?.keys() ?? []), holderId];
  const some = `id = (SELECT id FROM ${list} WHERE project_id = $1::uuid AND id <> ALL ($2::uuid[]) ORDER BY md5(id::text || $3) LIMIT 1)`;
  const salt = String(random.below(1e9));
  const own: Readonly<Record<ListName, unknown[]>> = {
    instances: [drawName(random), random.pick(statuses), 'vps-s', 'eu', 1, 1, 1],
    tasks: ['test', random.pick(statuses), drawHolder()],
    volumes: [drawName(random), 1, drawHolder()],
    dashboards: [drawName(random), app.demo.users.owner.id],
  };
  const type = list === 'instances' ? '::instance_status' : '::task_status';
  const places = columns[list]
    .split(', ')
    .map((name, index) => `$${index + 3}${name === 'status' ? type : /_(by|id)$/.test(name) ? '::uuid' : ''}`);
  if (list === 'tasks') places[3] = finishedOf('$4');
  const insert = {
    sql: `INSERT INTO ${list} (project_id, created, ${columns[list]}) VALUES ($1::uuid, $2::timestamptz, ${places.join(', ')})`,
    values: [projectId, created, ...own[list]],
  };
  const remove = { sql: `DELETE FROM ${list} WHERE project_id = $1::uuid AND ${some}`, values: [projectId, kept, salt] };
  const change = (assignment: string, value: unknown) => ({
    sql: `UPDATE ${list} SET ${assignment} WHERE project_id = $1::uuid AND ${some}`,
    values: [projectId, kept, salt, value],
  });
  const changes = [change('created = $4::timestamptz', created)];
  if (list !== 'tasks') changes.push(change('name = $4', drawName(random)));
  if (statuses.length > 0)
    changes.push(change(`status = $4${type}${list === 'tasks' ? `, finished = ${finishedOf('$4')}` : ''}`, random.pick(statuses)));
  return random.pick([insert, remove, ...changes]);
}

/** Reads the next page of a walk; at its end looks at what it has seen, and begins anew. */
async function step(walk: Walk): Promise<void> {
  const { list, isOfInstance, orderBy, isBackwards, cursor } = walk;
  const size = 1 + random.below(25);
  const filter = list === 'instances' ? { statuses: statusOrders.instances } : null;
  const page = await readList(app, projectId, list, {
    orderBy,
    filter: isOfInstance ? null : filter,
    instanceId: isOfInstance ? holderId : undefined,
    ...(isBackwards ? { last: size, ...(cursor && { before: cursor }) } : { first: size, ...(cursor && { after: cursor }) }),
  });
  const items = page.edges.map(({ node }) => node);
  walk.seen.push(...(isBackwards ? items.reverse() : items));
  walk.cursor = (isBackwards ? page.edges[0] : page.edges.at(-1))?.cursor ?? null;
  if (isBackwards ? page.pageInfo.hasPreviousPage : page.pageInfo.hasNextPage) return;
  const kept = new Map([...(steady.get(list) ?? [])].filter(([id]) => !isOfInstance || steadyOfInstance.has(id)));
  const ids = walk.seen.filter(({ id }) => kept.has(id)).map(({ id }) => id);
  const compare = compareItems(list, orderBy);
  const expected = [...kept.values()].sort((a, b) => (isBackwards ? compare(b, a) : compare(a, b))).map(({ id }) => id);
  expect(
    ids,
    `${list}${isOfInstance ? ' of an instance' : ''} by ${orderBy.field} ${orderBy.direction}${isBackwards ? ', backwards' : ''}`,
  ).toEqual(expected);
  // Whatever has moved, each page itself goes on from where the last one ended.
  for (const [index, item] of walk.seen.slice(1).entries()) {
    const difference = compare(walk.seen[index] as Item, item);
    expect(isBackwards ? -difference : difference).toBeLessThan(0);
  }
  Object.assign(walk, { cursor: null, seen: [], walks: walk.walks + 1 });
}

it(`in ${STEPS} steps of added, deleted and moved rows, no remaining row is missed or repeated, in any order`, {
  timeout: 600_000,
}, async () => {
  for (const list of lists) {
    const filter = list === 'instances' ? { statuses: statusOrders.instances } : null;
    const { edges } = await readList(app, projectId, list, { filter, orderBy: { field: 'created', direction: 'asc' }, first: 100 });
    steady.set(
      list,
      new Map(
        random
          .shuffle(edges.map(({ node }) => node))
          .slice(0, 60)
          .map((item) => [item.id, item]),
      ),
    );
  }
  const { database } = app.app;
  const where = { id: { in: [...steady.values()].flatMap((kept) => [...kept.keys()]) }, instanceId: holderId };
  for (const { id } of [...(await database.prisma.task.findMany({ where })), ...(await database.prisma.volume.findMany({ where }))])
    steadyOfInstance.add(id);
  expect(steadyOfInstance.size).toBeGreaterThan(20);
  const walks: Walk[] = lists.flatMap((list) =>
    orderables[list].flatMap((field) =>
      (['asc', 'desc'] as const).flatMap((direction) =>
        [true, false].flatMap((isBackwards) =>
          [false, ...instanceLists.flatMap((name) => (name === list ? [true] : []))].map(
            (isOfInstance): Walk => ({ list, isOfInstance, orderBy: { field, direction }, isBackwards, cursor: null, seen: [], walks: 0 }),
          ),
        ),
      ),
    ),
  );
  for (let done = 0, turn = 0; done < STEPS; turn += 1) {
    for (let change = 0; change < STEPS_A_PAGE; change += 1, done += 1) {
      const { sql, values } = drawChange(random.pick(lists));
      await connection.run(sql, values);
    }
    await step(walks[turn % walks.length] as Walk);
  }
  // Each was at its end, and those that are under way come to it.
  for (const walk of walks) for (const before = walk.walks; walk.walks === before; ) await step(walk);
  expect(walks).toHaveLength(36 + 16);
  expect(Math.min(...walks.map(({ walks: ends }) => ends))).toBeGreaterThan(0);
});
