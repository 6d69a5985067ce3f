import { builder } from '../graph/builder.ts';
import { resolveKeyset } from '../graph/connection.ts';
import { implementPage, pageArgs } from '../graph/page.ts';
import { ProjectRef } from '../graph/project.ts';
import { parseUuid } from '../kernel/uuid.ts';
import {
  createDashboard,
  type Dashboard,
  deleteDashboard,
  getDashboard,
  listDashboards,
  pageDashboards,
  updateDashboard,
} from './service.ts';

const DashboardRef = builder.objectRef<Dashboard>('Dashboard').implement({
  description: 'A monitoring dashboard. Public ones are seen by everyone in the project, others by their creator and admins.',
  fields: (t) => ({
    id: t.exposeID('id'),
    organizationId: t.exposeID('organizationId'),
    projectId: t.exposeID('projectId'),
    createdById: t.exposeID('createdById'),
    name: t.exposeString('name'),
    description: t.exposeString('description'),
    widgets: t.expose('widgets', { type: 'JSON', nullable: true, description: 'As it was sent.' }),
    isDefault: t.exposeBoolean('isDefault', { description: 'At most one a project.' }),
    isPublic: t.exposeBoolean('isPublic'),
    version: t.exposeInt('version', { description: 'Counts every change: pass it as `expectedVersion`.' }),
    created: t.expose('created', { type: 'DateTime' }),
    modified: t.expose('modified', { type: 'DateTime' }),
  }),
});

const DashboardPage = implementPage('DashboardPage', DashboardRef);

builder.objectFields(ProjectRef, (t) => ({
  dashboards: t.connection({
    type: DashboardRef,
    description: 'Those that the viewer may see, the oldest first.',
    resolve: (scope, args) =>
      resolveKeyset({ args, keyOf: (node: Dashboard) => node.id, parseKey: parseUuid }, (slice) => listDashboards(scope, slice)),
  }),
  dashboardPage: t.field({
    type: DashboardPage,
    description: 'The same list by page, as v1 shows it.',
    args: pageArgs(t),
    resolve: pageDashboards,
  }),
  dashboard: t.field({
    type: DashboardRef,
    nullable: true,
    args: { id: t.arg.id({ required: true }) },
    resolve: (scope, { id }) => getDashboard(scope, id),
  }),
}));

const CreateDashboardInput = builder.inputType('CreateDashboardInput', {
  fields: (t) => ({
    organizationId: t.id({ required: true }),
    projectId: t.id({ required: true }),
    name: t.field({ type: 'Name', required: true }),
    description: t.field({ type: 'Text', required: true, defaultValue: '' }),
    widgets: t.field({ type: 'JSON', description: 'An empty list when left out.' }),
    isDefault: t.boolean({ required: true, defaultValue: false, description: 'Takes the place of the default that there was.' }),
    isPublic: t.boolean({ required: true, defaultValue: false }),
  }),
});

const UpdateDashboardInput = builder.inputType('UpdateDashboardInput', {
  description: 'Replaces the dashboard: what is left out returns to its default.',
  fields: (t) => ({
    organizationId: t.id({ required: true }),
    projectId: t.id({ required: true }),
    id: t.id({ required: true }),
    name: t.field({ type: 'Name', required: true }),
    description: t.field({ type: 'Text', required: true, defaultValue: '' }),
    widgets: t.field({ type: 'JSON', description: 'An empty list when left out.' }),
    isDefault: t.boolean({ required: true, defaultValue: false, description: 'Takes the place of the default that there was.' }),
    isPublic: t.boolean({ required: true, defaultValue: false }),
    project: t.field({
      type: 'UUID',
      description: 'The project to move to: one of the same organization in which the viewer may edit dashboards. Not null.',
      extensions: { refusesNull: true },
    }),
    expectedVersion: t.int({ description: 'Refuses with `conflict` when the dashboard is not at this version.' }),
  }),
});

const DeleteDashboardInput = builder.inputType('DeleteDashboardInput', {
  fields: (t) => ({
    organizationId: t.id({ required: true }),
    projectId: t.id({ required: true }),
    id: t.id({ required: true }),
    expectedVersion: t.int(),
  }),
});

const CreateDashboardPayload = builder.simpleObject('CreateDashboardPayload', {
  fields: (t) => ({ dashboard: t.field({ type: DashboardRef }) }),
});
const UpdateDashboardPayload = builder.simpleObject('UpdateDashboardPayload', {
  fields: (t) => ({ dashboard: t.field({ type: DashboardRef }) }),
});
const DeleteDashboardPayload = builder.simpleObject('DeleteDashboardPayload', { fields: (t) => ({ deletedId: t.id() }) });

builder.mutationFields((t) => ({
  createDashboard: t.field({
    type: CreateDashboardPayload,
    nullable: true,
    description: 'Needs the role `member`.',
    args: { input: t.arg({ type: CreateDashboardInput, required: true }) },
    resolve: async (_root, { input }, context) => ({ dashboard: await createDashboard(await context.openProject(input), input) }),
  }),
  updateDashboard: t.field({
    type: UpdateDashboardPayload,
    nullable: true,
    description: 'Needs the role `member` for one’s own dashboards, `admin` for others.',
    args: { input: t.arg({ type: UpdateDashboardInput, required: true }) },
    resolve: async (_root, { input }, context) => ({ dashboard: await updateDashboard(await context.openProject(input), input) }),
  }),
  deleteDashboard: t.field({
    type: DeleteDashboardPayload,
    nullable: true,
    description: 'Needs the role `member` for one’s own dashboards, `admin` for others.',
    args: { input: t.arg({ type: DeleteDashboardInput, required: true }) },
    resolve: async (_root, { input }, context) => deleteDashboard(await context.openProject(input), input),
  }),
}));
