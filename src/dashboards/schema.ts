import type { InProject, ProjectScope } from '../access/scope.ts';
import type { CheckAccess } from '../graph/accesscheck.ts';
import { builder, type InputFields } from '../graph/builder.ts';
import { implementConnection } from '../graph/connectionfield.ts';
import type { Context } from '../graph/context.ts';
import { pageCost } from '../graph/cost.ts';
import { type FieldReader, openReader, withoutHeavyFields } from '../graph/fieldreader.ts';
import { idempotencyKey, runIdempotently } from '../graph/idempotency.ts';
import { boundsOf, boundsOfPage, resolveList } from '../graph/keyset.ts';
import { NodeRef, registerNode } from '../graph/node.ts';
import { implementOrder, orderedKeyset } from '../graph/order.ts';
import { implementPage, pageArgs } from '../graph/pagefield.ts';
import { ProjectRef, projectFields } from '../graph/project.ts';
import { loadMember, UserRef } from '../graph/user.ts';
import { Fault } from '../kernel/fault.ts';
import { resolvePage } from '../kernel/page.ts';
import { parseUuid } from '../kernel/uuid.ts';
import { countDashboards, defaultDashboardOrder, findDashboards, listDashboards, listOrderedDashboards } from './read.ts';
import { type Dashboard, heavyFields } from './row.ts';
import { createDashboard, deleteDashboard, patchDashboard, updateDashboard } from './service.ts';

const DashboardRef = builder.objectRef<Dashboard>('Dashboard').implement({
  description: 'A monitoring dashboard. Public ones are visible to everyone in the project, others to their creator and admins.',
  interfaces: [NodeRef],
  fields: (t) => ({
    id: t.exposeID('id', { description: 'The id of the dashboard, which does not change when it moves to another project.' }),
    organizationId: t.exposeID('organizationId', { description: 'The id of the organization of its project.' }),
    projectId: t.exposeID('projectId', { description: 'The id of the project that it belongs to.' }),
    createdById: t.exposeID('createdById', { description: 'The id of the user who created it.' }),
    createdBy: t.field({
      type: UserRef,
      nullable: true,
      description: 'The user who created it; null if they have left the organization.',
      resolve: (dashboard, _args, context) => loadMember(context, dashboard, dashboard.createdById),
    }),
    project: t.field({
      type: ProjectRef,
      description: 'The project that it belongs to.',
      resolve: ({ projectId, organizationId }, _args, context) => context.openProject({ organizationId, projectId }),
    }),
    name: t.exposeString('name', { description: 'At most 255 characters.' }),
    description: t.exposeString('description', { description: 'Empty if there is none.' }),
    widgets: t.expose('widgets', {
      type: 'JSON',
      nullable: true,
      description: 'The configuration of the widgets: any JSON value, as it was sent.',
    }),
    isDefault: t.exposeBoolean('isDefault', {
      description: 'Whether it is the default dashboard of the project, of which there is at most one.',
    }),
    isPublic: t.exposeBoolean('isPublic', { description: 'Whether it is visible to everyone in the project.' }),
    version: t.exposeInt('version', { description: 'The version, which every change increments: pass it as `expectedVersion`.' }),
    created: t.expose('created', { type: 'DateTime', description: 'When it was created.' }),
    modified: t.expose('modified', { type: 'DateTime', description: 'When it was last changed.' }),
  }),
});

registerNode('Dashboard', { inProject: findDashboards, heavyFields });

const DashboardConnection = implementConnection('Dashboard', DashboardRef);
const DashboardOrder = implementOrder('Dashboard', ['name', 'created']);
const DashboardPage = implementPage('DashboardPage', DashboardRef);

const readDashboards: typeof listOrderedDashboards = (database, scopes, order, slice, reader) =>
  order.field === 'id'
    ? listDashboards(database, scopes, boundsOf(slice, 'asc'), reader)
    : listOrderedDashboards(database, scopes, order, slice, reader);

/** Throws `not_found` for a dashboard that is absent, in another project, or hidden from the viewer. */
async function getDashboard(context: Context, { scope, id: text }: InProject, reader: FieldReader): Promise<Dashboard> {
  const id = parseUuid(text);
  const dashboard = id && (await context.loadInScope(findDashboards, scope.projectId, id, reader));
  if (!dashboard) throw Fault.notFound();
  return dashboard;
}

