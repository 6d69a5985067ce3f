import { type ProjectScope, projectIdsOf } from '../access/scope.ts';
import type { Instance } from '../generated/prisma/client.ts';
import type { InstanceStatus } from '../generated/prisma/enums.ts';
import type { Slice } from '../graph/keyset.ts';
import { boundsOfPrefix, type Order, type Range, rangeOf, sortRows } from '../graph/order.ts';
import { groupRows, type Nullable, pickCounts } from '../kernel/rows.ts';
import type { Database } from '../platform/database.ts';
import type { InstanceAttention } from './attention.ts';
import { instanceStatuses, type StatusFilter, selectInstanceStatuses } from './statuses.ts';

/** The conditions that every instance of a list meets. */
export interface InstanceFilter extends StatusFilter<InstanceStatus> {
  readonly attention?: InstanceAttention | null;
  readonly region?: string | null;
  readonly plan?: string | null;
  readonly namePrefix?: string | null;
}

/** The largest number of instances of one status in a project that is read whole and sorted; above it, the order's index is scanned. */
const MAX_SORTED = 2_000;

/** A filter with an index of its own, through which its matches are read. */
type AccessPath = 'region' | 'plan' | 'prefix' | InstanceAttention;

/** The instances of one status in a project, between two ids. */
interface Partition {
  readonly projectId: string;
  readonly status: string;
  readonly above: string;
  readonly below: string;
}

/**
 * The instances of each project that match a filter, in any order: at most three statements, however many projects. Each
 * status is a partition of its own. By default a partition is scanned along the index of the order, which reads no more than
 * a page where nothing else is filtered; region, plan and (unless ordered by name) the name prefix are checked row by row.
 * A scan is fast where many instances match. Where few match, these few are read through the filter's own index and sorted:
 * `region >= ''`, true of every region, is the condition of that index, so that no other statement takes it.
 */
export async function searchInstances(
  database: Database,
  scopes: readonly ProjectScope[],
  filter: InstanceFilter,
  order: Order,
  slice: Slice<string>,
): Promise<Instance[][]> {
  const projectIds = projectIdsOf(scopes);
  const search = {
    filter,
    order,
    range: rangeOf(slice, order, { known: instanceStatuses, wanted: selectInstanceStatuses(filter), prefix: filter.namePrefix ?? '' }),
  };
  const { statuses, idsAbove, idsBelow } = search.range;
  const partitions = projectIds.flatMap((projectId) =>
    statuses.map((status, index): Partition => ({ projectId, status, above: idsAbove[index] ?? '', below: idsBelow[index] ?? '' })),
  );
  const paths = await choosePaths(database, partitions, search);
  const sorted = partitions.filter((_, index) => paths[index]);
  const scanned = partitions.filter((_, index) => !paths[index]);
  const sortedPaths = paths.filter((path) => path !== null);
  const found = await Promise.all([
    sorted.length === 0 ? [] : sortInstances(database, sorted, sortedPaths, search),
    scanned.length === 0 ? [] : scanInstances(database, scanned, search),
  ]);
  const lists = groupRows(projectIds, found.flat() as Instance[], ({ projectId }) => projectId);
  return lists.map((rows) => sortRows(rows, order, search.range, instanceStatuses));
}

interface Search {
  readonly filter: InstanceFilter;
  readonly order: Order;
  readonly range: Range;
}

