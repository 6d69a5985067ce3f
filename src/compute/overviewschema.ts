import { builder } from '../graph/builder.ts';
import type { ComputeOverview } from './overview.ts';

const StatusCount = builder.simpleObject('StatusCount', {
  description: 'The number of items with a status.',
  fields: (t) => ({
    status: t.string({ description: 'The status: a value of `InstanceStatus` or `TaskStatus`.' }),
    count: t.int({ description: 'The number of items with it.' }),
  }),
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
        'Instances whose cancellation date is in the future. GraphQL lists them: `instances(filter: {attention: cancellation_scheduled})`.',
    }),
    tasksFailed24h: t.int({
      description: 'Tasks that failed within the last 24 hours. GraphQL lists them: `tasks(filter: {attention: failed_24h})`.',
    }),
    tasksStuck: t.int({
      description: 'Tasks that have not finished an hour after their creation. GraphQL lists them: `tasks(filter: {attention: stuck})`.',
    }),
  }),
});

const ResourcesAllocated = builder.simpleObject('ResourcesAllocated', {
  description: 'The resources of the instances, without deleted ones.',
  fields: (t) => ({
    vcpu: t.field({ type: 'SafeInt', description: 'The number of virtual processors.' }),
    ramMb: t.field({ type: 'SafeInt', description: 'Memory in MiB.' }),
    ramGb: t.field({ type: 'SafeInt', description: 'Memory in GiB, rounded down.' }),
    storageGb: t.field({ type: 'SafeInt', description: 'The size of the root disks in GB.' }),
  }),
});

const ResourcesCount = builder.simpleObject('ResourcesCount', {
  description: 'The number of resources of each kind in the project.',
  fields: (t) => ({
    volumes: t.int({ description: 'The number of volumes.' }),
    vpcs: t.int({ description: 'The number of virtual private clouds.' }),
    sshKeys: t.int({ description: 'The number of SSH keys.' }),
    snapshots: t.int({ description: 'The number of snapshots.' }),
    backups: t.int({ description: 'The number of backups.' }),
    storageGb: t.field({ type: 'SafeInt', description: 'The size of all volumes in GB.' }),
  }),
});

export const ComputeOverviewRef = builder.objectRef<ComputeOverview>('ComputeOverview').implement({
  description: 'Figures of a project’s compute resources, all from the same point in time.',
  fields: (t) => ({
    attention: t.expose('attention', { type: ComputeAttention, description: 'What needs attention.' }),
    instancesByStatus: t.expose('instancesByStatus', {
      type: [StatusCount],
      description: 'The number of instances by status, in alphabetical order, without deleted ones.',
    }),
    instancesTotal: t.exposeInt('instancesTotal', { description: 'The number of instances, without deleted ones.' }),
    resourcesAllocated: t.expose('resourcesAllocated', { type: ResourcesAllocated, description: 'The resources of the instances.' }),
    resourcesCount: t.expose('resourcesCount', { type: ResourcesCount, description: 'The number of other resources.' }),
    tasksByStatus: t.expose('tasksByStatus', {
      type: [StatusCount],
      description: 'The number of tasks created within the last 24 hours by status, in alphabetical order.',
    }),
    tasksRecentCount: t.exposeInt('tasksRecentCount', {
      description: 'The number of tasks created within the last 24 hours: the sum over all statuses.',
    }),
  }),
});
