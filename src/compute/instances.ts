import { type InProject, type ProjectScope, projectIdsOf } from '../access/scope.ts';
import type { Instance } from '../generated/prisma/client.ts';
import type { InstanceStatus } from '../generated/prisma/enums.ts';
import type { Context } from '../graph/context.ts';
import { boundsFromStart, type Slice } from '../graph/keyset.ts';
import type { Order } from '../graph/order.ts';
import { Fault } from '../kernel/fault.ts';
import { type Page, type PageRange, type PageRequest, resolvePage } from '../kernel/page.ts';
import { groupRows, pickCounts, pickRows } from '../kernel/rows.ts';
import { createSharedLoader } from '../kernel/sharedloader.ts';
import { parseUuid } from '../kernel/uuid.ts';
import type { Database } from '../platform/database.ts';
import type { InstanceAttention } from './attention.ts';
import { countMatchingInstances, type InstanceFilter, searchInstances } from './instancesearch.ts';
import { selectInstanceStatuses } from './statuses.ts';

/** The default order: the oldest first. */
export const defaultInstanceOrder: Order = { field: 'id', direction: 'asc' };

/** The instances of each project; deleted ones only where the filter names their status. */
export async function listInstances(
  database: Database,
  scopes: readonly ProjectScope[],
  filter: InstanceFilter,
  order: Order,
  slice: Slice<string>,
): Promise<Instance[][]> {
  const { status, attention } = filter;
  const isOfStatus = Boolean(filter.statuses?.length || (status && !attention));
  if (order.field !== 'id' || isOfStatus || isSearch(filter)) return searchInstances(database, scopes, filter, order, slice);
  if (attention) return listAttentiveInstances(database, scopes, { status, attention }, slice);
  const { above, below, limit, isAscending, within } = boundsFromStart(slice, 'asc');
  const query = database.queryInOrder(isAscending);
  const rows = await query<Instance>`
    SELECT listed.* FROM unnest(${projectIdsOf(scopes)}::uuid[]) AS wanted (project_id)
    CROSS JOIN LATERAL (
      SELECT instance.id, instance.project_id AS "projectId", instance.name, instance.status, instance.plan, instance.region,
        instance.vcpu, instance.ram_mb AS "ramMb", instance.storage_gb AS "storageGb", instance.hypervisor, instance.throttled,
        instance.daily_backup AS "dailyBackup", instance.cancellation_at AS "cancellationAt",
        instance.billing_service_id AS "billingServiceId", instance.created, instance.modified
      FROM instances AS instance
      WHERE instance.project_id = wanted.project_id AND instance.status <> 'deleted'
        AND (instance.project_id, instance.id) > (wanted.project_id, ${above}::uuid)
        AND (instance.project_id, instance.id) < (wanted.project_id, ${below}::uuid)
      ORDER BY instance.id DESC LIMIT ${limit}
    ) AS listed
    ORDER BY listed.id DESC`;
  return groupRows(projectIdsOf(scopes), within(rows), ({ projectId }) => projectId);
}

/**
 * The instances that a figure of `attention` counts. Each figure has its own partial index, whose condition must be a literal
 * part of the statement: the planner cannot match a parameter to it.
 */