/** For each partition the filter that matches the fewest of its rows; null where none matches few enough to be sorted. */
async function choosePaths(
  database: Database,
  partitions: readonly Partition[],
  { filter, order }: Search,
): Promise<Array<AccessPath | null>> {
  const { region = null, plan = null, attention = null } = filter;
  if (attention) return partitions.map(() => attention);
  // In the order of the names, the matches of a prefix are adjacent: the scan reads them directly.
  const prefix = order.field === 'name' || !filter.namePrefix ? null : filter.namePrefix;
  if (region === null && plan === null && prefix === null) return partitions.map(() => null);
  const nameBounds = boundsOfPrefix(prefix ?? '');
  const limit = MAX_SORTED + 1;
  const rows = await database.query<{ region: number | null; plan: number | null; prefix: number | null }>`
    SELECT
      (SELECT count(*) FROM (
        SELECT FROM instances WHERE ${region}::text IS NOT NULL AND project_id = wanted.project_id AND status = wanted.status::instance_status
          AND region >= '' AND region = ${region}::text LIMIT ${limit}
      ) AS found)::int AS region,
      (SELECT count(*) FROM (
        SELECT FROM instances WHERE ${plan}::text IS NOT NULL AND project_id = wanted.project_id AND status = wanted.status::instance_status
          AND plan >= '' AND plan = ${plan}::text LIMIT ${limit}
      ) AS found)::int AS plan,
      (SELECT count(*) FROM (
        SELECT FROM instances WHERE ${prefix}::text IS NOT NULL AND project_id = wanted.project_id AND status = wanted.status::instance_status
          AND left(name, 255) COLLATE "C" >= ${nameBounds.above.value} AND left(name, 255) COLLATE "C" < ${nameBounds.below.value} LIMIT ${limit}
      ) AS found)::int AS prefix
    FROM unnest(${partitions.map(({ projectId }) => projectId)}::uuid[], ${partitions.map(({ status }) => status)}::text[])
      WITH ORDINALITY AS wanted (project_id, status, place)
    ORDER BY place`;
  const values = { region, plan, prefix };
  const given = (['region', 'plan', 'prefix'] as const).filter((path) => values[path] !== null);
  return rows.map((counts) => {
    const [path] = given.toSorted((a, b) => (counts[a] ?? 0) - (counts[b] ?? 0));
    return path && (counts[path] ?? 0) <= MAX_SORTED ? path : null;
  });
}

/**
 * Scans the index of the order. `OFFSET 0` keeps the planner from pushing the filters into the scan: it might then use the
 * index of a filter, and sort all of its matches. Each branch has the filters and the limit for itself: behind the union they
 * would be applied to the rows of all branches, which the planner then sorts. Without `CASE` the planner expects one row that passes the
 * filters, and so sorts the whole partition.
 */
function scanInstances(database: Database, partitions: readonly Partition[], { filter, range }: Search) {
  const { nameBounds, createdBounds, limit, scanColumn, isAscending } = range;
  const { region = null, plan = null } = filter;
  const prefix = filter.namePrefix ?? '';
  const query = database.queryInOrder(isAscending);
  return query<Nullable<Instance>>`
    SELECT instance.id, instance.project_id AS "projectId", instance.name, instance.status, instance.plan, instance.region,
      instance.vcpu, instance.ram_mb AS "ramMb", instance.storage_gb AS "storageGb", instance.hypervisor, instance.throttled,
      instance.daily_backup AS "dailyBackup", instance.cancellation_at AS "cancellationAt",
      instance.billing_service_id AS "billingServiceId", instance.created, instance.modified
    FROM unnest(${partitions.map(({ projectId }) => projectId)}::uuid[], ${partitions.map(({ status }) => status)}::text[],
      ${partitions.map(({ above }) => above)}::uuid[], ${partitions.map(({ below }) => below)}::uuid[]) AS wanted (project_id, status, above, below)
    CROSS JOIN LATERAL (
      (SELECT * FROM (
          SELECT * FROM instances WHERE ${scanColumn}::text = 'id' AND project_id = wanted.project_id AND status = wanted.status::instance_status
            AND (status, id) > (wanted.status::instance_status, wanted.above) AND (status, id) < (wanted.status::instance_status, wanted.below)
          ORDER BY status DESC, id DESC OFFSET 0
        ) AS scanned
        WHERE CASE WHEN (${region}::text IS NULL OR region = ${region}::text) AND (${plan}::text IS NULL OR plan = ${plan}::text)
          AND starts_with(name, ${prefix}::text) THEN true ELSE false END
        LIMIT ${limit})
      UNION ALL
      (SELECT * FROM (
          SELECT * FROM instances WHERE ${scanColumn}::text = 'name' AND project_id = wanted.project_id AND status = wanted.status::instance_status
            AND (left(name, 255) COLLATE "C", id) > (${nameBounds.above.value}, ${nameBounds.above.id}::uuid) AND (left(name, 255) COLLATE "C", id) < (${nameBounds.below.value}, ${nameBounds.below.id}::uuid)
          ORDER BY left(name, 255) COLLATE "C" DESC, id DESC OFFSET 0
        ) AS scanned
        WHERE CASE WHEN (${region}::text IS NULL OR region = ${region}::text) AND (${plan}::text IS NULL OR plan = ${plan}::text)
          THEN true ELSE false END
        LIMIT ${limit})
      UNION ALL
      (SELECT * FROM (
          SELECT * FROM instances WHERE ${scanColumn}::text = 'created' AND project_id = wanted.project_id AND status = wanted.status::instance_status
            AND (created, id) > (${createdBounds.above.value}::text::timestamptz, ${createdBounds.above.id}::uuid) AND (created, id) < (${createdBounds.below.value}::text::timestamptz, ${createdBounds.below.id}::uuid)
          ORDER BY created DESC, id DESC OFFSET 0
        ) AS scanned
        WHERE CASE WHEN (${region}::text IS NULL OR region = ${region}::text) AND (${plan}::text IS NULL OR plan = ${plan}::text)
          AND starts_with(name, ${prefix}::text) THEN true ELSE false END
        LIMIT ${limit})
    ) AS instance`;
}

