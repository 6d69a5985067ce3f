import type { InputFieldBuilder } from '@pothos/core';
import type { Instance } from '../generated/prisma/client.ts';
import type { InstanceStatus, TaskStatus } from '../generated/prisma/enums.ts';
import { builder } from '../graph/builder.ts';
import { pageCost } from '../graph/cost.ts';
import { describeValues } from '../graph/enums.ts';
import { implementConnection, resolveList } from '../graph/list.ts';
import { loadInProject, NodeRef, registerNode } from '../graph/node.ts';
import { implementOrder, orderedKeyset } from '../graph/order.ts';
import { implementPage, pageArgs } from '../graph/page.ts';
import { ownProject, ProjectRef } from '../graph/project.ts';
import { InstanceRef } from '../graph/refs.ts';
import { loadText } from '../graph/text.ts';
import type { InstanceAttention, TaskAttention } from './attention.ts';
import { ComputeOverviewRef } from './figures.ts';
import { countInstances, defaultInstanceOrder, findInstances, getInstance, listInstances } from './instances.ts';
import { countInstanceTasks, listInstanceTasks } from './instancetasks.ts';
import { readOverviews } from './overview.ts';
import { pageInstances, pageTasks } from './pages.ts';
import { instanceStatuses, taskStatuses } from './statuses.ts';
import { countTasks, defaultTaskOrder, findTasks, listTasks, readTaskErrors } from './tasks.ts';

const InstanceStatusEnum = builder.enumType('InstanceStatus', {
  description: 'What state an instance is in.',
  values: describeValues<InstanceStatus>({
    provisioning: 'It is being made.',
    active: 'It runs.',
    stopped: 'It is switched off.',
    suspended: 'It is shut off, until what it was suspended for is settled.',
    resizing: 'It gets another plan.',
    rebuilding: 'It is made anew, from an image.',
    error: 'What was done to it last has failed.',
    deleted: 'It is gone. No figure counts it, and a list shows it only when it is asked for by this status.',
  }),
});
const TaskStatusEnum = builder.enumType('TaskStatus', {
  description: 'How far a task has come.',
  values: describeValues<TaskStatus>({
    pending: 'It waits.',
    running: 'It is at work.',
    succeeded: 'It is done.',
    failed: 'It went wrong: `error` says how.',
    cancelled: 'It was called off.',
  }),
});
const InstanceAttentionEnum = builder.enumType('InstanceAttention', {
  description: 'The instances that a figure of the overview’s `attention` counts.',
  values: describeValues<InstanceAttention>({
    without_hypervisor: 'No hypervisor is assigned to it.',
    suspended: 'It is suspended.',
    throttled: 'It is throttled.',
    cancellation_scheduled: 'Its cancellation lies in the future.',
  }),
});
const TaskAttentionEnum = builder.enumType('TaskAttention', {
  description: 'The tasks that a figure of the overview’s `attention` counts.',
  values: describeValues<TaskAttention>({
    failed_24h: 'It failed within 24 hours.',
    stuck: 'It has not finished an hour after its creation.',
  }),
});

builder.prismaObjectFields('Instance', (t) => ({
  name: t.exposeString('name', { description: 'How it is called.' }),
  status: t.expose('status', { type: InstanceStatusEnum, description: 'What state it is in.' }),
  plan: t.exposeString('plan', { description: 'What was ordered: `vps-m`, …' }),
  region: t.exposeString('region', { description: 'Where it stands: `eu-central-1`, …' }),
  vcpu: t.exposeInt('vcpu', { description: 'Virtual processors.' }),
  ramMb: t.exposeInt('ramMb', { description: 'Memory in MiB.' }),
  storageGb: t.exposeInt('storageGb', { description: 'The root disk, in GB.' }),
  hypervisor: t.exposeString('hypervisor', { nullable: true, description: 'Null until one is assigned.' }),
  throttled: t.exposeBoolean('throttled', { description: 'Whether it is slowed down.' }),
  dailyBackup: t.exposeBoolean('dailyBackup', { description: 'Whether it is backed up daily.' }),
  cancellationAt: t.expose('cancellationAt', {
    type: 'DateTime',
    nullable: true,
    description: 'When it ends; null where no end is set.',
  }),
  created: t.expose('created', { type: 'DateTime', description: 'When it was made.' }),
  modified: t.expose('modified', { type: 'DateTime', description: 'When it was changed last.' }),
}));

