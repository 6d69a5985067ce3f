import type { GraphQLInputObjectType, GraphQLObjectType } from 'graphql';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Dashboard, Instance, Task, Volume } from '../../src/generated/prisma/client.ts';
import { schema } from '../../src/schema.ts';
import { isPostgres, startApp, type TestApp } from '../support/app.ts';
import { countCases } from '../support/cases.ts';
import {
  askList,
  compareItems,
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

let app: TestApp;
let projectId: string;
let random: Random;
/** All rows of each list, as the database has them. */
let rows: { instances: Instance[]; tasks: Task[]; volumes: Volume[]; dashboards: Dashboard[] };
/** The instance of half of the tasks and volumes. */
let holderId: string;

beforeAll(async () => {
  app = await startApp({ RATE_LIMIT_USER: '1000000' });
  random = seededRandom(14);
  // More than are sorted where a filter holds for them, so that both ways to a list are taken.
  projectId = await fillLists(app, random, { instances: 3_000, tasks: 300, volumes: 300, dashboards: 120 });
  const { database } = app.app;
  const where = { projectId };
  rows = {
    instances: await database.prisma.instance.findMany({ where }),
    tasks: await database.prisma.task.findMany({ where }),
    volumes: await database.prisma.volume.findMany({ where }),
    dashboards: await database.prisma.dashboard.findMany({ where }),
  };
  holderId = rows.tasks.find(({ instanceId }) => instanceId)?.instanceId ?? '';
  await database.prisma.$executeRawUnsafe('ANALYZE');
}, 180_000);
afterAll(() => app.close());

const HOUR_MS = 3_600_000;

/** The filter by the naive way: row by row. */
function holds(list: ListName, row: Instance | Task, filter: Filter): boolean {
  const { status, statuses, attention, region, plan, namePrefix } = filter;
  const isDeleted = row.status === 'deleted';
  if (status && row.status !== status) return false;
  if (statuses?.length && !statuses.includes(row.status)) return false;
  if (list === 'tasks') {
    const { created, finished } = row as Task;
    const now = Date.now();
    if (attention === 'failed_24h') return row.status === 'failed' && (finished?.getTime() ?? 0) >= now - 24 * HOUR_MS;
    if (attention === 'stuck') return ['pending', 'running'].includes(row.status) && created.getTime() < now - HOUR_MS;
    return true;
  }
  const instance = row as Instance;
  if (isDeleted && !status && !statuses?.length) return false;
  if (region && instance.region !== region) return false;
  if (plan && instance.plan !== plan) return false;
  if (namePrefix && !instance.name.startsWith(namePrefix)) return false;
  if (attention === 'suspended') return instance.status === 'suspended';
  if (attention && isDeleted) return false;
  if (attention === 'without_hypervisor') return instance.hypervisor === null;
  if (attention === 'throttled') return instance.throttled;
  if (attention === 'cancellation_scheduled') return (instance.cancellationAt?.getTime() ?? 0) > Date.now();
  return true;
}

interface Filter {
  readonly status?: string;
  readonly statuses?: readonly string[];
  readonly attention?: string;
  readonly region?: string;
  readonly plan?: string;
  readonly namePrefix?: string;
}

interface Case {
  readonly list: ListName;
  readonly isOfInstance: boolean;
  readonly orderBy: OrderBy | null;
  readonly filter: Filter;
}

const ordersOf = (list: ListName): Array<OrderBy | null> => [
  null,
  ...orderables[list].flatMap((field) => (['asc', 'desc'] as const).map((direction) => ({ field, direction }))),
];

/** Every combination of a value of each. */
function combine(choices: Readonly<Record<string, readonly unknown[]>>): Filter[] {
  return Object.entries(choices).reduce<Filter[]>(
    (filters, [name, values]) =>
      filters.flatMap((filter) => values.map((value) => (value === undefined ? filter : { ...filter, [name]: value }))),
    [{}],
  );
}

const filtersOf: Readonly<Record<ListName, readonly Filter[]>> = {
  instances: [
    ...combine({
      statuses: [undefined, ['error'], ['deleted', 'active', 'stopped']],
      attention: [undefined, 'without_hypervisor', 'suspended', 'throttled', 'cancellation_scheduled'],
      region: [undefined, 'eu-central-1', 'rare-region'],
      plan: [undefined, 'rare-plan'],
      namePrefix: [undefined, 'w', 'web_1'],
    }),
    { statuses: statusOrders.instances ?? [] },
    { region: 'none' },
    { plan: 'vps-m', namePrefix: '' },
    ...combine({
      status: ['active', 'deleted'],
      statuses: [undefined, [], ['active', 'error'], ['stopped']],
      region: [undefined, 'rare-region'],
    }),
    ...[
      'web%',
      '%',
      '_',
      '\\',
      'w\\',
      "'",
      '"',
      'ö',
      'e\u0301',
      '\u{1f600}',
      '\u{10ffff}',
      ' ',
      'W',
      'none',
      'x'.repeat(255),
      '\u{10ffff}'.repeat(255),
    ].map((namePrefix) => ({ namePrefix })),
  ],
  tasks: combine({
    status: [undefined, 'failed'],
    statuses: [undefined, ['running'], ['cancelled', 'failed', 'pending'], []],
    attention: [undefined, 'failed_24h', 'stuck'],
  }),
  volumes: [{}],
  dashboards: [{}],
};

const lists = Object.keys(orderables) as ListName[];

it.each(lists)('every filter condition of %s is compared', (list) => {
  const field = (schema.getType('Project') as GraphQLObjectType).getFields()[list];
  const filter = field?.args.find(({ name }) => name === 'filter');
  const conditions = filter ? Object.keys((filter.type as GraphQLInputObjectType).getFields()) : [];
  const compared = new Set(filtersOf[list].flatMap((one) => Object.keys(one)));
  expect([...compared].sort(), `filtersOf, holds and askList know the filter of ${list}`).toEqual(conditions.sort());
});

const cases: Case[] = lists.flatMap((list) =>
  filtersOf[list].flatMap((filter) => ordersOf(list).map((orderBy) => ({ list, isOfInstance: false, filter, orderBy }))),
);
/** The figures of `attention` are of a project alone. */
const casesOfInstance: Case[] = cases
  .filter(({ list, filter }) => instanceLists.some((name) => name === list) && !filter.attention)
  .map((one) => ({ ...one, isOfInstance: true }));

function expected({ list, isOfInstance, orderBy, filter }: Case): string[] {
  const items = rows[list]
    .filter((row) => !isOfInstance || (row as Task | Volume).instanceId === holderId)
    .filter((row) => (list === 'instances' || list === 'tasks' ? holds(list, row as Instance | Task, filter) : true))
    .map((row) => ({ ...row, created: row.created.toISOString() }) as Item);
  const byId = (a: Item, b: Item) => (a.id < b.id ? -1 : 1) * (list === 'tasks' ? -1 : 1);
  return items.sort(orderBy ? compareItems(list, orderBy) : byId).map(({ id }) => id);
}

const nameOf = ({ list, isOfInstance }: Case) => (isOfInstance ? `${list} of an instance` : list);
const idsOf = (page: { readonly edges: ReadonlyArray<{ readonly node: Item }> }) => page.edges.map(({ node }) => node.id);

describe.each([...lists, ...instanceLists.map((list) => `${list} of an instance`)])(
  '%s in every order, with every filter, both ways',
  (name) => {
    it('has the same items as a naive sort', { timeout: 300_000 }, async () => {
      const all = random.shuffle([...cases, ...casesOfInstance].filter((one) => nameOf(one) === name));
      expect(all).not.toHaveLength(0);
      const chosen = all.slice(0, Math.max(12, countCases(Math.min(1_000, all.length))));
      for (const [index, one] of chosen.entries()) {
        const what = JSON.stringify(one);
        const whole = expected(one);
        const [size, next] = [1 + random.below(40), 1 + random.below(40)];
        const instanceId = one.isOfInstance ? holderId : undefined;
        const read = (args: object) =>
          readList(app, projectId, one.list, { orderBy: one.orderBy, filter: one.filter, instanceId, ...args });
        const [start, end] = await Promise.all([read({ first: size }), read({ last: size })]);
        expect(start.totalCount, what).toBe(whole.length);
        expect(idsOf(start), what).toEqual(whole.slice(0, size));
        expect(start.pageInfo, what).toEqual({ hasNextPage: whole.length > size, hasPreviousPage: false });
        expect(idsOf(end), what).toEqual(whole.slice(-size));
        expect(end.pageInfo, what).toEqual({ hasNextPage: false, hasPreviousPage: whole.length > size });
        const after = start.edges.at(-1)?.cursor;
        const before = end.edges[0]?.cursor;
        if (!after || !before) continue;
        const from = Math.max(0, whole.length - size);
        const further = [
          { args: { first: next, after }, ids: whole.slice(size, size + next) },
          { args: { last: next, before }, ids: whole.slice(Math.max(0, from - next), from) },
          { args: { first: next, after, before }, ids: whole.slice(size, Math.max(size, Math.min(size + next, from))) },
        ];
        // On PGlite each of the three is read in a third of the cases.
        const pages = further.filter((_, which) => isPostgres || which === index % 3);
        const found = await Promise.all(pages.map(({ args }) => read(args)));
        expect(found.map(idsOf), what).toEqual(pages.map(({ ids }) => ids));
      }
    });
  },
);

it('dashboards are listed to the users who may see them, in every order', async () => {
  const seen = new Set(rows.dashboards.filter(({ isPublic }) => isPublic).map(({ id }) => id));
  for (const orderBy of ordersOf('dashboards')) {
    const whole = expected({ list: 'dashboards', isOfInstance: false, orderBy, filter: {} }).filter((id) => seen.has(id));
    const page = await readList(app, projectId, 'dashboards', { orderBy, first: 100 }, 'viewer');
    expect(idsOf(page)).toEqual(whole);
    expect(page.totalCount).toBe(whole.length);
  }
});

describe('cursors', () => {
  const text = (cursor: string) => Buffer.from(cursor, 'base64url').toString('utf8');
  const problemsOf = async (list: ListName, orderBy: OrderBy | null, after: string) => {
    const { json } = await askList(app, projectId, list, { orderBy, first: 1, after });
    return json.errors?.[0]?.extensions;
  };

  it('of another order are refused, and those of the other direction are accepted', async () => {
    for (const list of lists) {
      const cursors = await Promise.all(
        ordersOf(list).map(async (orderBy) => ({
          orderBy,
          cursor: (await readList(app, projectId, list, { orderBy, first: 1 })).edges[0]?.cursor ?? '',
        })),
      );
      for (const { orderBy: made, cursor } of cursors) {
        for (const orderBy of ordersOf(list)) {
          const problem = orderBy ? 'Not a cursor of this order.' : 'Not a valid cursor.';
          const isOwn = made?.field === orderBy?.field;
          expect(await problemsOf(list, orderBy, cursor), `${list} ${text(cursor)}`).toEqual(
            isOwn ? undefined : { code: 'validation_failed', fields: { after: [problem] } },
          );
        }
      }
    }
  });

  it('are named by their variable before the list is read, and by their argument afterwards', async () => {
    const query = `query ($o: ID!, $p: ID!, $c: String) {
      project(organizationId: $o, id: $p) { instances(after: $c, orderBy: { field: name }) { totalCount } } }`;
    const ofOther = (await readList(app, projectId, 'instances', { orderBy: { field: 'created', direction: 'asc' }, first: 1 })).edges[0]
      ?.cursor;
    const fieldsOf = async (c: string | undefined) =>
      (await app.graphql(query, { o: app.demo.organization_id, p: projectId, c })).json.errors[0].extensions.fields;
    expect(await fieldsOf('!!')).toEqual({ c: ['Not a valid cursor.'] });
    expect(await fieldsOf(ofOther)).toEqual({ after: ['Not a cursor of this order.'] });
  });

  it('that are forged are refused, or accepted as a place', async () => {
    const id = rows.instances[0]?.id ?? '';
    const made = (field: string, value: string, of = id) => Buffer.from(`${field} ${of} ${value}`).toString('base64url');
    const refused = { code: 'validation_failed', fields: { after: ['Not a cursor of this order.'] } };
    const bad: Array<[OrderBy['field'], string]> = [
      ['name', made('name', 'x'.repeat(256))],
      ['name', made('name', '\u{1f600}'.repeat(256))],
      ['name', made('name', 'a\0')],
      ['name', made('name', 'x', id.toUpperCase())],
      ['name', made('name', 'x', 'id')],
      ['name', made('name', 'x').slice(0, -3)],
      ['name', Buffer.from([...Buffer.from(`name ${id} `), 0xff, 0xfe]).toString('base64url')],
      ['created', made('created', '2026-02-30T00:00:00.000Z')],
      ['created', made('created', '2026-02-01')],
      ['created', made('created', '+275760-09-13T00:00:00.000Z')],
      ['created', made('created', '0000-01-01T00:00:00.000Z')],
      ['created', made('created', 'infinity')],
      ['status', made('status', 'gone')],
      ['status', made('status', '')],
      ['status', made('constructor', 'active')],
    ];
    for (const [field, cursor] of bad)
      expect(await problemsOf('instances', { field, direction: 'asc' }, cursor), `${field} ${text(cursor).slice(0, 60)}`).toEqual(refused);
    for (const cursor of [`${made('name', 'x')}=`, 'A'.repeat(100_000)])
      expect(await problemsOf('instances', { field: 'name', direction: 'asc' }, cursor)).toEqual({
        code: 'validation_failed',
        fields: { after: ['Not a valid cursor.'] },
      });
    const places: Array<[OrderBy['field'], string]> = [
      ['name', made('name', '')],
      ['name', made('name', '\u{10ffff}'.repeat(255))],
      ['name', made('name', "'; DROP TABLE instances; --")],
      ['name', made('name', 'a\nb')],
      ['created', made('created', '0001-01-01T00:00:00.000Z')],
      ['created', made('created', '9999-12-31T23:59:59.999Z')],
      ['status', made('status', 'rebuilding')],
    ];
    for (const [field, cursor] of places)
      expect(await problemsOf('instances', { field, direction: 'desc' }, cursor), `${field} ${text(cursor).slice(0, 60)}`).toBeUndefined();
  });

  it('hold no more of a name than may be stored, also where a row from before has more', async () => {
    const id = '019b0000-0000-7000-8000-00000000abcd';
    const { database } = app.app;
    await database.prisma.$executeRawUnsafe('ALTER TABLE volumes DISABLE TRIGGER USER');
    const long = [...Array(4)].map((_, index) => `${'\u{1f600}'.repeat(255)}${index}${'x'.repeat(5_000)}`);
    const other = await fillLists(app, random, { instances: 0, tasks: 0, volumes: 3, dashboards: 0 });
    for (const [index, name] of long.entries())
      await database.prisma.volume.create({ data: { id: id.replace(/\w$/, String(index)), projectId: other, name, sizeGb: 1 } });
    await database.prisma.$executeRawUnsafe('ALTER TABLE volumes ENABLE TRIGGER USER');
    const seen: string[] = [];
    for (let after: string | undefined; ; ) {
      const { edges, pageInfo } = await readList(app, other, 'volumes', {
        orderBy: { field: 'name', direction: 'desc' },
        first: 1,
        ...(after && { after }),
      });
      seen.push(...edges.map(({ node }) => node.id));
      after = edges[0]?.cursor ?? '';
      expect(after.length).toBeLessThan(1_500);
      expect(seen.length).toBeLessThanOrEqual(7);
      if (!pageInfo.hasNextPage) break;
    }
    expect(seen).toHaveLength(7);
    expect(new Set(seen).size).toBe(7);
  });
});

it('refuses filter texts that no name can have', async () => {
  const refuses = async (filter: object) => (await askList(app, projectId, 'instances', { filter })).json.errors?.[0]?.extensions.fields;
  expect(await refuses({ namePrefix: 'a\0' })).toEqual({ namePrefix: ['Null characters are not allowed.'] });
  expect(await refuses({ namePrefix: '\ud800' })).toEqual({ namePrefix: ['Not valid Unicode: it contains a lone surrogate.'] });
  expect(await refuses({ namePrefix: 'x'.repeat(256) })).toEqual({ namePrefix: ['Ensure this field has no more than 255 characters.'] });
  expect(await refuses({ region: ' ' })).toEqual({ region: ['This field may not be blank.'] });
  expect(await refuses({ statuses: ['gone'] })).toEqual({ statuses: ['Item 1: "gone" is not a valid choice.'] });
  expect(await refuses({ statuses: 'active' })).toEqual({ statuses: ['Expected a list of items.'] });
});
