import type { InstanceStatus, TaskStatus } from '../../../src/generated/prisma/enums.ts';
import type { TestApp } from '../../support/app.ts';
import { type Attempt, type Case, refusals, type Who } from '../../support/doors.ts';
import { ids, makeProject } from '../../support/fixtures.ts';

// What a client needs before any other path: the ids of organizations, projects, instances and tasks.

interface Paged {
  readonly page?: number;
  readonly page_size?: number;
}

/** §2.7, of a whole list at `path`. */
function envelope(path: string, all: readonly unknown[], paged: Paged = {}, search = '') {
  const { page = 1, page_size = 20 } = paged;
  const size = paged.page_size ? `&page_size=${page_size}` : '';
  const total_pages = Math.max(1, Math.ceil(all.length / page_size));
  const link = (to: number) => `${path}?${search}page=${to}${size}`;
  return {
    count: all.length,
    next: page < total_pages ? link(page + 1) : null,
    previous: page > 1 ? link(page - 1) : null,
    page,
    page_size,
    total_pages,
    results: all.slice((page - 1) * page_size, page * page_size),
  };
}

async function organizationsOf({ app }: TestApp, as: 'owner' | 'viewer' | 'outsider') {
  const rows = await app.database.prisma.organizationMember.findMany({
    where: { userId: ids.users[as].id },
    include: { organization: true },
  });
  return rows
    .sort((a, b) => (a.organizationId < b.organizationId ? -1 : 1))
    .map(({ role, organization: { id, name, currency, created } }) => ({ id, name, currency, role, created: created.toISOString() }));
}

const organizations = (name: string, as: Who, user: 'owner' | 'viewer' | 'outsider'): Case => ({
  name,
  operation: 'list_organizations',
  status: 200,
  as,
  prepare: async (app) => ({ body: envelope(`${app.baseUrl}/v1/organizations`, await organizationsOf(app, user)) }),
});

async function projectBody({ app }: TestApp, id: string, role: string) {
  const { name, organizationId, created } = await app.database.prisma.project.findUniqueOrThrow({ where: { id } });
  return { id, name, organization: organizationId, role, created: created.toISOString() };
}

/** What a user may see of the organization, and as what; the tests of other files make projects too, so all are read. */
const projects = (as: Who, role: string, isAdmin: boolean): Case => ({
  name: `what ${as} may see`,
  operation: 'list_projects',
  status: 200,
  as,
  input: { page_size: 100 },
  prepare: async (app) => {
    const rows = await app.app.database.prisma.project.findMany({ where: { organizationId: ids.organization.id }, orderBy: { id: 'asc' } });
    const seen = isAdmin ? rows.map(({ id }) => id) : [ids.project.id];
    const path = `${app.baseUrl}/v1/organizations/${ids.organization.id}/projects`;
    return { body: envelope(path, await Promise.all(seen.map((id) => projectBody(app, id, role))), { page_size: 100 }) };
  },
});

/** An organization of its own with three projects, by pages of two. */
async function pagedOrganization({ app, baseUrl }: TestApp, page: number): Promise<Attempt> {
  const { id } = await app.database.prisma.organization.create({ data: { name: 'Made for a test', currency: 'EUR' } });
  await app.database.prisma.organizationMember.create({ data: { organizationId: id, userId: ids.users.admin.id, role: 'owner' } });
  const made: string[] = [];
  for (const name of ['A', 'B', 'C']) made.push((await app.database.prisma.project.create({ data: { organizationId: id, name } })).id);
  // Ids of one millisecond are in any order.
  const results = await Promise.all(made.toSorted().map((projectId) => projectBody({ app } as TestApp, projectId, 'admin')));
  const path = `${baseUrl}/v1/organizations/${id}/projects`;
  return { place: { organization_id: id }, body: envelope(path, results, { page, page_size: 2 }) };
}

const computePath = ({ baseUrl }: TestApp, what: string, projectId: string = ids.project.id) =>
  `${baseUrl}/v1/organizations/${ids.organization.id}/projects/${projectId}/compute/${what}`;

async function instancesOf({ app }: TestApp, status: InstanceStatus | null, projectId: string = ids.project.id) {
  const rows = await app.database.prisma.instance.findMany({ where: { projectId }, orderBy: { id: 'asc' } });
  return rows
    .filter((row) => (status ? row.status === status : row.status !== 'deleted'))
    .map((row) => ({
      id: row.id,
      name: row.name,
      status: row.status,
      plan: row.plan,
      region: row.region,
      vcpu: row.vcpu,
      ram_mb: row.ramMb,
      storage_gb: row.storageGb,
      hypervisor: row.hypervisor,
      throttled: row.throttled,
      daily_backup: row.dailyBackup,
      cancellation_at: row.cancellationAt?.toISOString() ?? null,
      created: row.created.toISOString(),
      modified: row.modified.toISOString(),
    }));
}