async function listAttentiveInstances(
  database: Database,
  scopes: readonly ProjectScope[],
  { status = null, attention }: Pick<InstanceFilter, 'status'> & { readonly attention: InstanceAttention },
  slice: Slice<string>,
): Promise<Instance[][]> {
  const { above, below, limit, isAscending, within } = boundsFromStart(slice, 'asc');
  const now = new Date();
  const query = database.queryInOrder(isAscending);
  const rows = await query<Instance>`
    SELECT listed.* FROM unnest(${projectIdsOf(scopes)}::uuid[]) AS wanted (project_id)
    CROSS JOIN LATERAL (
      SELECT instance.id, instance.project_id AS "projectId", instance.name, instance.status, instance.plan, instance.region,
        instance.vcpu, instance.ram_mb AS "ramMb", instance.storage_gb AS "storageGb", instance.hypervisor, instance.throttled,
        instance.daily_backup AS "dailyBackup", instance.cancellation_at AS "cancellationAt",
        instance.billing_service_id AS "billingServiceId", instance.created, instance.modified
      FROM (
        (SELECT id FROM instances WHERE ${attention}::text = 'without_hypervisor' AND project_id = wanted.project_id
          AND hypervisor IS NULL AND status <> 'deleted' AND (${status}::instance_status IS NULL OR ${status}::instance_status = status)
          AND (project_id, id) > (wanted.project_id, ${above}::uuid) AND (project_id, id) < (wanted.project_id, ${below}::uuid)
          ORDER BY id DESC LIMIT ${limit})
        UNION ALL
        (SELECT id FROM instances WHERE ${attention}::text = 'suspended' AND project_id = wanted.project_id
          AND status = 'suspended' AND (${status}::instance_status IS NULL OR ${status}::instance_status = status)
          AND (status, id) > ('suspended', ${above}::uuid) AND (status, id) < ('suspended', ${below}::uuid)
          ORDER BY status DESC, id DESC LIMIT ${limit})
        UNION ALL
        (SELECT id FROM instances WHERE ${attention}::text = 'throttled' AND project_id = wanted.project_id
          AND throttled AND status <> 'deleted' AND (${status}::instance_status IS NULL OR ${status}::instance_status = status)
          AND (project_id, id) > (wanted.project_id, ${above}::uuid) AND (project_id, id) < (wanted.project_id, ${below}::uuid)
          ORDER BY id DESC LIMIT ${limit})
        UNION ALL
        (SELECT id FROM instances WHERE ${attention}::text = 'cancellation_scheduled' AND project_id = wanted.project_id
          AND cancellation_at > ${now} AND status <> 'deleted' AND (${status}::instance_status IS NULL OR ${status}::instance_status = status)
          AND (project_id, id) > (wanted.project_id, ${above}::uuid) AND (project_id, id) < (wanted.project_id, ${below}::uuid)
          ORDER BY id DESC LIMIT ${limit})
      ) AS found
      JOIN instances AS instance ON instance.id = found.id
    ) AS listed
    ORDER BY listed.id DESC`;
  return groupRows(projectIdsOf(scopes), within(rows), ({ projectId }) => projectId);
}

/** Whether the filter has a condition that the counters do not cover. */
function isSearch({ region, plan, namePrefix }: InstanceFilter): boolean {
  return Boolean(namePrefix) || (region ?? plan ?? null) !== null;
}

/** The length of each project's list, from the counters of the overview where they cover the filter. */
export async function countInstances(database: Database, scopes: readonly ProjectScope[], filter: InstanceFilter): Promise<number[]> {
  const { attention = null } = filter;
  const projectIds = projectIdsOf(scopes);
  if (isSearch(filter)) return countMatchingInstances(database, projectIds, filter);
  const rows =
    attention === 'cancellation_scheduled'
      ? await database.query<{ projectId: string; count: number }>`
    SELECT project_id AS "projectId", count(*)::int AS count FROM instances
    WHERE project_id = ANY (${projectIds}::uuid[]) AND cancellation_at > ${new Date()} AND status <> 'deleted'
      AND status = ANY (${selectInstanceStatuses(filter)}::text[]::instance_status[])
    GROUP BY project_id`
      : await database.query<{ projectId: string; count: number | null }>`
    SELECT wanted.project_id AS "projectId", counted.count
    FROM unnest(${projectIds}::uuid[]) AS wanted (project_id)
    CROSS JOIN LATERAL (
      SELECT sum(CASE ${attention}::text WHEN 'without_hypervisor' THEN without_hypervisor WHEN 'throttled' THEN throttled ELSE instances END)::int
        AS count
      FROM instance_counters
      WHERE project_id = wanted.project_id AND status = ANY (${selectInstanceStatuses(filter)}::text[]::instance_status[])
        AND (${attention}::text IS NULL OR status <> 'deleted') AND (${attention}::text IS DISTINCT FROM 'suspended' OR status = 'suspended')
    ) AS counted`;
  return pickCounts(projectIds, rows, ({ projectId }) => projectId);
}