/**
 * Reads all matches of one filter in a partition, applies the other filters, and sorts what is left. `OFFSET 0` keeps the
 * planner from using any other index than that of the chosen filter.
 */
function sortInstances(
  database: Database,
  partitions: readonly Partition[],
  paths: readonly AccessPath[],
  { filter, order, range }: Search,
) {
  const { nameBounds, createdBounds, limit, isAscending } = range;
  const { region = null, plan = null } = filter;
  const now = new Date();
  // An unused range is empty, or the planner would expect many rows of it.
  const [first, last] = paths.includes('prefix') ? [nameBounds.above.value, nameBounds.below.value] : ['', ''];
  const query = database.queryInOrder(isAscending);
  return query<Nullable<Instance>>`
    SELECT instance.id, instance.project_id AS "projectId", instance.name, instance.status, instance.plan, instance.region,
      instance.vcpu, instance.ram_mb AS "ramMb", instance.storage_gb AS "storageGb", instance.hypervisor, instance.throttled,
      instance.daily_backup AS "dailyBackup", instance.cancellation_at AS "cancellationAt",
      instance.billing_service_id AS "billingServiceId", instance.created, instance.modified
    FROM unnest(${partitions.map(({ projectId }) => projectId)}::uuid[], ${partitions.map(({ status }) => status)}::text[],
      ${partitions.map(({ above }) => above)}::uuid[], ${partitions.map(({ below }) => below)}::uuid[], ${paths}::text[])
      AS wanted (project_id, status, above, below, path)
    CROSS JOIN LATERAL (
      SELECT found.* FROM (
        SELECT * FROM instances WHERE wanted.path = 'without_hypervisor'
          AND project_id = wanted.project_id AND status = wanted.status::instance_status AND hypervisor IS NULL AND status <> 'deleted'
        UNION ALL
        SELECT * FROM instances WHERE wanted.path = 'suspended'
          AND project_id = wanted.project_id AND status = wanted.status::instance_status AND status = 'suspended'
        UNION ALL
        SELECT * FROM instances WHERE wanted.path = 'throttled'
          AND project_id = wanted.project_id AND status = wanted.status::instance_status AND throttled AND status <> 'deleted'
        UNION ALL
        SELECT * FROM instances WHERE wanted.path = 'cancellation_scheduled'
          AND project_id = wanted.project_id AND status = wanted.status::instance_status AND cancellation_at > ${now} AND status <> 'deleted'
        UNION ALL
        SELECT * FROM instances WHERE wanted.path = 'region'
          AND project_id = wanted.project_id AND status = wanted.status::instance_status AND region >= '' AND region = ${region}::text
        UNION ALL
        SELECT * FROM instances WHERE wanted.path = 'plan'
          AND project_id = wanted.project_id AND status = wanted.status::instance_status AND plan >= '' AND plan = ${plan}::text
        UNION ALL
        SELECT * FROM instances WHERE wanted.path = 'prefix'
          AND project_id = wanted.project_id AND status = wanted.status::instance_status AND left(name, 255) COLLATE "C" >= ${first} AND left(name, 255) COLLATE "C" < ${last}
        OFFSET 0
      ) AS found
      WHERE (${region}::text IS NULL OR region = ${region}::text) AND (${plan}::text IS NULL OR plan = ${plan}::text)
        AND id > wanted.above AND id < wanted.below
        AND (left(name, 255) COLLATE "C", id) > (${nameBounds.above.value}, ${nameBounds.above.id}::uuid)
        AND (left(name, 255) COLLATE "C", id) < (${nameBounds.below.value}, ${nameBounds.below.id}::uuid)
        AND (created, id) > (${createdBounds.above.value}::text::timestamptz, ${createdBounds.above.id}::uuid)
        AND (created, id) < (${createdBounds.below.value}::text::timestamptz, ${createdBounds.below.id}::uuid)
      ORDER BY CASE WHEN ${order.field}::text = 'name' THEN left(name, 255) END COLLATE "C" DESC,
        CASE WHEN ${order.field}::text = 'created' THEN created END DESC, id DESC LIMIT ${limit}
    ) AS instance`;
}

