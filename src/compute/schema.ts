import type { InstanceStatus, TaskStatus } from '../generated/prisma/enums.ts';
import { builder, type InputFields } from '../graph/builder.ts';
import { implementConnection } from '../graph/connectionfield.ts';
import { pageCost } from '../graph/cost.ts';
import { describeValues } from '../graph/enums.ts';
import { InstanceRef, ownInstance } from '../graph/instance.ts';
import { resolveList } from '../graph/keyset.ts';
import { NodeRef, registerNode } from '../graph/node.ts';
import { implementOrder, orderedKeyset } from '../graph/order.ts';
import { implementPage, pageArgs } from '../graph/pagefield.ts';
import { ownProject, ProjectRef } from '../graph/project.ts';
import { createTextLoader } from '../graph/textloader.ts';
import type { InstanceAttention, TaskAttention } from './attention.ts';
import { countInstances, defaultInstanceOrder, findInstances, getInstance, listInstances, pageInstances } from './instances.ts';
import { countInstanceTasks, listInstanceTasks } from './instancetasks.ts';
import { readOverviews } from './overview.ts';
import { ComputeOverviewRef } from './overviewschema.ts';
import { instanceStatuses, taskStatuses } from './statuses.ts';
import { countTasks, defaultTaskOrder, findTasks, listTasks, pageTasks, readTaskErrors } from './tasks.ts';

const InstanceStatusEnum = builder.enumType('InstanceStatus', {
  description: 'The status of an instance.',
  values: describeValues<InstanceStatus>({
    provisioning: 'It is being created.',
    active: 'It is running.',
    stopped: 'It is switched off.',
    suspended: 'It is shut down until the reason for the suspension is resolved.',
    resizing: 'It is being changed to another plan.',
    rebuilding: 'It is being rebuilt from an image.',
    error: 'The last operation on it failed.',
    deleted: 'It is deleted. No figure counts it, and lists return it only if they are filtered by this status.',
  }),
});
const TaskStatusEnum = builder.enumType('TaskStatus', {
  description: 'The status of a task.',
  values: describeValues<TaskStatus>({
    pending: 'It has not started.',
    running: 'It is running.',
    succeeded: 'It has succeeded.',
    failed: 'It has failed: see `error`.',
    cancelled: 'It was cancelled.',
  }),
});
const InstanceAttentionEnum = builder.enumType('InstanceAttention', {
  description: 'Selects the instances that a figure of the overview’s `attention` counts.',
  values: describeValues<InstanceAttention>({
    without_hypervisor: 'No hypervisor is assigned to it.',
    suspended: 'It is suspended.',
    throttled: 'It is throttled.',
    cancellation_scheduled: 'Its cancellation date is in the future.',
  }),
});
const TaskAttentionEnum = builder.enumType('TaskAttention', {
  description: 'Selects the tasks that a figure of the overview’s `attention` counts.',
  values: describeValues<TaskAttention>({
    failed_24h: 'It failed within the last 24 hours.',
    stuck: 'It has not finished an hour after its creation.',
  }),
});

builder.prismaObjectFields('Instance', (t) => ({
  name: t.exposeString('name', { description: 'Its name.' }),
  status: t.expose('status', { type: InstanceStatusEnum, description: 'Its status.' }),
  plan: t.exposeString('plan', { description: 'The plan that was ordered: `vps-m`, …' }),
  region: t.exposeString('region', { description: 'The region that it runs in: `eu-central-1`, …' }),
  vcpu: t.exposeInt('vcpu', { description: 'The number of virtual processors.' }),
  ramMb: t.exposeInt('ramMb', { description: 'Memory in MiB.' }),
  storageGb: t.exposeInt('storageGb', { description: 'The size of the root disk in GB.' }),
  hypervisor: t.exposeString('hypervisor', { nullable: true, description: 'The hypervisor that it runs on; null until one is assigned.' }),
  throttled: t.exposeBoolean('throttled', { description: 'Whether it is throttled.' }),
  dailyBackup: t.exposeBoolean('dailyBackup', { description: 'Whether it is backed up daily.' }),
  cancellationAt: t.expose('cancellationAt', {
    type: 'DateTime',
    nullable: true,
    description: 'When its cancellation takes effect; null if none is scheduled.',
  }),
  created: t.expose('created', { type: 'DateTime', description: 'When it was created.' }),
  modified: t.expose('modified', { type: 'DateTime', description: 'When it was last changed.' }),
}));

