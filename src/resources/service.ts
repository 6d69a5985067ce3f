import { columnsOf, type InProject, type ProjectScope, projectIdsOf } from '../access/scope.ts';
import type { Backup, Snapshot, SshKey, Volume, Vpc } from '../generated/prisma/client.ts';
import type { ResourceKind } from '../generated/prisma/enums.ts';
import { boundsFromStart, type Slice } from '../graph/keyset.ts';
import { type NodeName, pickInProject } from '../graph/node.ts';
import { type Order, rangeOf, sortRows } from '../graph/order.ts';
import type { SizedText } from '../graph/textloader.ts';
import { groupRows, type Nullable, pickCounts } from '../kernel/rows.ts';
import type { Database } from '../platform/database.ts';

/** A volume, a snapshot or a backup: all three have the same columns. */
export type InstanceResource = Volume;

/** The kinds of resources that may belong to an instance. */
export type InstanceResourceKind = 'volumes' | 'snapshots' | 'backups';

/** The default order: the oldest first. */
export const defaultResourceOrder: Order = { field: 'id', direction: 'asc' };

/** The volumes of each project, read along the index of the order. */
export async function listVolumes(
  database: Database,
  scopes: readonly ProjectScope[],
  slice: Slice<string>,
  order: Order,
): Promise<Volume[][]> {
  if (order.field === 'id') return listProjectResources(database, 'volumes', scopes, slice);
  const range = rangeOf(slice, order);
  const { nameBounds, createdBounds, limit, scanColumn, isAscending } = range;
  const query = database.queryInOrder(isAscending);
  const rows = await query<Nullable<InstanceResource>>`
    SELECT listed.id, listed.project_id AS "projectId", listed.instance_id AS "instanceId", listed.name, listed.size_gb AS "sizeGb", listed.created
    FROM unnest(${projectIdsOf(scopes)}::uuid[]) AS wanted (project_id)
    CROSS JOIN LATERAL (
      (SELECT id, project_id, instance_id, name, size_gb, created FROM volumes
        WHERE ${scanColumn}::text = 'name' AND project_id = wanted.project_id
          AND (left(name, 255) COLLATE "C", id) > (${nameBounds.above.value}, ${nameBounds.above.id}::uuid)
          AND (left(name, 255) COLLATE "C", id) < (${nameBounds.below.value}, ${nameBounds.below.id}::uuid)
        ORDER BY left(name, 255) COLLATE "C" DESC, id DESC LIMIT ${limit})
      UNION ALL
      (SELECT id, project_id, instance_id, name, size_gb, created FROM volumes
        WHERE ${scanColumn}::text = 'created' AND project_id = wanted.project_id
          AND (created, id) > (${createdBounds.above.value}::text::timestamptz, ${createdBounds.above.id}::uuid)
          AND (created, id) < (${createdBounds.below.value}::text::timestamptz, ${createdBounds.below.id}::uuid)
        ORDER BY created DESC, id DESC LIMIT ${limit})
    ) AS listed`;
  const lists = groupRows(projectIdsOf(scopes), rows as InstanceResource[], ({ projectId }) => projectId);
  return lists.map((volumes) => sortRows(volumes, order, range));
}

export function listSnapshots(database: Database, scopes: readonly ProjectScope[], slice: Slice<string>): Promise<Snapshot[][]> {
  return listProjectResources(database, 'snapshots', scopes, slice);
}

export function listBackups(database: Database, scopes: readonly ProjectScope[], slice: Slice<string>): Promise<Backup[][]> {
  return listProjectResources(database, 'backups', scopes, slice);
}

/**
 * The resources of a kind of each project, the oldest first. The bounds compare whole keys of the index, as those of
 * `listInstanceTasks` do.
 */
