import { InstanceStatus, TaskStatus } from '../generated/prisma/enums.ts';
import { builder } from '../graph/builder.ts';
import { resolveKeyset } from '../graph/connection.ts';
import { ProjectRef } from '../graph/project.ts';
import { parseUuid } from '../kernel/uuid.ts';
import {
  type ComputeOverview,
  getInstance,
  instanceAttentions,
  listInstances,
  listTasks,
  readOverview,
  taskAttentions,
} from './service.ts';

const InstanceStatusEnum = builder.enumType(InstanceStatus, { name: 'InstanceStatus', description: 'What state an instance is in.' });
const TaskStatusEnum = builder.enumType(TaskStatus, { name: 'TaskStatus', description: 'How far a task has come.' });
const InstanceAttention = builder.enumType('InstanceAttention', {
  description: 'The instances that a figure of the overview’s `attention` counts.',
  values: instanceAttentions,
});
const TaskAttention = builder.enumType('TaskAttention', {
  description: 'The tasks that a figure of the overview’s `attention` counts.',
  values: taskAttentions,
});

const byId = { keyOf: (node: { id: string }) => node.id, parseKey: parseUuid };

const StatusCount = builder.simpleObject('StatusCount', {
  description: 'How many have a status.',
  fields: (t) => ({ status: t.string({ description: 'The status.' }), count: t.int({ description: 'How many have it.' }) }),
});

const ComputeAttention = builder.simpleObject('ComputeAttention', {
  description: 'What needs attention. Each figure is the length of a list.',
  fields: (t) => ({
    instancesWithoutHypervisor: t.int({
      description:
        'Instances to which no hypervisor is assigned. GraphQL lists them: `instances(filter: {attention: without_hypervisor})`.',
    }),
    instancesSuspended: t.int({
      description: 'Instances that are suspended. GraphQL lists them: `instances(filter: {attention: suspended})`.',
    }),
    instancesThrottled: t.int({
      description: 'Instances that are throttled. GraphQL lists them: `instances(filter: {attention: throttled})`.',
    }),
    cancellationsScheduled: t.int({
      description:
        'Instances whose cancellation lies in the future. GraphQL lists them: `instances(filter: {attention: cancellation_scheduled})`.',
    }),
    tasksFailed24h: t.int({
      description: 'Tasks that failed within 24 hours. GraphQL lists them: `tasks(filter: {attention: failed_24h})`.',
    }),
    tasksStuck: t.int({
      description: 'Tasks that have not finished an hour after their creation. GraphQL lists them: `tasks(filter: {attention: stuck})`.',
    }),
  }),
});

const ResourcesAllocated = builder.simpleObject('ResourcesAllocated', {
  description: 'What the instances have, deleted ones left out.',
  fields: (t) => ({
    vcpu: t.field({ type: 'SafeInt', description: 'Virtual processors.' }),
    ramMb: t.field({ type: 'SafeInt', description: 'Memory in MiB.' }),
    ramGb: t.field({ type: 'SafeInt', description: 'The same in GiB, rounded down.' }),
    storageGb: t.field({ type: 'SafeInt', description: 'Their root disks, in GB.' }),
  }),
});

const ResourcesCount = builder.simpleObject('ResourcesCount', {
  description: 'How many resources of each kind the project has.',
  fields: (t) => ({
    volumes: t.int({ description: 'Volumes.' }),
    vpcs: t.int({ description: 'Virtual private clouds.' }),
    sshKeys: t.int({ description: 'SSH keys.' }),
    snapshots: t.int({ description: 'Snapshots.' }),
    backups: t.int({ description: 'Backups.' }),
    storageGb: t.field({ type: 'SafeInt', description: 'The size of all volumes, in GB.' }),
  }),
});

