import type { DefaultConnectionArguments } from '@pothos/plugin-relay';
import type { ProjectScope } from '../access/scope.ts';
import type { Instance } from '../generated/prisma/client.ts';
import type { ResourceKind } from '../generated/prisma/enums.ts';
import { builder } from '../graph/builder.ts';
import type { Slice } from '../graph/connection.ts';
import type { Context } from '../graph/context.ts';
import { pageCost } from '../graph/cost.ts';
import { implementConnection, resolveList } from '../graph/list.ts';
import { loadInProject, type NodeName, NodeRef, registerNode } from '../graph/node.ts';
import { implementOrder, type Order, type Ordered, orderedKeyset } from '../graph/order.ts';
import { ownProject, ProjectRef } from '../graph/project.ts';
import { InstanceRef } from '../graph/refs.ts';
import { loadText } from '../graph/text.ts';
import type { Database } from '../platform/database.ts';
import {
  countInstanceResources,
  countResources,
  defaultResourceOrder,
  findersByType,
  type InstanceInProject,
  type InstanceResource,
  type InstanceResourceKind,
  listBackups,
  listInstanceResources,
  listInstanceVolumes,
  listSnapshots,
  listSshKeys,
  listVolumes,
  listVpcs,
  readPublicKeys,
} from './service.ts';

/** The type of a resource that may belong to an instance. */
function implementInstanceResource(name: 'Volume' | 'Snapshot' | 'Backup', description: string) {
  return builder.prismaObject(name, {
    description,
    interfaces: [NodeRef],
    fields: (t) => ({
      id: t.exposeID('id', { description: `The ${name.toLowerCase()}.` }),
      project: t.field(ownProject),
      instanceId: t.exposeID('instanceId', { nullable: true, description: 'The instance; null where it belongs to none.' }),
      instance: t.field({
        type: InstanceRef,
        nullable: true,
        description: 'The instance; null where it belongs to none, or to one that is gone.',
        resolve: ({ projectId, instanceId }, _args, context, info) =>
          instanceId === null
            ? null
            : loadInProject<Instance>(context, 'Instance', { scope: context.findProject(projectId), id: instanceId }, info),
      }),
      name: t.exposeString('name', { description: 'How it is called.' }),
      sizeGb: t.exposeInt('sizeGb', { description: 'Its size in GB.' }),
      created: t.expose('created', { type: 'DateTime', description: 'When it was made.' }),
    }),
  });
}

const VolumeRef = implementInstanceResource('Volume', 'A disk beside the root disk of an instance.');
const SnapshotRef = implementInstanceResource('Snapshot', 'The state of a disk at one moment.');
const BackupRef = implementInstanceResource('Backup', 'A copy of an instance, made on its schedule.');

const VpcRef = builder.prismaObject('Vpc', {
  description: 'A virtual private cloud: a network of the project’s own.',
  interfaces: [NodeRef],
  fields: (t) => ({
    id: t.exposeID('id', { description: 'The network.' }),
    project: t.field(ownProject),
    name: t.exposeString('name', { description: 'How it is called.' }),
    cidr: t.exposeString('cidr', { description: 'Its addresses: `10.0.0.0/20`.' }),
    created: t.expose('created', { type: 'DateTime', description: 'When it was made.' }),
  }),
});

const SshKeyRef = builder.prismaObject('SshKey', {
  description: 'An SSH key that new instances of the project are given.',
  interfaces: [NodeRef],
  fields: (t) => ({
    id: t.exposeID('id', { description: 'The key.' }),
    project: t.field(ownProject),
    name: t.exposeString('name', { description: 'How it is called.' }),
    publicKey: t.string({
      description: 'The public half, as OpenSSH writes it.',
      resolve: ({ id }, _args, context, info) =>
        loadText(context, info, 'public keys', id, (ids, bytesLeft) => readPublicKeys(context.database, ids, bytesLeft)),
    }),
    fingerprint: t.exposeString('fingerprint', { description: 'Its hash, as OpenSSH shows it.' }),
    created: t.expose('created', { type: 'DateTime', description: 'When it was made.' }),
  }),
});

for (const [name, find] of Object.entries(findersByType))
  registerNode(name as NodeName, { inProject: ({ database }, requested) => find(database, requested) });

const VolumeConnection = implementConnection('Volume', VolumeRef);
const SnapshotConnection = implementConnection('Snapshot', SnapshotRef);
const BackupConnection = implementConnection('Backup', BackupRef);
const VpcConnection = implementConnection('Vpc', VpcRef);
const SshKeyConnection = implementConnection('SshKey', SshKeyRef);

const VolumeOrder = implementOrder('Volume', ['name', 'created']);