async function listProjectResources(
  database: Database,
  kind: InstanceResourceKind,
  scopes: readonly ProjectScope[],
  slice: Slice<string>,
): Promise<InstanceResource[][]> {
  const { above, below, limit, isAscending, within } = boundsFromStart(slice, 'asc');
  const query = database.queryInOrder(isAscending);
  const rows = await query<Nullable<InstanceResource>>`
    SELECT listed.* FROM unnest(${projectIdsOf(scopes)}::uuid[]) AS wanted (project_id)
    CROSS JOIN LATERAL (
      (SELECT id, project_id AS "projectId", instance_id AS "instanceId", name, size_gb AS "sizeGb", created FROM volumes
      WHERE ${kind}::text = 'volumes' AND project_id = wanted.project_id
        AND (project_id, id) > (wanted.project_id, ${above}::uuid)
        AND (project_id, id) < (wanted.project_id, ${below}::uuid) ORDER BY id DESC LIMIT ${limit})
      UNION ALL
      (SELECT id, project_id, instance_id, name, size_gb, created FROM snapshots
      WHERE ${kind}::text = 'snapshots' AND project_id = wanted.project_id
        AND (project_id, id) > (wanted.project_id, ${above}::uuid)
        AND (project_id, id) < (wanted.project_id, ${below}::uuid) ORDER BY id DESC LIMIT ${limit})
      UNION ALL
      (SELECT id, project_id, instance_id, name, size_gb, created FROM backups
      WHERE ${kind}::text = 'backups' AND project_id = wanted.project_id
        AND (project_id, id) > (wanted.project_id, ${above}::uuid)
        AND (project_id, id) < (wanted.project_id, ${below}::uuid) ORDER BY id DESC LIMIT ${limit})
    ) AS listed
    ORDER BY listed.id DESC`;
  return groupRows(projectIdsOf(scopes), within(rows as InstanceResource[]), ({ projectId }) => projectId);
}

export async function listVpcs(database: Database, scopes: readonly ProjectScope[], slice: Slice<string>): Promise<Vpc[][]> {
  const { above, below, limit, isAscending, within } = boundsFromStart(slice, 'asc');
  const query = database.queryInOrder(isAscending);
  const rows = await query<Vpc>`
    SELECT listed.* FROM unnest(${projectIdsOf(scopes)}::uuid[]) AS wanted (project_id)
    CROSS JOIN LATERAL (
      SELECT id, project_id AS "projectId", name, cidr, created FROM vpcs
      WHERE project_id = wanted.project_id
        AND (project_id, id) > (wanted.project_id, ${above}::uuid)
        AND (project_id, id) < (wanted.project_id, ${below}::uuid) ORDER BY id DESC LIMIT ${limit}
    ) AS listed
    ORDER BY listed.id DESC`;
  return groupRows(projectIdsOf(scopes), within(rows), ({ projectId }) => projectId);
}

/** The SSH keys of each project, without the public keys, which may be long: `readPublicKeys` reads them only where they are requested. */
export async function listSshKeys(database: Database, scopes: readonly ProjectScope[], slice: Slice<string>): Promise<SshKey[][]> {
  const { above, below, limit, isAscending, within } = boundsFromStart(slice, 'asc');
  const query = database.queryInOrder(isAscending);
  const rows = await query<Omit<SshKey, 'publicKey'>>`
    SELECT listed.* FROM unnest(${projectIdsOf(scopes)}::uuid[]) AS wanted (project_id)
    CROSS JOIN LATERAL (
      SELECT id, project_id AS "projectId", name, fingerprint, created FROM ssh_keys
      WHERE project_id = wanted.project_id
        AND (project_id, id) > (wanted.project_id, ${above}::uuid)
        AND (project_id, id) < (wanted.project_id, ${below}::uuid) ORDER BY id DESC LIMIT ${limit}
    ) AS listed
    ORDER BY listed.id DESC`;
  return groupRows(projectIdsOf(scopes), within(rows).map(withoutPublicKey), ({ projectId }) => projectId);
}

/** A key may be long: `readPublicKeys` reads it only where it is requested. */
const omitPublicKey = { omit: { publicKey: true } } as const;

function withoutPublicKey(key: Omit<SshKey, 'publicKey'>): SshKey {
  return { ...key, publicKey: '' };
}