/**
 * The length of each project's list, for a filter that the counters do not cover. Reads one index entry for each counted
 * instance, and for a name prefix also its row.
 */
export async function countMatchingInstances(database: Database, projectIds: readonly string[], filter: InstanceFilter): Promise<number[]> {
  const { region = null, plan = null, attention = null } = filter;
  const prefix = filter.namePrefix ?? '';
  const path: AccessPath = attention ?? (prefix === '' ? (region === null ? 'plan' : 'region') : 'prefix');
  const nameBounds = boundsOfPrefix(prefix);
  const now = new Date();
  const partitions = projectIds.flatMap((projectId) => selectInstanceStatuses(filter).map((status) => ({ projectId, status })));
  const rows = await database.query<{ projectId: string | null; count: number }>`
    SELECT wanted.project_id AS "projectId", sum(counted.count)::int AS count
    FROM unnest(${partitions.map(({ projectId }) => projectId)}::uuid[], ${partitions.map(({ status }) => status)}::text[]) AS wanted (project_id, status)
    CROSS JOIN LATERAL (
      SELECT count(*) AS count FROM (
        SELECT region, plan, name FROM instances WHERE ${path}::text = 'without_hypervisor'
          AND project_id = wanted.project_id AND status = wanted.status::instance_status AND hypervisor IS NULL AND status <> 'deleted'
        UNION ALL
        SELECT region, plan, name FROM instances WHERE ${path}::text = 'suspended'
          AND project_id = wanted.project_id AND status = wanted.status::instance_status AND status = 'suspended'
        UNION ALL
        SELECT region, plan, name FROM instances WHERE ${path}::text = 'throttled'
          AND project_id = wanted.project_id AND status = wanted.status::instance_status AND throttled AND status <> 'deleted'
        UNION ALL
        SELECT region, plan, name FROM instances WHERE ${path}::text = 'cancellation_scheduled'
          AND project_id = wanted.project_id AND status = wanted.status::instance_status AND cancellation_at > ${now} AND status <> 'deleted'
        UNION ALL
        SELECT region, plan, NULL FROM instances WHERE ${path}::text = 'region'
          AND project_id = wanted.project_id AND status = wanted.status::instance_status AND region >= '' AND region = ${region}::text
        UNION ALL
        SELECT region, plan, NULL FROM instances WHERE ${path}::text = 'plan'
          AND project_id = wanted.project_id AND status = wanted.status::instance_status AND plan >= '' AND plan = ${plan}::text
        UNION ALL
        SELECT region, plan, NULL FROM instances WHERE ${path}::text = 'prefix'
          AND project_id = wanted.project_id AND status = wanted.status::instance_status AND left(name, 255) COLLATE "C" >= ${nameBounds.above.value} AND left(name, 255) COLLATE "C" < ${nameBounds.below.value}
      ) AS found
      WHERE (${region}::text IS NULL OR region = ${region}::text) AND (${plan}::text IS NULL OR plan = ${plan}::text)
        AND (name IS NULL OR starts_with(name, ${prefix}::text))
    ) AS counted
    GROUP BY wanted.project_id`;
  return pickCounts(projectIds, rows, ({ projectId }) => projectId);
}