const loadTaskError = createTextLoader(readTaskErrors);

const TaskRef = builder.prismaObject('Task', {
  description: 'An operation on an instance or on the project.',
  interfaces: [NodeRef],
  fields: (t) => ({
    id: t.exposeID('id', { description: 'The id of the task.' }),
    project: t.field(ownProject),
    instanceId: t.exposeID('instanceId', { nullable: true, description: 'The id of the instance; null for a task of the project.' }),
    instance: t.field(ownInstance('The instance; null for a task of the project, or if the instance no longer exists.')),
    kind: t.exposeString('kind', { description: 'The kind of operation: `instance.reboot`, … Other values may occur.' }),
    status: t.expose('status', { type: TaskStatusEnum, description: 'Its status.' }),
    error: t.string({
      description: 'The error; empty if nothing failed.',
      resolve: ({ id }, _args, context, info) => loadTaskError(context, info, id),
    }),
    created: t.expose('created', { type: 'DateTime', description: 'When it was requested.' }),
    started: t.expose('started', { type: 'DateTime', nullable: true, description: 'When it started; null before that.' }),
    finished: t.expose('finished', { type: 'DateTime', nullable: true, description: 'When it finished; null before that.' }),
  }),
});

const InstanceConnection = implementConnection('Instance', InstanceRef);
const TaskConnection = implementConnection('Task', TaskRef);

registerNode('Instance', { inProject: findInstances });
registerNode('Task', { inProject: findTasks });

const InstanceFilterInput = builder.inputType('InstanceFilter', {
  description: 'Filters a list of instances. All conditions apply.',
  fields: (t) => ({
    status: t.field({
      type: InstanceStatusEnum,
      description: 'Only those with this status. Without `status` and `statuses`, all but the deleted ones.',
    }),
    statuses: t.field({
      type: [InstanceStatusEnum],
      description:
        'Only those with one of these statuses: at most 20. An empty list is the same as none. With `status`, both conditions apply.',
      extensions: { maxItems: 20 },
    }),
    attention: t.field({ type: InstanceAttentionEnum, description: 'Only those that this figure counts.' }),
    region: t.field({ type: 'Name', description: 'Only those in this region: at most 255 characters.', extensions: { maxLength: 255 } }),
    plan: t.field({ type: 'Name', description: 'Only those with this plan: at most 255 characters.', extensions: { maxLength: 255 } }),
    namePrefix: t.field({
      type: 'Text',
      description: 'Only those whose name begins with exactly this text: at most 255 characters. An empty text matches all.',
      extensions: { maxLength: 255 },
    }),
  }),
});
const InstanceOrder = implementOrder('Instance', ['name', 'created', 'status'], instanceStatuses);

const taskStatusFields = (t: InputFields) => ({
  status: t.field({ type: TaskStatusEnum, description: 'Only those with this status.' }),
  statuses: t.field({
    type: [TaskStatusEnum],
    description:
      'Only those with one of these statuses: at most 20. An empty list is the same as none. With `status`, both conditions apply.',
    extensions: { maxItems: 20 },
  }),
});
const TaskFilterInput = builder.inputType('TaskFilter', {
  description: 'Filters a list of tasks. All conditions apply.',
  fields: (t) => ({
    ...taskStatusFields(t),
    attention: t.field({ type: TaskAttentionEnum, description: 'Only those that this figure counts.' }),
  }),
});
const InstanceTaskFilterInput = builder.inputType('InstanceTaskFilter', {
  description: 'Filters the list of an instance’s tasks. All conditions apply.',
  fields: taskStatusFields,
});
const TaskOrder = implementOrder('Task', ['created', 'status'], taskStatuses);