async function tasksOf({ app }: TestApp, status: TaskStatus | null, projectId: string = ids.project.id) {
  const rows = await app.database.prisma.task.findMany({ where: { projectId }, orderBy: { id: 'desc' } });
  return rows
    .filter((row) => !status || row.status === status)
    .map((row) => ({
      id: row.id,
      instance: row.instanceId,
      kind: row.kind,
      status: row.status,
      error: row.error,
      created: row.created.toISOString(),
      started: row.started?.toISOString() ?? null,
      finished: row.finished?.toISOString() ?? null,
    }));
}

type ListOf = (app: TestApp, status: never) => Promise<unknown[]>;
const readers = {
  list_instances: ['instances', instancesOf as ListOf],
  list_tasks: ['tasks', tasksOf as ListOf],
} as const;

const inProject = (operation: keyof typeof readers, as: Who, input: Paged & { status?: string } = {}): Case => {
  const [what, read] = readers[operation];
  const { status = null, ...paged } = input;
  return {
    name: `as ${as}, with ${JSON.stringify(input)}`,
    operation,
    status: 200,
    as,
    input: { ...input },
    prepare: async (app) => {
      const all = await read(app, status as never);
      if (status !== 'deleted' && all.length < 2) throw new Error('the demo has too few for this case');
      return { body: envelope(computePath(app, what), all, paged, status ? `status=${status}&` : '') };
    },
  };
};

const none = (operation: keyof typeof readers): Case => ({
  name: 'an empty project',
  operation,
  status: 200,
  prepare: async (app) => {
    const projectId = await makeProject(app);
    return { place: { project_id: projectId }, body: envelope(computePath(app, readers[operation][0], projectId), []) };
  },
});

const one = (as: Who, which: 'eligible' | 'instance_not_active'): Case => ({
  name: `${as} sees ${which}`,
  operation: 'get_instance',
  status: 200,
  as,
  prepare: async (app) => {
    const instance_id = app.demo.instances[which];
    return { place: { instance_id }, body: (await instancesOf(app, null)).find(({ id }) => id === instance_id) };
  },
});

const atLeastOne = ['Ensure this value is greater than or equal to 1.'];
const notInteger = ['A valid integer is required.'];
const lists = ['list_organizations', 'list_projects', 'list_instances', 'list_tasks'] as const;

/** What no page is, of each of the lists. */
const badPages = lists.flatMap((operation): Case[] => [
  { name: 'page 0', operation, status: 400, input: { page: 0, page_size: -1 }, fields: { page: atLeastOne, page_size: atLeastOne } },
  { name: 'no numbers', operation, status: 400, input: { page: 'x', page_size: '' }, fields: { page: notInteger, page_size: notInteger } },
  { name: 'a page past the end', operation, status: 404, input: { page: 99, page_size: 100 }, refusal: refusals.notFound },
]);

const badStatus = (operation: keyof typeof readers): Case => ({
  name: 'a status that there is not',
  operation,
  status: 400,
  input: { status: 'lost', page: 0 },
  fields: { page: atLeastOne, status: ['"lost" is not a valid choice.'] },
});

export const findingCases: readonly Case[] = [
  organizations('those of the owner', 'owner', 'owner'),
  organizations('those of a member, by key', 'viewer by key', 'viewer'),
  organizations('those of a user of another one', 'outsider', 'outsider'),
  projects('owner', 'admin', true),
  projects('admin by key', 'admin', true),
  projects('member', 'member', false),
  projects('viewer', 'viewer', false),
  ...[1, 2].map(
    (page): Case => ({
      name: `page ${page} of two`,
      operation: 'list_projects',
      status: 200,
      as: 'admin',
      input: { page, page_size: 2 },
      prepare: (app) => pagedOrganization(app, page),
    }),
  ),
  inProject('list_instances', 'owner'),
  inProject('list_instances', 'viewer', { page: 2, page_size: 7 }),
  inProject('list_instances', 'member by key', { status: 'suspended' }),
  inProject('list_instances', 'viewer', { status: 'deleted' }),
  inProject('list_instances', 'viewer', { status: 'active', page: 2, page_size: 3 }),
  inProject('list_tasks', 'owner'),
  inProject('list_tasks', 'viewer', { page: 3, page_size: 2 }),
  inProject('list_tasks', 'member by key', { status: 'failed' }),
  none('list_instances'),
  none('list_tasks'),
  one('owner', 'eligible'),
  one('viewer by key', 'instance_not_active'),
  {
    name: 'an instance of another project of the same organization',
    operation: 'get_instance',
    status: 404,
    place: { project_id: ids.emptyProject.id },
    refusal: refusals.notFound,
  },
  ...badPages,
  badStatus('list_instances'),
  badStatus('list_tasks'),
];
