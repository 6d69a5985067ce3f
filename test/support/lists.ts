import type { InstanceStatus, TaskStatus } from '../../src/generated/prisma/enums.ts';
import type { TestApp } from './app.ts';
import { makeProject } from './fixtures.ts';
import type { Random } from './random.ts';

/** The lists that can be ordered, and their order fields. */
export const orderables = {
  instances: ['name', 'created', 'status'],
  tasks: ['created', 'status'],
  volumes: ['name', 'created'],
  dashboards: ['name', 'created'],
} as const;
export type ListName = keyof typeof orderables;

/** The lists that an instance has as well. */
export const instanceLists = ['tasks', 'volumes'] as const satisfies readonly ListName[];

export const statusOrders: Readonly<Partial<Record<ListName, readonly string[]>>> = {
  instances: ['provisioning', 'active', 'stopped', 'suspended', 'resizing', 'rebuilding', 'error', 'deleted'] satisfies InstanceStatus[],
  tasks: ['pending', 'running', 'succeeded', 'failed', 'cancelled'] satisfies TaskStatus[],
};

export interface OrderBy {
  readonly field: 'name' | 'created' | 'status';
  readonly direction: 'asc' | 'desc';
}

export interface Item {
  readonly id: string;
  readonly name?: string;
  readonly created: string;
  readonly status?: string;
}

export interface Page {
  readonly edges: ReadonlyArray<{ readonly cursor: string; readonly node: Item }>;
  readonly totalCount: number;
  readonly pageInfo: { readonly hasNextPage: boolean; readonly hasPreviousPage: boolean };
}

export interface ListArgs {
  readonly orderBy?: OrderBy | null;
  readonly filter?: object | null;
  readonly first?: number;
  readonly last?: number;
  readonly after?: string;
  readonly before?: string;
  /** Reads the list of this instance instead of the project's. */
  readonly instanceId?: string | undefined;
}

const types = { instances: 'Instance', tasks: 'Task', volumes: 'Volume', dashboards: 'Dashboard' } as const;

/** Requests a page of a list and returns the response unprocessed. */
export function askList({ graphql }: TestApp, projectId: string, list: ListName, args: ListArgs, as: 'owner' | 'viewer' = 'owner') {
  const { filter, instanceId, ...rest } = args;
  const isFiltered = list === 'instances' || list === 'tasks';
  const type = types[list];
  const [open, close] = instanceId ? [`instance(id: "${instanceId}") {`, '}'] : ['', ''];
  const own = list === 'tasks' ? 'status' : list === 'instances' ? 'name status' : 'name';
  const query = `query ($p: ID!, $orderBy: ${type}Order, ${isFiltered ? `$filter: ${instanceId ? 'Instance' : ''}${type}Filter, ` : ''}$first: Int, $last: Int, $after: String, $before: String) {
    project(id: $p) { ${open}
      list: ${list}(orderBy: $orderBy, ${isFiltered ? 'filter: $filter, ' : ''}first: $first, last: $last, after: $after, before: $before) {
        totalCount edges { cursor node { id created ${own} } } pageInfo { hasNextPage hasPreviousPage }
      }
    ${close} }
  }`;
  return graphql(query, { p: projectId, ...rest, ...(isFiltered && { filter }) }, { as });
}

export async function readList(...asked: Parameters<typeof askList>): Promise<Page> {
  const { json } = await askList(...asked);
  if (json.errors) throw new Error(JSON.stringify(json.errors));
  const { project } = json.data;
  return (project.instance ?? project).list;
}

/** Compares by code points, as the collation "C" does; JavaScript itself compares UTF-16 code units. */
function compareNames(a: string, b: string): number {
  const [left, right] = [[...a], [...b]];
  for (let index = 0; index < Math.min(left.length, right.length); index += 1) {
    const difference = (left[index]?.codePointAt(0) ?? 0) - (right[index]?.codePointAt(0) ?? 0);
    if (difference !== 0) return difference;
  }
  return left.length - right.length;
}

