import { expect } from 'vitest';
import type { Dashboard, ProjectRole } from '../../../src/generated/prisma/client.ts';
import type { TestApp } from '../../support/app.ts';
import { type Attempt, type Case, refusals, type Who } from '../../support/doors.ts';
import { anyMoment, anyUuid } from '../../support/exact.ts';
import { ABSENT_ID, ids, makeDashboard, makeProject } from '../../support/fixtures.ts';
import { dashboardBody } from './dashboards.ts';

/** Keys that are out of order, null, empty, numeric and not of this plane: all of it comes back as it went. */
export const oddWidgets = { zebra: [null, { b: 1, a: [] }], 'Größe 📈': -0.5, empty: '', 10: true, 9: false };

const base = { description: '', widgets: [], is_default: false, is_public: false };

/** A project of its own for each call, in which the member and the viewer have these roles, and one dashboard in it. */
const inProject =
  (data: Partial<Dashboard> = {}, roles: { member?: ProjectRole; viewer?: ProjectRole } = { member: 'member', viewer: 'viewer' }) =>
  async (app: TestApp) => {
    const projectId = await makeProject(app, roles);
    const dashboard = await makeDashboard(app, projectId, data);
    return { projectId, dashboard, place: { project_id: projectId, dashboard_id: dashboard.id } };
  };

const created = (name: string, input: Readonly<Record<string, unknown>>, as: Who = 'member'): Case => ({
  name,
  operation: 'create_dashboard',
  status: 201,
  as,
  input,
  etag: 1,
  async prepare(app) {
    const projectId = await makeProject(app, { member: 'member' });
    const createdBy = ids.users[as.split(' ')[0] as keyof typeof ids.users].id;
    const { name, description, widgets, is_default, is_public } = { ...base, name: '', ...input };
    const head = { id: anyUuid, name, organization: ids.organization.id, created_by: createdBy, created: anyMoment, modified: anyMoment };
    return { place: { project_id: projectId }, body: { ...head, description, project: projectId, widgets, is_default, is_public } };
  },
  async check({ app }, { body }, answered) {
    expect(answered.created).toBe(answered.modified);
    const row = await app.database.prisma.dashboard.findUniqueOrThrow({ where: { id: String(answered.id) } });
    expect({ ...dashboardBody(row), created: anyMoment, modified: anyMoment, id: anyUuid }).toEqual(body);
  },
});

/** What a PUT leaves alone, and what it replaces; what the input does not name returns to its default. */
const replaced = (name: string, input: Readonly<Record<string, unknown>>, rest: Partial<Case> = {}): Case => ({
  name,
  operation: 'update_dashboard',
  status: 200,
  as: 'member',
  input,
  etag: 6,
  async prepare(app) {
    const { place, dashboard } = await inProject()(app);
    const { id, organization, created_by, created } = dashboardBody(dashboard);
    const { name, description, widgets, is_default, is_public } = { ...base, name: '', ...input };
    const head = { id, name, organization, created_by, created, modified: anyMoment };
    return { place, body: { ...head, description, project: place.project_id, widgets, is_default, is_public } };
  },
  async check({ app }, { place, body }, answered) {
    const row = await app.database.prisma.dashboard.findUniqueOrThrow({ where: { id: String(place?.dashboard_id) } });
    expect({ ...dashboardBody(row), modified: anyMoment }).toEqual(body);
    expect(Math.abs(Date.parse(String(answered.modified)) - Date.now())).toBeLessThan(60_000);
  },
  ...rest,
});

const blank = ['This field may not be blank.'];
const notNull = ['This field may not be null.'];
const notString = ['Not a valid string.'];
const notBoolean = ['Must be a valid boolean.'];

const invalidContents: Readonly<Record<string, Pick<Attempt, 'input' | 'fields'>>> = {
  'no body': { input: undefined, fields: { name: ['This field is required.'] } },
  'no name': { input: { description: 'x' }, fields: { name: ['This field is required.'] } },
  'an empty name': { input: { name: '' }, fields: { name: blank } },
  'a name of white space': { input: { name: ' \t\u00a0' }, fields: { name: blank } },
  'a name that is too long': { input: { name: 'n'.repeat(256) }, fields: { name: ['Ensure this field has no more than 255 characters.'] } },
  'null wherever it is not a value': {
    input: { name: null, description: null, widgets: null, is_default: null, is_public: null },
    fields: { name: notNull, description: notNull, is_default: notNull, is_public: notNull },
  },
  'the wrong type everywhere': {
    input: { name: 5, description: ['x'], is_default: 'yes', is_public: 1 },
    fields: { name: notString, description: notString, is_default: notBoolean, is_public: notBoolean },
  },
};

