import type { ProjectScope } from '../access/scope.ts';
import type { Instance } from '../generated/prisma/client.ts';
import type { ResourceKind } from '../generated/prisma/enums.ts';
import { builder } from '../graph/builder.ts';
import type { Slice } from '../graph/connection.ts';
import type { Context } from '../graph/context.ts';
import { pageCost } from '../graph/cost.ts';
import { byId, implementConnection, resolveList } from '../graph/list.ts';
import { loadInProject, type NodeName, NodeRef, registerNode } from '../graph/node.ts';
import { implementOrder, inOrder } from '../graph/order.ts';
import { ownProject, ProjectRef } from '../graph/project.ts';
import { InstanceRef } from '../graph/refs.ts';
import { loadText } from '../graph/text.ts';
import type { Database } from '../platform/database.ts';
import {
  countResources,
  countStored,
  finders,
  listBackups,
  listInstanceVolumes,
  listSnapshots,
  listSshKeys,
  listStored,
  listVolumes,
  listVpcs,
  readPublicKeys,
  resourceOrder,
  type StoredKind,
} from './service.ts';

/** The type of what is stored for an instance, with the way to it. */
function implementStored(name: 'Volume' | 'Snapshot' | 'Backup', description: string) {
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

const VolumeRef = implementStored('Volume', 'A disk beside the root disk of an instance.');
const SnapshotRef = implementStored('Snapshot', 'The state of a disk at one moment.');
const BackupRef = implementStored('Backup', 'A copy of an instance, made on its schedule.');

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

for (const [name, find] of Object.entries(finders))
  registerNode(name as NodeName, { inProject: ({ database }, asked) => find(database, asked) });

const VolumeConnection = implementConnection('Volume', VolumeRef);
const SnapshotConnection = implementConnection('Snapshot', SnapshotRef);
const BackupConnection = implementConnection('Backup', BackupRef);
const VpcConnection = implementConnection('Vpc', VpcRef);
const SshKeyConnection = implementConnection('SshKey', SshKeyRef);

const VolumeOrder = implementOrder('Volume', ['name', 'created']);

type ListOfProjects<Row> = (database: Database, scopes: readonly ProjectScope[], slice: Slice<string>) => Promise<Row[][]>;

/** The resources of a kind: as many as the overview counts. */
function resolveResources<Row extends { readonly id: string }>(kind: ResourceKind, list: ListOfProjects<Row>) {
  return (scope: ProjectScope, args: object, context: Context) => {
    const count = () => context.loadByProject(`count of ${kind}`, scope, (database, scopes) => countResources(database, scopes, kind));
    return resolveList({ args, ...byId, count }, (slice) =>
      context.loadByProject(`${kind} ${JSON.stringify(slice)}`, scope, (database, scopes) => list(database, scopes, slice)),
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
      resolve: (scope, { orderBy, ...args }, context) => {
        const order = orderBy ?? resourceOrder;
        const count = () =>
          context.loadByProject('count of volumes', scope, (database, scopes) => countResources(database, scopes, 'volumes'));
        return resolveList({ args, ...inOrder(order), count }, (slice) =>
          context.loadByProject(`volumes ${JSON.stringify([order, slice])}`, scope, (database, scopes) =>
            listVolumes(database, scopes, order, slice),
          ),
        );
      },
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

/** What is stored for an instance, within its project. */
function resolveStored(kind: Exclude<StoredKind, 'volumes'>) {
  return (instance: Instance, args: object, context: Context) => {
    const key = `${instance.id} ${context.findProject(instance.projectId).projectId}`;
    const count = () =>
      context.loadBatched(`count of ${kind} of instances`, key, (keys) => countStored(context.database, kind, keys.map(readKey)));
    return resolveList({ args, ...byId, count }, (slice) =>
      context.loadBatched(`${kind} of instances ${JSON.stringify(slice)}`, key, (keys) =>
        listStored(context.database, kind, keys.map(readKey), slice),
      ),
    );
  };
}

function readKey(key: string) {
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
      resolve: (instance, { orderBy, ...args }, { database, findProject, loadBatched }) => {
        const order = orderBy ?? resourceOrder;
        const key = `${instance.id} ${findProject(instance.projectId).projectId}`;
        const count = () =>
          loadBatched('count of volumes of instances', key, (keys) => countStored(database, 'volumes', keys.map(readKey)));
        return resolveList({ args, ...inOrder(order), count }, (slice) =>
          loadBatched(`volumes of instances ${JSON.stringify([order, slice])}`, key, (keys) =>
            listInstanceVolumes(database, keys.map(readKey), order, slice),
          ),
        );
      },
    },
    VolumeConnection,
  ),
  snapshots: t.connection(
    {
      type: SnapshotRef,
      description: 'The snapshots of the instance, the oldest first.',
      complexity: pageCost,
      resolve: resolveStored('snapshots'),
    },
    SnapshotConnection,
  ),
  backups: t.connection(
    {
      type: BackupRef,
      description: 'The backups of the instance, the oldest first.',
      complexity: pageCost,
      resolve: resolveStored('backups'),
    },
    BackupConnection,
  ),
}));