/** A reference implementation of the order of two items of a list. */
export function compareItems(list: ListName, orderBy: OrderBy): (a: Item, b: Item) => number {
  const sign = orderBy.direction === 'asc' ? 1 : -1;
  const statuses = statusOrders[list] ?? [];
  const compare = {
    name: (a: Item, b: Item) => compareNames(a.name ?? '', b.name ?? ''),
    created: (a: Item, b: Item) => Date.parse(a.created) - Date.parse(b.created),
    status: (a: Item, b: Item) => statuses.indexOf(a.status ?? '') - statuses.indexOf(b.status ?? ''),
  }[orderBy.field];
  return (a, b) => sign * (compare(a, b) || (a.id < b.id ? -1 : 1));
}

/** Prefixes with characters that collations, LIKE patterns and encodings commonly mishandle. */
const stems = [
  'web-',
  'Web-',
  'web_',
  'web%',
  'w\\',
  'ö',
  'o',
  'é',
  'e\u0301',
  '\uffee',
  '\u{1f600}',
  '\u{10ffff}',
  '~',
  ' ',
  '0',
  "'",
  '"',
];

export function drawName(random: Random): string {
  const stem = random.pick(stems);
  if (random.chance(0.02)) return stem.padEnd(255, random.pick(['x', 'é', 'z'])).slice(0, 255);
  return random.chance(0.2) ? `${stem}1` : `${stem}${random.below(30)}${random.chance(0.3) ? random.pick(stems) : ''}`;
}

export interface Counts {
  readonly instances: number;
  readonly tasks: number;
  readonly volumes: number;
  readonly dashboards: number;
}

/**
 * Creates a project of the demo's organization with many equal values, so that every order has ties. Half of the tasks and
 * volumes belong to its first instance, if it has one.
 */
export async function fillLists(app: TestApp, random: Random, counts: Counts): Promise<string> {
  const projectId = await makeProject(app, { viewer: 'viewer' });
  const { database } = app.app;
  const now = Date.now();
  const HOUR_MS = 3_600_000;
  const list = <Row>(count: number, make: (index: number) => Row) => Array.from({ length: count }, (_, index) => make(index));
  const drawCreated = () => new Date(now - random.below(12) * 5 * HOUR_MS - (random.chance(0.3) ? random.below(1000) : 0));
  const instances = list(counts.instances, () => ({
    name: drawName(random),
    status: random.chance(0.7) ? 'active' : random.pick(statusOrders.instances as readonly InstanceStatus[]),
    plan: random.chance(0.05) ? 'rare-plan' : random.pick(['vps-s', 'vps-m']),
    region: random.chance(0.05) ? 'rare-region' : 'eu-central-1',
    created: drawCreated(),
    hypervisor: random.chance(0.1) ? null : 'hv',
    throttled: random.chance(0.1),
    cancellation_at: random.chance(0.1) ? new Date(now + random.pick([-1, 1]) * 100 * HOUR_MS) : null,
  }));
  // They are thousands, which take Prisma longer to write down than PostgreSQL to read.
  await database.prisma.$executeRawUnsafe(
    `INSERT INTO instances (project_id, name, status, plan, region, vcpu, ram_mb, storage_gb, created, hypervisor, throttled, cancellation_at)
     SELECT $1::uuid, name, status, plan, region, 1, 1024, 10, created, hypervisor, throttled, cancellation_at
     FROM json_populate_recordset(NULL::instances, $2::json)`,
    projectId,
    JSON.stringify(instances),
  );
  const holder = await database.prisma.instance.findFirst({ where: { projectId }, orderBy: { id: 'asc' }, select: { id: true } });
  const drawHolder = () => (random.chance(0.5) ? (holder?.id ?? null) : null);
  await database.prisma.task.createMany({
    data: list(counts.tasks, () => {
      const created = drawCreated();
      const status = random.pick(statusOrders.tasks as readonly TaskStatus[]);
      return { projectId, instanceId: drawHolder(), kind: 'test', status, created, finished: status === 'failed' ? created : null };
    }),
  });
  await database.prisma.volume.createMany({
    data: list(counts.volumes, () => ({
      projectId,
      instanceId: drawHolder(),
      name: drawName(random),
      sizeGb: 1,
      created: drawCreated(),
    })),
  });
  await database.prisma.dashboard.createMany({
    data: list(counts.dashboards, () => ({
      projectId,
      createdById: app.demo.users.owner.id,
      name: drawName(random),
      isPublic: random.chance(0.5),
      created: drawCreated(),
    })),
  });
  return projectId;
}
