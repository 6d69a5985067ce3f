import { builder } from '../graph/builder.ts';
import type { ComputeOverview } from './overview.ts';

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

export const ComputeOverviewRef = builder.objectRef<ComputeOverview>('ComputeOverview').implement({
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