builder.objectFields(ProjectRef, (t) => ({
  dashboards: t.connection(
    {
      type: DashboardRef,
      description: 'The dashboards that the viewer may see, the oldest first by default.',
      args: { orderBy: t.arg({ type: DashboardOrder, description: 'The order of the list.' }) },
      resolve: (scope, { orderBy, ...args }, context, info) => {
        const order = orderBy ?? defaultDashboardOrder;
        const reader = openReader(context, info, heavyFields);
        const count = () => context.loadByProject(countDashboards, scope);
        return resolveList({ args, ...orderedKeyset(order), count }, (slice) =>
          context.loadByProject(readDashboards, scope, order, slice, reader),
        );
      },
    },
    DashboardConnection,
  ),
  dashboardPage: t.field({
    type: DashboardPage,
    description: 'The dashboards that the viewer may see, the oldest first, by page.',
    complexity: pageCost,
    args: pageArgs(t),
    resolve(scope, paging, context, info) {
      const reader = openReader(context, info, heavyFields);
      return resolvePage(
        paging,
        () => context.loadByProject(countDashboards, scope),
        (range) => context.loadByProject(listDashboards, scope, boundsOfPage(range), reader),
      );
    },
  }),
  dashboard: t.field({
    type: DashboardRef,
    nullable: true,
    description: 'One dashboard; `not_found` if the viewer may not see it.',
    args: { id: t.arg.id({ required: true, description: 'The id of the dashboard.' }) },
    resolve: (scope, { id }, context, info) => getDashboard(context, { scope, id }, openReader(context, info, heavyFields)),
  }),
}));

const dashboardFields = (t: InputFields) => ({
  ...projectFields(t),
  projectId: t.id({ required: true, description: 'The id of the project that the dashboard is in.' }),
  id: t.id({ required: true, description: 'The id of the dashboard.' }),
});
const expectedVersion = (t: InputFields) => t.int({ description: 'Fails with `conflict` if the dashboard has another version.' });
/** The content of a dashboard, with a default for each field that may be omitted. */
const contentFields = (t: InputFields) => ({
  name: t.field({ type: 'Name', required: true, description: '1 to 255 characters, not blank.', extensions: { maxLength: 255 } }),
  description: t.field({
    type: 'Text',
    required: true,
    defaultValue: '',
    description: 'At most 10000 characters. Empty if omitted.',
    extensions: { maxLength: 10_000 },
  }),
  widgets: t.field({
    type: 'JSON',
    description:
      'The configuration of the widgets: any JSON value of up to 256 KiB, in a request body with at most 25,000 lists, objects and ' +
      'fields. An empty list if omitted.',
  }),
  isDefault: t.boolean({
    required: true,
    defaultValue: false,
    description: 'Makes it the default dashboard of the project, in place of the current one.',
  }),
  isPublic: t.boolean({ required: true, defaultValue: false, description: 'Makes it visible to everyone in the project.' }),
});

const CreateDashboardInput = builder.inputType('CreateDashboardInput', {
  description: 'The dashboard to create.',
  fields: (t) => ({
    ...projectFields(t),
    ...contentFields(t),
    idempotencyKey: idempotencyKey(t),
  }),
});

const UpdateDashboardInput = builder.inputType('UpdateDashboardInput', {
  description: 'The new content of the dashboard: omitted fields return to their defaults.',
  fields: (t) => ({
    ...dashboardFields(t),
    ...contentFields(t),
    project: t.field({
      type: 'UUID',
      description: 'The id of the project to move to: one of the same organization in which the caller may edit dashboards. Not null.',
      extensions: { rejectsNull: true },
    }),
    expectedVersion: expectedVersion(t),
    idempotencyKey: idempotencyKey(t),
  }),
});

const PatchDashboardInput = builder.inputType('PatchDashboardInput', {
  description: 'Changes to a dashboard: omitted fields do not change.',
  fields: (t) => ({
    ...dashboardFields(t),
    name: t.field({
      type: 'Name',
      description: '1 to 255 characters, not blank. Not null.',
      extensions: { maxLength: 255, rejectsNull: true },
    }),
    description: t.field({
      type: 'Text',
      description: 'At most 10000 characters. Not null.',
      extensions: { maxLength: 10_000, rejectsNull: true },
    }),
    widgets: t.field({
      type: 'JSON',
      description:
        'The configuration of the widgets: any JSON value of up to 256 KiB, in a request body with at most 25,000 lists, objects and fields.',
    }),
    isDefault: t.boolean({
      description: 'Makes it the default dashboard of the project, in place of the current one. Not null.',
      extensions: { rejectsNull: true },
    }),
    isPublic: t.boolean({ description: 'Makes it visible to everyone in the project. Not null.', extensions: { rejectsNull: true } }),
    project: t.field({
      type: 'UUID',
      description:
        'The id of the project to move to: one of the same organization in which the caller may edit dashboards. Not null. A ' +
        'dashboard that moves is not the default there, unless `isDefault` is true.',
      extensions: { rejectsNull: true },
    }),
    expectedVersion: expectedVersion(t),
    idempotencyKey: idempotencyKey(t),
  }),
});

