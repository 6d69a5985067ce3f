import { dashboardRows, dashboards } from '../../../demo/dashboards.ts';
import type { Dashboard } from '../../../src/generated/prisma/client.ts';
import type { TestApp } from '../../support/app.ts';
import { type Attempt, type Case, refusals, type Who } from '../../support/doors.ts';
import { ids, makeDashboard, makeProject, seededAt } from '../../support/fixtures.ts';

type Row = Pick<
  Dashboard,
  'id' | 'projectId' | 'createdById' | 'name' | 'description' | 'isDefault' | 'isPublic' | 'created' | 'modified'
> & {
  readonly widgets: unknown;
};

/** §2.3, in its order. */
export const dashboardBody = (row: Row) => ({
  id: row.id,
  name: row.name,
  organization: ids.organization.id,
  created_by: row.createdById,
  created: row.created.toISOString(),
  modified: row.modified.toISOString(),
  description: row.description,
  project: row.projectId,
  widgets: row.widgets,
  is_default: row.isDefault,
  is_public: row.isPublic,
});

/** The demo's own dashboards, in the order of their ids, those named. */
async function demoBodies(app: TestApp, ...wanted: string[]) {
  const rows = dashboardRows(await seededAt(app)) as unknown as Row[];
  return rows.filter(({ id }) => wanted.includes(id)).map(dashboardBody);
}

const envelope = (results: readonly unknown[]) => ({
  count: results.length,
  next: null,
  previous: null,
  page: 1,
  page_size: 20,
  total_pages: 1,
  results,
});

const listed = (as: Who, ...wanted: string[]): Case => ({
  name: `what ${as} may see`,
  operation: 'list_dashboards',
  status: 200,
  as,
  prepare: async (app) => ({ body: envelope(await demoBodies(app, ...wanted)) }),
});

/** Four dashboards, by pages of three. */
async function pagedProject(app: TestApp, page: number): Promise<Attempt> {
  const projectId = await makeProject(app);
  const rows: Dashboard[] = [];
  for (const name of ['A', 'B', 'C', 'D']) rows.push(await makeDashboard(app, projectId, { name }));
  // The ids of one millisecond are in no order.
  rows.sort((one, other) => (one.id < other.id ? -1 : 1));
  const path = `${app.baseUrl}/v1/organizations/${ids.organization.id}/projects/${projectId}/monitoring/dashboards`;
  return {
    place: { project_id: projectId },
    body: {
      count: 4,
      next: page === 1 ? `${path}?page=2&page_size=3` : null,
      previous: page === 2 ? `${path}?page=1&page_size=3` : null,
      page,
      page_size: 3,
      total_pages: 2,
      results: rows.slice(page * 3 - 3, page * 3).map(dashboardBody),
    },
  };
}

const atLeastOne = ['Ensure this value is greater than or equal to 1.'];
const notInteger = ['A valid integer is required.'];
const badPage = (input: Case['input'], fields: Case['fields']): Case => ({
  name: `the paging ${JSON.stringify(input)}`,
  operation: 'list_dashboards',
  status: 400,
  input,
  fields,
});

const shown = (as: Who, id: string, etag: number): Case => ({
  name: `${as} sees ${Object.entries(dashboards).find(([, known]) => known === id)?.[0]}`,
  operation: 'get_dashboard',
  status: 200,
  as,
  place: { dashboard_id: id },
  etag,
  prepare: async (app) => ({ body: (await demoBodies(app, id))[0] }),
});

const hidden = (as: Who, id: string): Case => ({
  name: `${as} may not know of another’s private one`,
  operation: 'get_dashboard',
  status: 404,
  as,
  place: { dashboard_id: id },
  refusal: refusals.notFound,
});

const { default: operations, public: traffic, private: nightShift } = dashboards;

/** What may be read. The demo's three: the default of the admin, the public one of the member, the private one of the owner. */
export const dashboardReadCases: readonly Case[] = [
  listed('owner', operations, traffic, nightShift),
  listed('admin by key', operations, traffic, nightShift),
  listed('member', operations, traffic),
  listed('viewer', operations, traffic),
  {
    name: 'an empty project',
    operation: 'list_dashboards',
    status: 200,
    place: { project_id: ids.emptyProject.id },
    body: envelope([]),
  },
  {
    name: 'the first page of two',
    operation: 'list_dashboards',
    status: 200,
    input: { page: 1, page_size: 3 },
    prepare: (app) => pagedProject(app, 1),
  },
  {
    name: 'the last page of two',
    operation: 'list_dashboards',
    status: 200,
    input: { page: 2, page_size: 3 },
    prepare: (app) => pagedProject(app, 2),
  },
  {
    name: 'a page of more than a hundred is cut',
    operation: 'list_dashboards',
    status: 200,
    as: 'viewer',
    input: { page_size: 101 },
    prepare: async (app) => ({ body: { ...envelope(await demoBodies(app, operations, traffic)), page_size: 100 } }),
  },
  { name: 'a page past the end', operation: 'list_dashboards', status: 404, input: { page: 2 }, refusal: refusals.notFound },
  badPage({ page: 0 }, { page: atLeastOne }),
  badPage({ page: -1, page_size: 0 }, { page: atLeastOne, page_size: atLeastOne }),
  badPage({ page: 'two', page_size: 1.5 }, { page: notInteger, page_size: notInteger }),
  badPage({ page: '' }, { page: notInteger }),

  shown('owner', nightShift, 1),
  shown('admin', nightShift, 1),
  shown('admin by key', operations, 4),
  shown('member', operations, 4),
  shown('viewer', traffic, 2),
  hidden('member', nightShift),
  hidden('viewer', nightShift),
  { ...hidden('owner', ids.users.owner.id), name: 'an id of something else' },
  {
    name: 'one of another project of the same organization',
    operation: 'get_dashboard',
    status: 404,
    place: { project_id: ids.emptyProject.id, dashboard_id: traffic },
    refusal: refusals.notFound,
  },
];