/** One page of the instances of a project (§2.7), the oldest first. Throws `not_found` past the end. */
export function pageInstances(
  { loadByProject }: Context,
  scope: ProjectScope,
  paging: PageRequest,
  status: InstanceStatus | null,
): Promise<Page<Instance>> {
  return resolvePage(
    paging,
    () => loadByProject(countInstances, scope, { status }),
    (range) => loadByProject(readInstances, scope, { status, ...range }),
  );
}

interface InstanceRange extends PageRange {
  readonly status: InstanceStatus | null;
}

/** Each skipped row costs one index entry; the row itself is not read. */
async function readInstances(
  database: Database,
  scopes: readonly ProjectScope[],
  { status, limit, offset }: InstanceRange,
): Promise<Instance[][]> {
  const rows = await database.query<Instance>`
    SELECT instance.id, instance.project_id AS "projectId", instance.name, instance.status, instance.plan, instance.region,
      instance.vcpu, instance.ram_mb AS "ramMb", instance.storage_gb AS "storageGb", instance.hypervisor, instance.throttled,
      instance.daily_backup AS "dailyBackup", instance.cancellation_at AS "cancellationAt",
      instance.billing_service_id AS "billingServiceId", instance.created, instance.modified
    FROM unnest(${projectIdsOf(scopes)}::uuid[]) AS wanted (project_id)
    CROSS JOIN LATERAL (
      (SELECT id FROM instances WHERE (SELECT ${status}::instance_status IS NULL) AND project_id = wanted.project_id AND status <> 'deleted'
        ORDER BY id LIMIT ${limit} OFFSET ${offset})
      UNION ALL
      (SELECT id FROM instances WHERE project_id = wanted.project_id AND (SELECT ${status}::instance_status) = status
        ORDER BY id LIMIT ${limit} OFFSET ${offset})
    ) AS listed
    CROSS JOIN LATERAL (SELECT * FROM instances WHERE instances.id = listed.id LIMIT 1) AS instance
    ORDER BY instance.id`;
  return groupRows(projectIdsOf(scopes), rows, ({ projectId }) => projectId);
}

/** Throws `not_found` for a malformed id, and for an instance of another project. */
export async function getInstance({ database, projectId }: ProjectScope, id: string): Promise<Instance> {
  const instanceId = parseUuid(id);
  const instance = instanceId && (await findInstance(database.shared, instanceId));
  if (!instance || instance.projectId !== projectId) throw Fault.notFound();
  return instance;
}

const findInstance = createSharedLoader(async (database: Database, ids: readonly string[]) => {
  const rows = await database.query<Instance>`
      SELECT id, project_id AS "projectId", name, status, plan, region, vcpu, ram_mb AS "ramMb", storage_gb AS "storageGb",
        hypervisor, throttled, daily_backup AS "dailyBackup", cancellation_at AS "cancellationAt",
        billing_service_id AS "billingServiceId", created, modified
      FROM instances WHERE id = ANY (${ids}::uuid[])`;
  return pickRows(ids, rows, ({ id }) => id);
});

/** Instances by id; null for an instance outside the project it is requested in. */
export function findInstances(database: Database, requested: readonly InProject[]): Promise<Array<Instance | null>> {
  return Promise.all(
    requested.map(async ({ scope, id }) => {
      const instance = await findInstance(database.shared, id);
      return instance?.projectId === scope.projectId ? instance : null;
    }),
  );
}