builder.objectFields(ProjectRef, (t) => ({
  computeOverview: t.field({
    type: ComputeOverviewRef,
    description: 'Figures of the project’s compute resources, all from the same point in time.',
    resolve: (scope, _args, context) => context.loadByProject(readOverviews, scope),
  }),
  instances: t.connection(
    {
      type: InstanceRef,
      description: 'The instances, the oldest first by default.',
      args: {
        filter: t.arg({ type: InstanceFilterInput, description: 'Only items that match this filter.' }),
        orderBy: t.arg({ type: InstanceOrder, description: 'The order of the list.' }),
      },
      resolve: (scope, { filter: given, orderBy, ...args }, context) => {
        const filter = given ?? {};
        const order = orderBy ?? defaultInstanceOrder;
        const count = () => context.loadByProject(countInstances, scope, filter);
        return resolveList({ args, ...orderedKeyset(order, instanceStatuses), count }, (slice) =>
          context.loadByProject(listInstances, scope, filter, order, slice),
        );
      },
    },
    InstanceConnection,
  ),
  instance: t.field({
    type: InstanceRef,
    nullable: true,
    description: 'One instance; `not_found` if the project has none with this id.',
    args: { id: t.arg.id({ required: true, description: 'The id of the instance.' }) },
    resolve: (scope, { id }) => getInstance(scope, id),
  }),
  tasks: t.connection(
    {
      type: TaskRef,
      description: 'The tasks, the newest first by default.',
      args: {
        filter: t.arg({ type: TaskFilterInput, description: 'Only items that match this filter.' }),
        orderBy: t.arg({ type: TaskOrder, description: 'The order of the list.' }),
      },
      resolve: (scope, { filter: given, orderBy, ...args }, context) => {
        const filter = given ?? {};
        const order = orderBy ?? defaultTaskOrder;
        const count = () => context.loadByProject(countTasks, scope, filter);
        return resolveList({ args, ...orderedKeyset(order, taskStatuses), count }, (slice) =>
          context.loadByProject(listTasks, scope, filter, order, slice),
        );
      },
    },
    TaskConnection,
  ),
}));

builder.prismaObjectField('Instance', 'tasks', (t) =>
  t.connection(
    {
      type: TaskRef,
      description: 'The tasks of the instance, the newest first by default.',
      args: {
        filter: t.arg({ type: InstanceTaskFilterInput, description: 'Only items that match this filter.' }),
        orderBy: t.arg({ type: TaskOrder, description: 'The order of the list.' }),
      },
      resolve: ({ id, projectId }, { filter: given, orderBy, ...args }, { loadInScope }) => {
        const filter = given ?? {};
        const order = orderBy ?? defaultTaskOrder;
        const count = () => loadInScope(countInstanceTasks, projectId, id, filter);
        return resolveList({ args, ...orderedKeyset(order, taskStatuses), count }, (slice) =>
          loadInScope(listInstanceTasks, projectId, id, filter, order, slice),
        );
      },
    },
    TaskConnection,
  ),
);

const InstancePage = implementPage('InstancePage', InstanceRef);
const TaskPage = implementPage('TaskPage', TaskRef);

builder.objectFields(ProjectRef, (t) => ({
  instancePage: t.field({
    type: InstancePage,
    description: 'The instances, the oldest first, by page.',
    complexity: pageCost,
    args: {
      ...pageArgs(t),
      status: t.arg({ type: InstanceStatusEnum, description: 'Only those with this status. Without it, all but the deleted ones.' }),
    },
    resolve: (scope, { status, ...paging }, context) => pageInstances(context, scope, paging, status ?? null),
  }),
  taskPage: t.field({
    type: TaskPage,
    description: 'The tasks, the newest first, by page.',
    complexity: pageCost,
    args: { ...pageArgs(t), status: t.arg({ type: TaskStatusEnum, description: 'Only those with this status.' }) },
    resolve: (scope, { status, ...paging }, context) => pageTasks(context, scope, paging, status ?? null),
  }),
}));