const DeleteDashboardInput = builder.inputType('DeleteDashboardInput', {
  description: 'The dashboard to delete.',
  fields: (t) => ({
    ...dashboardFields(t),
    expectedVersion: expectedVersion(t),
    idempotencyKey: idempotencyKey(t),
  }),
});

const CreateDashboardPayload = builder.simpleObject('CreateDashboardPayload', {
  description: 'The result of `createDashboard`.',
  fields: (t) => ({ dashboard: t.field({ type: DashboardRef, description: 'The created dashboard.' }) }),
});
const UpdateDashboardPayload = builder.simpleObject('UpdateDashboardPayload', {
  description: 'The result of `updateDashboard`.',
  fields: (t) => ({ dashboard: t.field({ type: DashboardRef, description: 'The dashboard after the change.' }) }),
});
const PatchDashboardPayload = builder.simpleObject('PatchDashboardPayload', {
  description: 'The result of `patchDashboard`.',
  fields: (t) => ({ dashboard: t.field({ type: DashboardRef, description: 'The dashboard after the change.' }) }),
});
/** The id of a deleted dashboard, and the scope in which it was deleted. */
interface Deletion {
  readonly scope: ProjectScope;
  readonly deletedId: string;
}

const DeleteDashboardPayload = builder.objectRef<Deletion>('DeleteDashboardPayload').implement({
  description: 'The result of `deleteDashboard`.',
  fields: (t) => ({
    deletedId: t.exposeID('deletedId', { description: 'The id of the deleted dashboard.' }),
    project: t.expose('scope', { type: ProjectRef, description: 'The project that it belonged to.' }),
  }),
});

const checkDashboardAccess: CheckAccess = async ({ organizationId = '', projectId = '', id = '' }, context) =>
  getDashboard(context, { scope: await context.openProject({ organizationId, projectId }), id }, withoutHeavyFields);

builder.mutationFields((t) => ({
  createDashboard: t.field({
    type: CreateDashboardPayload,
    nullable: true,
    description: 'Creates a monitoring dashboard. Needs the role `member`.',
    args: { input: t.arg({ type: CreateDashboardInput, required: true, description: 'The dashboard to create.' }) },
    resolve: (_root, { input }, context, info) =>
      runIdempotently({ input, context, info }, async ({ openProject, services }) => ({
        dashboard: await createDashboard(await openProject(input), input, services.quotas.dashboardsPerProject),
      })),
  }),
  updateDashboard: t.field({
    type: UpdateDashboardPayload,
    nullable: true,
    description: 'Replaces a monitoring dashboard. Needs the role `member` for one’s own dashboards, `admin` for others.',
    args: { input: t.arg({ type: UpdateDashboardInput, required: true, description: 'The new content.' }) },
    extensions: { checkAccess: checkDashboardAccess },
    resolve: (_root, { input }, context, info) =>
      runIdempotently({ input, context, info }, async ({ openProject, services }) => ({
        dashboard: await updateDashboard(await openProject(input), input, services.quotas.dashboardsPerProject),
      })),
  }),
  patchDashboard: t.field({
    type: PatchDashboardPayload,
    nullable: true,
    description:
      'Changes only the given fields of a monitoring dashboard. Needs the role `member` for one’s own dashboards, `admin` for others.',
    args: { input: t.arg({ type: PatchDashboardInput, required: true, description: 'The changes.' }) },
    extensions: { checkAccess: checkDashboardAccess },
    resolve: (_root, { input }, context, info) =>
      runIdempotently({ input, context, info }, async ({ openProject, services }) => ({
        dashboard: await patchDashboard(await openProject(input), input, services.quotas.dashboardsPerProject),
      })),
  }),
  deleteDashboard: t.field({
    type: DeleteDashboardPayload,
    nullable: true,
    description: 'Deletes a monitoring dashboard. Needs the role `member` for one’s own dashboards, `admin` for others.',
    args: { input: t.arg({ type: DeleteDashboardInput, required: true, description: 'The dashboard to delete.' }) },
    extensions: { checkAccess: checkDashboardAccess },
    resolve: async (_root, { input }, context, info) => {
      const deletion = await runIdempotently({ input, context, info }, async ({ openProject }) =>
        deleteDashboard(await openProject(input), input),
      );
      return deletion && { ...deletion, scope: await context.openProject(input) };
    },
  }),
}));