const TaskRef = builder.prismaObject('Task', {
  description: 'Something that is done to an instance or to the project.',
  interfaces: [NodeRef],
  fields: (t) => ({
    id: t.exposeID('id', { description: 'The task.' }),
    project: t.field(ownProject),
    instanceId: t.exposeID('instanceId', { nullable: true, description: 'The instance; null for a task of the project.' }),
    instance: t.field({
      type: InstanceRef,
      nullable: true,
      description: 'The instance; null for a task of the project, and where the instance is gone.',
      resolve: ({ projectId, instanceId }, _args, context, info) =>
        instanceId === null
          ? null
          : loadInProject<Instance>(context, 'Instance', { scope: context.findProject(projectId), id: instanceId }, info),
    }),
    kind: t.exposeString('kind', { description: 'What is done: `instance.reboot`, … An open list.' }),
    status: t.expose('status', { type: TaskStatusEnum, description: 'How far it has come.' }),
    error: t.string({
      description: 'Empty where nothing failed.',
      resolve: ({ id }, _args, context, info) =>
        loadText(context, info, 'errors of tasks', id, (ids, bytesLeft) => readTaskErrors(context.database, ids, bytesLeft)),
    }),
    created: t.expose('created', { type: 'DateTime', description: 'When it was asked for.' }),
    started: t.expose('started', { type: 'DateTime', nullable: true, description: 'Null until it runs.' }),
    finished: t.expose('finished', { type: 'DateTime', nullable: true, description: 'Null until it is over.' }),
  }),
});

const InstanceConnection = implementConnection('Instance', InstanceRef);
const TaskConnection = implementConnection('Task', TaskRef);

registerNode('Instance', { inProject: ({ database }, requested) => findInstances(database, requested) });
registerNode('Task', { inProject: ({ database }, requested) => findTasks(database, requested) });

const InstanceFilterInput = builder.inputType('InstanceFilter', {
  description: 'What holds for all instances of a list.',
  fields: (t) => ({
    status: t.field({ type: InstanceStatusEnum, description: 'Of this status alone. Without any status all but the deleted ones.' }),
    statuses: t.field({
      type: [InstanceStatusEnum],
      description: 'Of one of these statuses: at most 20. An empty list is the same as none. Beside `status`, both hold.',
      extensions: { maxItems: 20 },
    }),
    attention: t.field({ type: InstanceAttentionEnum, description: 'Those that this figure counts.' }),
    region: t.field({ type: 'Name', description: 'Those that stand there: at most 255 characters.', extensions: { maxLength: 255 } }),
    plan: t.field({ type: 'Name', description: 'Those of this plan: at most 255 characters.', extensions: { maxLength: 255 } }),
    namePrefix: t.field({
      type: 'Text',
      description: 'Those whose name begins with it, letter for letter: at most 255 characters. An empty one holds for all.',
      extensions: { maxLength: 255 },
    }),
  }),
});
const InstanceOrder = implementOrder('Instance', ['name', 'created', 'status']);

const taskStatusFields = (t: InputFieldBuilder<typeof builder.$inferSchemaTypes, 'InputObject'>) => ({
  status: t.field({ type: TaskStatusEnum, description: 'Of this status alone.' }),
  statuses: t.field({
    type: [TaskStatusEnum],
    description: 'Of one of these statuses: at most 20. An empty list is the same as none. Beside `status`, both hold.',
    extensions: { maxItems: 20 },
  }),
});
const TaskFilterInput = builder.inputType('TaskFilter', {
  description: 'What holds for all tasks of a list.',
  fields: (t) => ({
    ...taskStatusFields(t),
    attention: t.field({ type: TaskAttentionEnum, description: 'Those that this figure counts.' }),
  }),
});
const InstanceTaskFilterInput = builder.inputType('InstanceTaskFilter', {
  description: 'What holds for all tasks of an instance’s list.',
  fields: taskStatusFields,
});
const TaskOrder = implementOrder('Task', ['created', 'status']);

