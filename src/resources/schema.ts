import type { DefaultConnectionArguments } from '@pothos/plugin-relay';
import type { ProjectScope } from '../access/scope.ts';
import type { Instance } from '../generated/prisma/client.ts';
import type { ResourceKind } from '../generated/prisma/enums.ts';
import { builder } from '../graph/builder.ts';
import { implementConnection } from '../graph/connectionfield.ts';
import type { Context } from '../graph/context.ts';
import { ownInstance } from '../graph/instance.ts';
import { resolveList, type Slice } from '../graph/keyset.ts';
import { type NodeName, NodeRef, registerNode } from '../graph/node.ts';
import { implementOrder, type Order, type Ordered, orderedKeyset } from '../graph/order.ts';
import { ownProject, ProjectRef } from '../graph/project.ts';
import type { LoadByProject, LoadInScope } from '../graph/requestloaders.ts';
import { createTextLoader } from '../graph/textloader.ts';
import {
  countInstanceResources,
  countResources,
  defaultResourceOrder,
  findersByType,
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
      id: t.exposeID('id', { description: `The id of the ${name.toLowerCase()}.` }),
      project: t.field(ownProject),
      instanceId: t.exposeID('instanceId', { nullable: true, description: 'The id of the instance; null if it belongs to none.' }),
      instance: t.field(ownInstance('The instance; null if it belongs to none, or to one that no longer exists.')),
      name: t.exposeString('name', { description: 'Its name.' }),
      sizeGb: t.exposeInt('sizeGb', { description: 'Its size in GB.' }),
      created: t.expose('created', { type: 'DateTime', description: 'When it was created.' }),
    }),
  });
}

const VolumeRef = implementInstanceResource('Volume', 'A disk in addition to the root disk of an instance.');
const SnapshotRef = implementInstanceResource('Snapshot', 'The state of a disk at a point in time.');
const BackupRef = implementInstanceResource('Backup', 'A scheduled copy of an instance.');

const VpcRef = builder.prismaObject('Vpc', {
  description: 'A virtual private cloud: a private network of the project.',
  interfaces: [NodeRef],
  fields: (t) => ({
    id: t.exposeID('id', { description: 'The id of the network.' }),
    project: t.field(ownProject),
    name: t.exposeString('name', { description: 'Its name.' }),
    cidr: t.exposeString('cidr', { description: 'Its address range: `10.0.0.0/20`.' }),
    created: t.expose('created', { type: 'DateTime', description: 'When it was created.' }),
  }),
});

const loadPublicKey = createTextLoader(readPublicKeys);

const SshKeyRef = builder.prismaObject('SshKey', {
  description: 'An SSH key that is installed on new instances of the project.',
  interfaces: [NodeRef],
  fields: (t) => ({
    id: t.exposeID('id', { description: 'The id of the key.' }),
    project: t.field(ownProject),
    name: t.exposeString('name', { description: 'Its name.' }),
    publicKey: t.string({
      description: 'The public key, in the format of OpenSSH.',
      resolve: ({ id }, _args, context, info) => loadPublicKey(context, info, id),
    }),
    fingerprint: t.exposeString('fingerprint', { description: 'The fingerprint, in the format of OpenSSH.' }),
    created: t.expose('created', { type: 'DateTime', description: 'When it was created.' }),
  }),
});

for (const [name, find] of Object.entries(findersByType)) registerNode(name as NodeName, { inProject: find });

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

type LoadArgs = [slice: Slice<string>, order: Order];

/** Resolves a project's list of resources of one kind; the total is the overview's count. */
function resolveResources<Row extends Ordered>(kind: ResourceKind, list: LoadByProject<LoadArgs, Row[]>) {
  return (scope: ProjectScope, { orderBy, ...args }: ListArgs, context: Context) => {
    const order = orderBy ?? defaultResourceOrder;
    const count = () => context.loadByProject(countResources, scope, kind);
    return resolveList({ args, ...orderedKeyset(order), count }, (slice) => context.loadByProject(list, scope, slice, order));
  };
}

builder.objectFields(ProjectRef, (t) => ({
  volumes: t.connection(
    {
      type: VolumeRef,
      description: 'The volumes, the oldest first by default.',
      args: { orderBy: t.arg({ type: VolumeOrder, description: 'The order of the list.' }) },
      resolve: resolveResources('volumes', listVolumes),
    },
    VolumeConnection,
  ),
  snapshots: t.connection(
    {
      type: SnapshotRef,
      description: 'The snapshots, the oldest first.',
      resolve: resolveResources('snapshots', listSnapshots),
    },
    SnapshotConnection,
  ),
  backups: t.connection(
    {
      type: BackupRef,
      description: 'The backups, the oldest first.',
      resolve: resolveResources('backups', listBackups),
    },
    BackupConnection,
  ),
  vpcs: t.connection(
    {
      type: VpcRef,
      description: 'The virtual private clouds, the oldest first.',
      resolve: resolveResources('vpcs', listVpcs),
    },
    VpcConnection,
  ),
  sshKeys: t.connection(
    {
      type: SshKeyRef,
      description: 'The SSH keys, the oldest first.',
      resolve: resolveResources('ssh_keys', listSshKeys),
    },
    SshKeyConnection,
  ),
}));

/** Resolves an instance's list of resources of one kind, in its project. */
function resolveInstanceResources(kind: InstanceResourceKind, list: LoadInScope<LoadArgs, InstanceResource[]>) {
  return ({ id, projectId }: Instance, { orderBy, ...args }: ListArgs, { loadInScope }: Context) => {
    const order = orderBy ?? defaultResourceOrder;
    const count = () => loadInScope(countInstanceResources, projectId, id, kind);
    return resolveList({ args, ...orderedKeyset(order), count }, (slice) => loadInScope(list, projectId, id, slice, order));
  };
}

builder.prismaObjectFields('Instance', (t) => ({
  volumes: t.connection(
    {
      type: VolumeRef,
      description: 'The volumes of the instance, the oldest first by default.',
      args: { orderBy: t.arg({ type: VolumeOrder, description: 'The order of the list.' }) },
      resolve: resolveInstanceResources('volumes', listInstanceVolumes),
    },
    VolumeConnection,
  ),
  snapshots: t.connection(
    {
      type: SnapshotRef,
      description: 'The snapshots of the instance, the oldest first.',
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
      resolve: resolveInstanceResources('backups', (database, instances, slice) =>
        listInstanceResources(database, 'backups', instances, slice),
      ),
    },
    BackupConnection,
  ),
}));
