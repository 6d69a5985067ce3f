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
    id: t.exposeID('id', { description: 'Stays, also when the dashboard moves.' }),
    organizationId: t.exposeID('organizationId', { description: 'The organization of its project.' }),
    projectId: t.exposeID('projectId', { description: 'The project that it belongs to.' }),
    createdById: t.exposeID('createdById', { description: 'The user who made it.' }),
    name: t.exposeString('name', { description: 'At most 255 characters.' }),
    description: t.exposeString('description', { description: 'Empty where there is none.' }),
    widgets: t.expose('widgets', {
      type: 'JSON',
      nullable: true,
      description: 'The configuration of the widgets: any JSON value, as it was sent.',
    }),
    isDefault: t.exposeBoolean('isDefault', { description: 'Whether it is the project’s default: at most one is.' }),
    isPublic: t.exposeBoolean('isPublic', { description: 'Whether everyone in the project sees it.' }),
    version: t.exposeInt('version', { description: 'Counts every change: pass it as `expectedVersion`.' }),
    created: t.expose('created', { type: 'DateTime', description: 'When it was made.' }),
    modified: t.expose('modified', { type: 'DateTime', description: 'When it was changed last.' }),
  }),
});

const DashboardPage = implementPage('DashboardPage', DashboardRef);

builder.objectFields(ProjectRef, (t) => ({
  dashboards: t.connection({
    type: DashboardRef,
    description: 'The dashboards that the viewer may see, the oldest first.',
    resolve: (scope, args) =>
      resolveKeyset({ args, keyOf: (node: Dashboard) => node.id, parseKey: parseUuid }, (slice) => listDashboards(scope, slice)),
  }),
  dashboardPage: t.field({
    type: DashboardPage,
    description: 'The dashboards that the viewer may see, the oldest first, by page.',
    args: pageArgs(t),
    resolve: pageDashboards,
  }),
  dashboard: t.field({
    type: DashboardRef,
    nullable: true,
    description: 'One dashboard. One that the viewer may not see is `not_found`.',
    args: { id: t.arg.id({ required: true, description: 'The dashboard.' }) },
    resolve: (scope, { id }) => getDashboard(scope, id),
  }),
}));

const CreateDashboardInput = builder.inputType('CreateDashboardInput', {
  description: 'A dashboard to be made.',
  fields: (t) => ({
    organizationId: t.id({ required: true, description: 'The organization that the project belongs to.' }),
    projectId: t.id({ required: true, description: 'The project.' }),
    name: t.field({ type: 'Name', required: true, description: '1 to 255 characters, not blank.' }),
    description: t.field({ type: 'Text', required: true, defaultValue: '', description: 'Empty when left out.' }),
    widgets: t.field({
      type: 'JSON',
      description: 'The configuration of the widgets: any JSON value of up to 256 KiB. An empty list when left out.',
    }),
    isDefault: t.boolean({
      required: true,
      defaultValue: false,
      description: 'Makes it the project’s default, in the place of the one that there was.',
    }),
    isPublic: t.boolean({ required: true, defaultValue: false, description: 'Shows it to everyone in the project.' }),
  }),
});

const UpdateDashboardInput = builder.inputType('UpdateDashboardInput', {
  description: 'Replaces the dashboard: what is left out returns to its default.',
  fields: (t) => ({
    organizationId: t.id({ required: true, description: 'The organization that the project belongs to.' }),
    projectId: t.id({ required: true, description: 'The project.' }),
    id: t.id({ required: true, description: 'The dashboard.' }),
    name: t.field({ type: 'Name', required: true, description: '1 to 255 characters, not blank.' }),
    description: t.field({ type: 'Text', required: true, defaultValue: '', description: 'Empty when left out.' }),
    widgets: t.field({
      type: 'JSON',
      description: 'The configuration of the widgets: any JSON value of up to 256 KiB. An empty list when left out.',
    }),
    isDefault: t.boolean({
      required: true,
      defaultValue: false,
      description: 'Makes it the project’s default, in the place of the one that there was.',
    }),
    isPublic: t.boolean({ required: true, defaultValue: false, description: 'Shows it to everyone in the project.' }),
    project: t.field({
      type: 'UUID',
      description: 'The project to move to: one of the same organization in which the caller may edit dashboards. Not null.',
      extensions: { refusesNull: true },
    }),
    expectedVersion: t.int({ description: 'Refuses with `conflict` when the dashboard is not at this version.' }),
  }),
});

const DeleteDashboardInput = builder.inputType('DeleteDashboardInput', {
  description: 'A dashboard to be deleted.',
  fields: (t) => ({
    organizationId: t.id({ required: true, description: 'The organization that the project belongs to.' }),
    projectId: t.id({ required: true, description: 'The project.' }),
    id: t.id({ required: true, description: 'The dashboard.' }),
    expectedVersion: t.int({ description: 'Refuses with `conflict` when the dashboard is not at this version.' }),
  }),
});

const CreateDashboardPayload = builder.simpleObject('CreateDashboardPayload', {
  description: 'What `createDashboard` answers.',
  fields: (t) => ({ dashboard: t.field({ type: DashboardRef, description: 'The dashboard that was made.' }) }),
});
const UpdateDashboardPayload = builder.simpleObject('UpdateDashboardPayload', {
  description: 'What `updateDashboard` answers.',
  fields: (t) => ({ dashboard: t.field({ type: DashboardRef, description: 'The dashboard as it is now.' }) }),
});
const DeleteDashboardPayload = builder.simpleObject('DeleteDashboardPayload', {
  description: 'What `deleteDashboard` answers.',
  fields: (t) => ({ deletedId: t.id({ description: 'The dashboard that was deleted.' }) }),
});

builder.mutationFields((t) => ({
  createDashboard: t.field({
    type: CreateDashboardPayload,
    nullable: true,
    description: 'Makes a monitoring dashboard. Needs the role `member`.',
    args: { input: t.arg({ type: CreateDashboardInput, required: true }) },
    resolve: async (_root, { input }, context) => ({ dashboard: await createDashboard(await context.openProject(input), input) }),
  }),
  updateDashboard: t.field({
    type: UpdateDashboardPayload,
    nullable: true,
    description: 'Replaces a monitoring dashboard. Needs the role `member` for one’s own dashboards, `admin` for others.',
    args: { input: t.arg({ type: UpdateDashboardInput, required: true }) },
    resolve: async (_root, { input }, context) => ({ dashboard: await updateDashboard(await context.openProject(input), input) }),
  }),
  deleteDashboard: t.field({
    type: DeleteDashboardPayload,
    nullable: true,
    description: 'Deletes a monitoring dashboard. Needs the role `member` for one’s own dashboards, `admin` for others.',
    args: { input: t.arg({ type: DeleteDashboardInput, required: true }) },
    resolve: async (_root, { input }, context) => deleteDashboard(await context.openProject(input), input),
  }),
}));