builder.objectFields(ProjectRef, (t) => ({
  computeOverview: t.field({
    type: ComputeOverviewRef,
    description: 'Figures of the project’s compute resources, all of one moment.',
    resolve: (scope, _args, context) => context.loadByProject('overview', scope, readOverviews),
  }),
  instances: t.connection(
    {
      type: InstanceRef,
      description: 'The instances, the oldest first unless ordered otherwise.',
      complexity: pageCost,
      args: {
        filter: t.arg({ type: InstanceFilterInput, description: 'Only these.' }),
        orderBy: t.arg({ type: InstanceOrder, description: 'In this order.' }),
      },
      resolve: (scope, { filter: given, orderBy, ...args }, context) => {
        const filter = given ?? {};
        const order = orderBy ?? defaultInstanceOrder;
        const name = `instances ${JSON.stringify(filter)}`;
        const count = () =>
          context.loadByProject(`count of ${name}`, scope, (database, scopes) => countInstances(database, scopes, filter));
        return resolveList({ args, ...orderedKeyset(order, instanceStatuses), count }, (slice) =>
          context.loadByProject(`${name} ${JSON.stringify([order, slice])}`, scope, (database, scopes) =>
            listInstances(database, scopes, filter, order, slice),
          ),
        );
      },
    },
    InstanceConnection,
  ),
  instance: t.field({
    type: InstanceRef,
    nullable: true,
    description: 'One instance.',
    args: { id: t.arg.id({ required: true, description: 'The instance.' }) },
    resolve: (scope, { id }) => getInstance(scope, id),
  }),
  tasks: t.connection(
    {
      type: TaskRef,
      description: 'The tasks, the newest first unless ordered otherwise.',
      complexity: pageCost,
      args: {
        filter: t.arg({ type: TaskFilterInput, description: 'Only these.' }),
        orderBy: t.arg({ type: TaskOrder, description: 'In this order.' }),
      },
      resolve: (scope, { filter: given, orderBy, ...args }, context) => {
        const filter = given ?? {};
        const order = orderBy ?? defaultTaskOrder;
        const name = `tasks ${JSON.stringify(filter)}`;
        const count = () => context.loadByProject(`count of ${name}`, scope, (database, scopes) => countTasks(database, scopes, filter));
        return resolveList({ args, ...orderedKeyset(order, taskStatuses), count }, (slice) =>
          context.loadByProject(`${name} ${JSON.stringify([order, slice])}`, scope, (database, scopes) =>
            listTasks(database, scopes, filter, order, slice),
          ),
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
      description: 'What is done to the instance, the newest first unless ordered otherwise.',
      complexity: pageCost,
      args: {
        filter: t.arg({ type: InstanceTaskFilterInput, description: 'Only these.' }),
        orderBy: t.arg({ type: TaskOrder, description: 'In this order.' }),
      },
      resolve: (instance, { filter: given, orderBy, ...args }, { database, findProject, loadBatched }) => {
        const filter = given ?? {};
        const order = orderBy ?? defaultTaskOrder;
        const key = `${instance.id} ${findProject(instance.projectId).projectId}`;
        const name = `tasks of instances ${JSON.stringify(filter)}`;
        const count = () =>
          loadBatched(`count of ${name}`, key, (keys) => countInstanceTasks(database, keys.map(parseInstanceKey), filter));
        return resolveList({ args, ...orderedKeyset(order, taskStatuses), count }, (slice) =>
          loadBatched(`${name} ${JSON.stringify([order, slice])}`, key, (keys) =>
            listInstanceTasks(database, keys.map(parseInstanceKey), filter, order, slice),
          ),
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
    args: { ...pageArgs(t), status: t.arg({ type: InstanceStatusEnum, description: 'Without it all but the deleted ones.' }) },
    resolve: (scope, { status, ...paging }, context) => pageInstances(context, scope, paging, status ?? null),
  }),
  taskPage: t.field({
    type: TaskPage,
    description: 'The tasks, the newest first, by page.',
    complexity: pageCost,
    args: { ...pageArgs(t), status: t.arg({ type: TaskStatusEnum, description: 'Of this status alone.' }) },
    resolve: (scope, { status, ...paging }, context) => pageTasks(context, scope, paging, status ?? null),
  }),
}));

function parseInstanceKey(key: string) {
  const [instanceId = '', projectId = ''] = key.split(' ');
  return { instanceId, projectId };
}