interface ListArgs extends DefaultConnectionArguments {
  /** Only of lists that can be ordered. */
  readonly orderBy?: Order | null;
}

type ListOfProjects<Row> = (database: Database, scopes: readonly ProjectScope[], slice: Slice<string>, order: Order) => Promise<Row[][]>;

/** Resolves a project's list of resources of one kind; the total is the overview's count. */
function resolveResources<Row extends Ordered>(kind: ResourceKind, list: ListOfProjects<Row>) {
  return (scope: ProjectScope, { orderBy, ...args }: ListArgs, context: Context) => {
    const order = orderBy ?? defaultResourceOrder;
    const count = () => context.loadByProject(`count of ${kind}`, scope, (database, scopes) => countResources(database, scopes, kind));
    return resolveList({ args, ...orderedKeyset(order), count }, (slice) =>
      context.loadByProject(`${kind} ${JSON.stringify([order, slice])}`, scope, (database, scopes) => list(database, scopes, slice, order)),
    );
  };
}

builder.objectFields(ProjectRef, (t) => ({
  volumes: t.connection(
    {
      type: VolumeRef,
      description: 'The volumes, the oldest first unless ordered otherwise.',
      complexity: pageCost,
      args: { orderBy: t.arg({ type: VolumeOrder, description: 'In this order.' }) },
      resolve: resolveResources('volumes', listVolumes),
    },
    VolumeConnection,
  ),
  snapshots: t.connection(
    {
      type: SnapshotRef,
      description: 'The snapshots, the oldest first.',
      complexity: pageCost,
      resolve: resolveResources('snapshots', listSnapshots),
    },
    SnapshotConnection,
  ),
  backups: t.connection(
    {
      type: BackupRef,
      description: 'The backups, the oldest first.',
      complexity: pageCost,
      resolve: resolveResources('backups', listBackups),
    },
    BackupConnection,
  ),
  vpcs: t.connection(
    {
      type: VpcRef,
      description: 'The virtual private clouds, the oldest first.',
      complexity: pageCost,
      resolve: resolveResources('vpcs', listVpcs),
    },
    VpcConnection,
  ),
  sshKeys: t.connection(
    {
      type: SshKeyRef,
      description: 'The SSH keys, the oldest first.',
      complexity: pageCost,
      resolve: resolveResources('ssh_keys', listSshKeys),
    },
    SshKeyConnection,
  ),
}));

type ListOfInstances = (
  database: Database,
  instances: readonly InstanceInProject[],
  slice: Slice<string>,
  order: Order,
) => Promise<InstanceResource[][]>;

/** Resolves an instance's list of resources of one kind, in its project. */
function resolveInstanceResources(kind: InstanceResourceKind, list: ListOfInstances) {
  return (instance: Instance, { orderBy, ...args }: ListArgs, { database, findProject, loadBatched }: Context) => {
    const order = orderBy ?? defaultResourceOrder;
    const key = `${instance.id} ${findProject(instance.projectId).projectId}`;
    const count = () =>
      loadBatched(`count of ${kind} of instances`, key, (keys) => countInstanceResources(database, kind, keys.map(parseInstanceKey)));
    return resolveList({ args, ...orderedKeyset(order), count }, (slice) =>
      loadBatched(`${kind} of instances ${JSON.stringify([order, slice])}`, key, (keys) =>
        list(database, keys.map(parseInstanceKey), slice, order),
      ),
    );
  };
}

function parseInstanceKey(key: string) {
  const [instanceId = '', projectId = ''] = key.split(' ');
  return { instanceId, projectId };
}

builder.prismaObjectFields('Instance', (t) => ({
  volumes: t.connection(
    {
      type: VolumeRef,
      description: 'The volumes of the instance, the oldest first unless ordered otherwise.',
      complexity: pageCost,
      args: { orderBy: t.arg({ type: VolumeOrder, description: 'In this order.' }) },
      resolve: resolveInstanceResources('volumes', listInstanceVolumes),
    },
    VolumeConnection,
  ),
  snapshots: t.connection(
    {
      type: SnapshotRef,
      description: 'The snapshots of the instance, the oldest first.',
      complexity: pageCost,
      resolve: resolveInstanceResources('snapshots', (database, instances, slice) =>
        listInstanceResources(database, 'snapshots', instances, slice),
      ),
    },
    SnapshotConnection,
  ),
  backups: t.connection(
    {
      type: BackupRef,
      description: 'The backups of the instance, the oldest first.',
      complexity: pageCost,
      resolve: resolveInstanceResources('backups', (database, instances, slice) =>
        listInstanceResources(database, 'backups', instances, slice),
      ),
    },
    BackupConnection,
  ),
}));