/** The public keys of SSH keys. The caller has checked access to their projects. */
export function readPublicKeys(database: Database, ids: readonly string[], bytesLeft: number): Promise<SizedText[]> {
  return database.query<SizedText>`
    SELECT id, CASE WHEN sum(size) OVER (ORDER BY id) <= ${bytesLeft}::bigint THEN public_key ELSE '' END AS text, size AS bytes
    FROM (SELECT id, public_key, octet_length(public_key) AS size FROM ssh_keys WHERE id = ANY (${[...ids]}::uuid[])) AS weighed`;
}

/** The number of resources of a kind in each project, from the counters of the overview. */
export async function countResources(database: Database, scopes: readonly ProjectScope[], kind: ResourceKind): Promise<number[]> {
  const rows = await database.query<{ projectId: string; count: number | null }>`
    SELECT wanted.project_id AS "projectId", counted.count
    FROM unnest(${projectIdsOf(scopes)}::uuid[]) AS wanted (project_id)
    CROSS JOIN LATERAL (
      SELECT sum(resources)::int AS count FROM resource_counters
      WHERE project_id = wanted.project_id AND ${kind}::resource_kind = kind
    ) AS counted`;
  return pickCounts(projectIdsOf(scopes), rows, ({ projectId }) => projectId);
}

/** Resources by id; null for a resource outside the project it is requested in. */
export const findersByType = {
  Volume: async (database, requested) => pickInProject(requested, await database.prisma.volume.findMany(byIds(requested))),
  Snapshot: async (database, requested) => pickInProject(requested, await database.prisma.snapshot.findMany(byIds(requested))),
  Backup: async (database, requested) => pickInProject(requested, await database.prisma.backup.findMany(byIds(requested))),
  Vpc: async (database, requested) => pickInProject(requested, await database.prisma.vpc.findMany(byIds(requested))),
  SshKey: async (database, requested) => {
    const rows = await database.prisma.sshKey.findMany({ ...byIds(requested), ...omitPublicKey });
    return pickInProject(requested, rows.map(withoutPublicKey));
  },
} satisfies Partial<Record<NodeName, (database: Database, requested: readonly InProject[]) => Promise<Array<object | null>>>>;

/**
 * The resources of a kind of each instance in its current project, the oldest first, in one statement for all instances: those in
 * another project do not belong to it. The bounds compare whole keys of the index, as those of `listInstanceTasks` do.
 */
export async function listInstanceResources(
  database: Database,
  kind: InstanceResourceKind,
  instances: readonly InProject[],
  slice: Slice<string>,
): Promise<InstanceResource[][]> {
  const { above, below, limit, isAscending, within } = boundsFromStart(slice, 'asc');
  const { ids: instanceIds, projectIds } = columnsOf(instances);
  const query = database.queryInOrder(isAscending);
  const rows = await query<Nullable<InstanceResource>>`
    SELECT listed.* FROM unnest(${instanceIds}::uuid[], ${projectIds}::uuid[]) AS wanted (instance_id, project_id)
    CROSS JOIN LATERAL (
      (SELECT id, project_id AS "projectId", instance_id AS "instanceId", name, size_gb AS "sizeGb", created FROM volumes
      WHERE ${kind}::text = 'volumes' AND instance_id = wanted.instance_id AND project_id = wanted.project_id
        AND (instance_id, project_id, id) > (wanted.instance_id, wanted.project_id, ${above}::uuid)
        AND (instance_id, project_id, id) < (wanted.instance_id, wanted.project_id, ${below}::uuid) ORDER BY id DESC LIMIT ${limit})
      UNION ALL
      (SELECT id, project_id, instance_id, name, size_gb, created FROM snapshots
      WHERE ${kind}::text = 'snapshots' AND instance_id = wanted.instance_id AND project_id = wanted.project_id
        AND (instance_id, project_id, id) > (wanted.instance_id, wanted.project_id, ${above}::uuid)
        AND (instance_id, project_id, id) < (wanted.instance_id, wanted.project_id, ${below}::uuid) ORDER BY id DESC LIMIT ${limit})
      UNION ALL
      (SELECT id, project_id, instance_id, name, size_gb, created FROM backups
      WHERE ${kind}::text = 'backups' AND instance_id = wanted.instance_id AND project_id = wanted.project_id
        AND (instance_id, project_id, id) > (wanted.instance_id, wanted.project_id, ${above}::uuid)
        AND (instance_id, project_id, id) < (wanted.instance_id, wanted.project_id, ${below}::uuid) ORDER BY id DESC LIMIT ${limit})
    ) AS listed
    ORDER BY listed.id DESC`;
  return groupRows(instanceIds, within(rows as InstanceResource[]), ({ instanceId }) => instanceId);
}