const invalid = Object.entries(invalidContents).flatMap(([name, attempt]): Case[] => [
  { name, operation: 'create_dashboard', status: 400, ...attempt },
  { name, operation: 'update_dashboard', status: 400, ...attempt },
]);

const otherOwn = async (app: TestApp) => ({ ...(await inProject()(app)), other: await makeProject(app, { member: 'member' }) });
const cannotMove = { project: ['Not a project that the dashboard can be moved to.'] };
const refusedMove = (name: string, target: (app: TestApp) => Promise<string>, rest: Partial<Case> = {}): Case => ({
  name: `a move to ${name}`,
  operation: 'update_dashboard',
  status: 400,
  as: 'member',
  fields: cannotMove,
  async prepare(app) {
    const { place } = await inProject()(app);
    return { place, input: { name: 'Moved', project: await target(app) } };
  },
  ...rest,
});

/** A project with as many dashboards as it may have. */
async function fullProject(app: TestApp): Promise<string> {
  const projectId = await makeProject(app, { member: 'member' });
  await app.app.database.prisma.$executeRaw`
    INSERT INTO dashboards (project_id, created_by, name)
    SELECT ${projectId}::uuid, ${ids.users.member.id}::uuid, 'One of many' FROM generate_series(1, 1000)`;
  return projectId;
}

const full = {
  status: 409,
  as: 'member',
  refusal: {
    detail: 'The project has as many dashboards as it may have.',
    code: 'conflict',
    context: { quota: 'dashboards_per_project', limit: 1000 },
  },
} as const;