const ComputeOverviewRef = builder.objectRef<ComputeOverview>('ComputeOverview').implement({
  description: 'Figures of a project’s compute resources, all of one moment.',
  fields: (t) => ({
    attention: t.expose('attention', { type: ComputeAttention, description: 'What needs attention.' }),
    instancesByStatus: t.expose('instancesByStatus', {
      type: [StatusCount],
      description: 'Instances by status, in alphabetical order; deleted ones left out.',
    }),
    instancesTotal: t.exposeInt('instancesTotal', { description: 'All instances; deleted ones left out.' }),
    resourcesAllocated: t.expose('resourcesAllocated', { type: ResourcesAllocated, description: 'What the instances have.' }),
    resourcesCount: t.expose('resourcesCount', { type: ResourcesCount, description: 'How many other resources there are.' }),
    tasksByStatus: t.expose('tasksByStatus', {
      type: [StatusCount],
      description: 'Tasks created within 24 hours, by status in alphabetical order.',
    }),
    tasksRecentCount: t.exposeInt('tasksRecentCount', { description: 'Tasks created within 24 hours: the sum over all statuses.' }),
  }),
});

const InstanceRef = builder.prismaObject('Instance', {
  description: 'A virtual server.',
  fields: (t) => ({
    id: t.exposeID('id'),
    name: t.exposeString('name'),
    status: t.expose('status', { type: InstanceStatusEnum }),
    plan: t.exposeString('plan'),
    region: t.exposeString('region'),
    vcpu: t.exposeInt('vcpu'),
    ramMb: t.exposeInt('ramMb'),
    storageGb: t.exposeInt('storageGb', { description: 'The root disk.' }),
    hypervisor: t.exposeString('hypervisor', { nullable: true, description: 'Null until one is assigned.' }),
    throttled: t.exposeBoolean('throttled'),
    dailyBackup: t.exposeBoolean('dailyBackup'),
    cancellationAt: t.expose('cancellationAt', { type: 'DateTime', nullable: true }),
    created: t.expose('created', { type: 'DateTime' }),
    modified: t.expose('modified', { type: 'DateTime' }),
  }),
});

const TaskRef = builder.prismaObject('Task', {
  description: 'Something that is done to an instance or to the project.',
  fields: (t) => ({
    id: t.exposeID('id'),
    instanceId: t.exposeID('instanceId', { nullable: true }),
    kind: t.exposeString('kind'),
    status: t.expose('status', { type: TaskStatusEnum }),
    error: t.exposeString('error', { description: 'Empty where nothing failed.' }),
    created: t.expose('created', { type: 'DateTime' }),
    started: t.expose('started', { type: 'DateTime', nullable: true }),
    finished: t.expose('finished', { type: 'DateTime', nullable: true }),
  }),
});

const InstanceFilterInput = builder.inputType('InstanceFilter', {
  description: 'What holds for all instances of a list.',
  fields: (t) => ({
    status: t.field({ type: InstanceStatusEnum, description: 'Without it all but the deleted ones.' }),
    attention: t.field({ type: InstanceAttention }),
  }),
});

const TaskFilterInput = builder.inputType('TaskFilter', {
  description: 'What holds for all tasks of a list.',
  fields: (t) => ({
    status: t.field({ type: TaskStatusEnum }),
    attention: t.field({ type: TaskAttention }),
  }),
});

builder.objectFields(ProjectRef, (t) => ({
  computeOverview: t.field({
    type: ComputeOverviewRef,
    description: 'Figures of the project’s compute resources, all of one moment.',
    resolve: readOverview,
  }),
  instances: t.connection({
    type: InstanceRef,
    description: 'The instances, the oldest first.',
    args: { filter: t.arg({ type: InstanceFilterInput }) },
    resolve: (scope, args) => resolveKeyset({ args, ...byId }, (slice) => listInstances(scope, args.filter ?? {}, slice)),
  }),
  instance: t.field({
    type: InstanceRef,
    nullable: true,
    description: 'One instance.',
    args: { id: t.arg.id({ required: true, description: 'The instance.' }) },
    resolve: (scope, { id }) => getInstance(scope, id),
  }),
  tasks: t.connection({
    type: TaskRef,
    description: 'The tasks, the newest first.',
    args: { filter: t.arg({ type: TaskFilterInput }) },
    resolve: (scope, args) => resolveKeyset({ args, ...byId }, (slice) => listTasks(scope, args.filter ?? {}, slice)),
  }),
}));