/** The volumes of each instance, read along the index of the order. */
export async function listInstanceVolumes(
  database: Database,
  instances: readonly InProject[],
  slice: Slice<string>,
  order: Order,
): Promise<Volume[][]> {
  if (order.field === 'id') return listInstanceResources(database, 'volumes', instances, slice);
  const range = rangeOf(slice, order);
  const { nameBounds, createdBounds, limit, scanColumn, isAscending } = range;
  const query = database.queryInOrder(isAscending);
  const { ids: instanceIds, projectIds } = columnsOf(instances);
  const rows = await query<Nullable<InstanceResource>>`
    SELECT listed.id, listed.project_id AS "projectId", listed.instance_id AS "instanceId", listed.name, listed.size_gb AS "sizeGb", listed.created
    FROM unnest(${instanceIds}::uuid[], ${projectIds}::uuid[]) AS wanted (instance_id, project_id)
    CROSS JOIN LATERAL (
      (SELECT id, project_id, instance_id, name, size_gb, created FROM volumes
        WHERE ${scanColumn}::text = 'name' AND instance_id = wanted.instance_id AND project_id = wanted.project_id
          AND (left(name, 255) COLLATE "C", id) > (${nameBounds.above.value}, ${nameBounds.above.id}::uuid)
          AND (left(name, 255) COLLATE "C", id) < (${nameBounds.below.value}, ${nameBounds.below.id}::uuid)
        ORDER BY left(name, 255) COLLATE "C" DESC, id DESC LIMIT ${limit})
      UNION ALL
      (SELECT id, project_id, instance_id, name, size_gb, created FROM volumes
        WHERE ${scanColumn}::text = 'created' AND instance_id = wanted.instance_id AND project_id = wanted.project_id
          AND (created, id) > (${createdBounds.above.value}::text::timestamptz, ${createdBounds.above.id}::uuid)
          AND (created, id) < (${createdBounds.below.value}::text::timestamptz, ${createdBounds.below.id}::uuid)
        ORDER BY created DESC, id DESC LIMIT ${limit})
    ) AS listed`;
  const lists = groupRows(instanceIds, rows as InstanceResource[], ({ instanceId }) => instanceId);
  return lists.map((volumes) => sortRows(volumes, order, range));
}

/** The number of resources of a kind of each instance. */
export async function countInstanceResources(
  database: Database,
  instances: readonly InProject[],
  kind: InstanceResourceKind,
): Promise<number[]> {
  const { ids: instanceIds, projectIds } = columnsOf(instances);
  const rows = await database.query<{ instanceId: string | null; count: number | null }>`
    SELECT wanted.instance_id AS "instanceId",
      (CASE ${kind}::text
        WHEN 'volumes' THEN (SELECT count(*) FROM volumes WHERE instance_id = wanted.instance_id AND project_id = wanted.project_id)
        WHEN 'snapshots' THEN (SELECT count(*) FROM snapshots WHERE instance_id = wanted.instance_id AND project_id = wanted.project_id)
        ELSE (SELECT count(*) FROM backups WHERE instance_id = wanted.instance_id AND project_id = wanted.project_id)
      END)::int AS count
    FROM unnest(${instanceIds}::uuid[], ${projectIds}::uuid[]) AS wanted (instance_id, project_id)`;
  return pickCounts(instanceIds, rows, ({ instanceId }) => instanceId);
}

function byIds(requested: readonly InProject[]) {
  return { where: { id: { in: requested.map(({ id }) => id) } } };
}