export const dashboardChangeCases: readonly Case[] = [
  created('a name alone', { name: 'Fresh' }),
  created('everything', { name: 'Fresh', description: 'Für alle ☂', widgets: oddWidgets, is_default: true, is_public: true }, 'owner'),
  created('by an API key', { name: 'n'.repeat(255), is_public: true }, 'member by key'),
  created('null is a value for widgets', { name: 'Null', widgets: null }),
  created('widgets that are a text', { name: 'Text', widgets: 'not parsed: {"a":1}' }),
  ...invalid,
  {
    name: 'a viewer',
    operation: 'create_dashboard',
    status: 403,
    as: 'viewer',
    input: { name: 'Refused' },
    refusal: refusals.forbidden,
  },
  {
    name: 'fields before the role',
    operation: 'create_dashboard',
    status: 400,
    as: 'viewer',
    input: { name: '' },
    fields: { name: blank },
  },
  {
    ...full,
    name: 'one more than the project may have',
    operation: 'create_dashboard',
    input: { name: 'Refused' },
    prepare: async (app) => ({ place: { project_id: await fullProject(app) } }),
  },
  {
    ...full,
    name: 'a default that is one too many',
    operation: 'create_dashboard',
    input: { name: 'Refused', is_default: true },
    prepare: async (app) => ({ place: { project_id: await fullProject(app) } }),
  },
  {
    ...full,
    name: 'a move to a project that is full',
    operation: 'update_dashboard',
    async prepare(app) {
      const { place } = await inProject()(app);
      return { place, input: { name: 'Refused', project: await fullProject(app) } };
    },
    async check({ app }, { place }) {
      const row = await app.database.prisma.dashboard.findUniqueOrThrow({ where: { id: String(place?.dashboard_id) } });
      expect(row).toMatchObject({ name: 'Before', version: 5, projectId: place?.project_id });
    },
  },

  replaced('what is left out returns to its default', { name: 'After' }),
  replaced('everything', { name: 'After', description: 'New', widgets: oddWidgets, is_default: true, is_public: true }),
  replaced('null is a value for widgets', { name: 'After', widgets: null }),
  replaced('another’s, by an admin', { name: 'After' }, { as: 'admin by key' }),
  replaced('the version that was expected', { name: 'After' }, { version: 5 }),
  replaced(
    'its own project',
    { name: 'After' },
    {
      async prepare(app) {
        const { place, ...rest } = (await replaced('', { name: 'After' }).prepare?.(app)) ?? {};
        return { ...rest, place, input: { name: 'After', project: String(place?.project_id).toUpperCase() } };
      },
    },
  ),
  {
    name: 'a move to another project in which the caller may edit',
    operation: 'update_dashboard',
    status: 200,
    as: 'member',
    etag: 6,
    async prepare(app) {
      const { place, dashboard, other } = await otherOwn(app);
      const after = { ...dashboardBody(dashboard), ...base, name: 'Moved', modified: anyMoment, project: other };
      return { place, input: { name: 'Moved', project: other }, body: after };
    },
    async check({ app }, { place, input }) {
      const row = await app.database.prisma.dashboard.findUniqueOrThrow({ where: { id: String(place?.dashboard_id) } });
      expect(row.projectId).toBe(input?.project);
    },
  },
  {
    name: 'a move to null',
    operation: 'update_dashboard',
    status: 400,
    input: { name: 'Moved', project: null },
    fields: { project: notNull },
  },
  {
    name: 'a move to a malformed id',
    operation: 'update_dashboard',
    status: 400,
    input: { name: '', project: 'sandbox' },
    fields: { name: blank, project: ['Must be a valid UUID.'] },
  },
  refusedMove('a project of another organization', async () => ids.foreignProject.id),
  refusedMove('a project that does not exist', async () => ABSENT_ID),
  refusedMove('a project that does not list the caller', async () => ids.emptyProject.id),
  refusedMove('a project in which the caller may only read', (app) => makeProject(app, { member: 'viewer' })),
  refusedMove('a project that does not exist: the fields before the role', async () => ABSENT_ID, { as: 'viewer' }),
  refusedMove('a project that does not exist: the fields before the version', async () => ABSENT_ID, { version: 4 }),
  ...(['update_dashboard', 'delete_dashboard'] as const).flatMap((operation): Case[] => {
    const input = operation === 'update_dashboard' ? { name: 'Refused' } : undefined;
    const refused = (name: string, status: 403 | 404 | 409, as: Who, rest: Partial<Case>): Case => ({
      name,
      operation,
      status,
      as,
      input,
      refusal: status === 403 ? refusals.forbidden : refusals.notFound,
      prepare: inProject(),
      ...rest,
      check: async ({ app }, { place }) => {
        const row = await app.database.prisma.dashboard.findUniqueOrThrow({ where: { id: String(place?.dashboard_id) } });
        expect(row).toMatchObject({ name: 'Before', version: 5 });
      },
    });
    const byAdmin = { createdById: ids.users.admin.id };
    const stale = {
      refusal: {
        detail: 'The dashboard has been changed since the expected version.',
        code: 'conflict',
        context: { version: 5 },
      },
    };
    return [
      refused('a public one, by a viewer', 403, 'viewer', {}),
      refused('a public one of another, by a member', 403, 'member', { prepare: inProject(byAdmin) }),
      refused('one’s own, by now as a viewer', 403, 'member', { prepare: inProject({ isPublic: false }, { member: 'viewer' }) }),
      refused('a private one of another, by a member', 404, 'member', { prepare: inProject({ ...byAdmin, isPublic: false }) }),
      refused('a private one of another, by a viewer', 404, 'viewer', { prepare: inProject({ isPublic: false }) }),
      refused('the role before the version', 403, 'viewer', { version: 4 }),
      ...(operation === 'delete_dashboard'
        ? []
        : [
            refused('a private one, to a project that does not exist', 404, 'viewer', {
              input: { name: 'Refused', project: ABSENT_ID },
              prepare: inProject({ isPublic: false }),
            }),
            refused('another’s, to a project in which the caller may edit', 403, 'member', {
              async prepare(app) {
                const { place } = await inProject(byAdmin)(app);
                return { place, input: { name: 'Refused', project: await makeProject(app, { member: 'member' }) } };
              },
            }),
          ]),
      refused('a version that has passed', 409, 'member', { version: 4, ...stale }),
      refused('a version that has not come', 409, 'owner', { version: 6, ...stale }),
    ];
  }),

  { name: 'one’s own', operation: 'delete_dashboard', status: 204, as: 'member', prepare: inProject(), check: expectGone },
  { name: 'another’s, by an admin', operation: 'delete_dashboard', status: 204, as: 'admin', prepare: inProject(), check: expectGone },
  {
    name: 'at the version that was expected',
    operation: 'delete_dashboard',
    status: 204,
    version: 5,
    prepare: inProject({ isPublic: false }),
    check: expectGone,
  },
];

async function expectGone({ app }: TestApp, { place }: Attempt) {
  expect(await app.database.prisma.dashboard.findUnique({ where: { id: String(place?.dashboard_id) } })).toBeNull();
}
