import type { ProjectScope } from '../access/scope.ts';
import type { Instance } from '../generated/prisma/client.ts';
import { InstanceStatus } from '../generated/prisma/enums.ts';
import type { Slice } from '../graph/connection.ts';
import { groupRows, idsOf, pickCounts } from '../graph/level.ts';
import { type Order, type Range, rangeOf, sortRows } from '../graph/order.ts';
import type { Database } from '../platform/database.ts';
import type { instanceAttentions } from './attention.ts';

/** What holds for all instances of a list. */
export interface InstanceFilter {
  readonly status?: InstanceStatus | null;
  readonly statuses?: readonly InstanceStatus[] | null;
  readonly attention?: (typeof instanceAttentions)[number] | null;
  readonly region?: string | null;
  readonly plan?: string | null;
  readonly namePrefix?: string | null;
}

/** All statuses, in the order in which they are sorted. */
export const instanceStatuses = Object.values(InstanceStatus);

/** The statuses that a filter leaves: all but `deleted`, unless some are named. */
export function statusesOf({ status, statuses }: InstanceFilter): InstanceStatus[] {
  const named = statuses && statuses.length > 0 ? statuses : null;
  if (!status && !named) return instanceStatuses.filter((known) => known !== 'deleted');
  return instanceStatuses.filter((known) => (!status || known === status) && (!named || named.includes(known)));
}

/** Where a filter leaves at most so many instances of a status in a project, all are sorted; with more of them the order is walked. */
const MOST_SORTED = 2_000;

/** A filter that finds what it leaves by an index of its own. */
type Way = 'region' | 'plan' | 'prefix' | (typeof instanceAttentions)[number];

/** The instances of one status in a project, as far as a slice goes. */
interface Part {
  readonly projectId: string;
  readonly status: string;
  readonly above: string;
  readonly below: string;
}

/**
 * The instances of each project in any order, as a filter leaves them: three statements at most, however many projects.
 * Along the index of an order, one status beside the other, no more is read than a page takes. Region, plan and (in another
 * order) the beginning of a name are only looked at on the way there: that is quick where they hold for many instances, and
 * where they hold for few, these few are sorted.
 */
export async function searchInstances(
  database: Database,
  scopes: readonly ProjectScope[],
  filter: InstanceFilter,
  order: Order,
  slice: Slice<string>,
): Promise<Instance[][]> {
  const projectIds = idsOf(scopes);
  const search = {
    filter,
    order,
    range: rangeOf(slice, order, { known: instanceStatuses, wanted: statusesOf(filter), prefix: filter.namePrefix ?? '' }),
  };
  const { statuses, idsAbove, idsBelow } = search.range;
  const parts = projectIds.flatMap((projectId) =>
    statuses.map((status, index): Part => ({ projectId, status, above: idsAbove[index] ?? '', below: idsBelow[index] ?? '' })),
  );
  const ways = await chooseWays(database, parts, search);
  const [few, many] = [parts.filter((_, index) => ways[index]), parts.filter((_, index) => !ways[index])];
  const found = await Promise.all([
    few.length === 0
      ? []
      : sortInstances(
          database,
          few,
          ways.filter((way) => way !== null),
          search,
        ),
    many.length === 0 ? [] : walkInstances(database, many, search),
  ]);
  const lists = groupRows(projectIds, found.flat() as Instance[], ({ projectId }) => projectId);
  return lists.map((rows) => sortRows(rows, order, search.range, instanceStatuses));
}

interface Search {
  readonly filter: InstanceFilter;
  readonly order: Order;
  readonly range: Range;
}

/** For each part the filter that leaves few of it, if any does. */
async function chooseWays(database: Database, parts: readonly Part[], { filter, order }: Search): Promise<Array<Way | null>> {
  const { region = null, plan = null, attention = null } = filter;
  if (attention) return parts.map(() => attention);
  // In the order of the names those with one beginning stand together.
  const prefix = order.field === 'name' || !filter.namePrefix ? null : filter.namePrefix;
  if (region === null && plan === null && prefix === null) return parts.map(() => null);
  const names = namesFrom(prefix ?? '');
  const limit = MOST_SORTED + 1;
  const rows = await database.query<{ region: number | null; plan: number | null; prefix: number | null }>`
    SELECT
      (SELECT count(*) FROM (
        SELECT FROM instances WHERE ${region}::text IS NOT NULL AND project_id = wanted.project_id AND status = wanted.status::instance_status
          AND region = ${region}::text LIMIT ${limit}
      ) AS found)::int AS region,
      (SELECT count(*) FROM (
        SELECT FROM instances WHERE ${plan}::text IS NOT NULL AND project_id = wanted.project_id AND status = wanted.status::instance_status
          AND plan = ${plan}::text LIMIT ${limit}
      ) AS found)::int AS plan,
      (SELECT count(*) FROM (
        SELECT FROM instances WHERE ${prefix}::text IS NOT NULL AND project_id = wanted.project_id AND status = wanted.status::instance_status
          AND left(name, 255) COLLATE "C" >= ${names.above.value} AND left(name, 255) COLLATE "C" < ${names.below.value} LIMIT ${limit}
      ) AS found)::int AS prefix
    FROM unnest(${parts.map(({ projectId }) => projectId)}::uuid[], ${parts.map(({ status }) => status)}::text[])
      WITH ORDINALITY AS wanted (project_id, status, place)
    ORDER BY place`;
  const given = Object.entries({ region, plan, prefix }).flatMap(([way, value]) =>
    value === null ? [] : [way as 'region' | 'plan' | 'prefix'],
  );
  return rows.map((counts) => {
    const [way] = given.toSorted((a, b) => (counts[a] ?? 0) - (counts[b] ?? 0));
    return way && (counts[way] ?? 0) <= MOST_SORTED ? way : null;
  });
}

function namesFrom(prefix: string): Range['names'] {
  return rangeOf({ after: undefined, before: undefined, limit: 0, backwards: false }, { field: 'id', direction: 'asc' }, { prefix }).names;
}

/**
 * Along the index of the order. The `OFFSET 0` keeps the filters out of what is walked over: a plan that knew of them might
 * take the index of a filter, and sort all that it finds there.
 */
function walkInstances(database: Database, parts: readonly Part[], { filter, range }: Search) {
  const { names, moments, limit, walk } = range;
  const { region = null, plan = null } = filter;
  const prefix = filter.namePrefix ?? '';
  return database.query<Row>`
    SELECT instance.id, instance.project_id AS "projectId", instance.name, instance.status, instance.plan, instance.region,
      instance.vcpu, instance.ram_mb AS "ramMb", instance.storage_gb AS "storageGb", instance.hypervisor, instance.throttled,
      instance.daily_backup AS "dailyBackup", instance.cancellation_at AS "cancellationAt",
      instance.billing_service_id AS "billingServiceId", instance.created, instance.modified
    FROM unnest(${parts.map(({ projectId }) => projectId)}::uuid[], ${parts.map(({ status }) => status)}::text[],
      ${parts.map(({ above }) => above)}::uuid[], ${parts.map(({ below }) => below)}::uuid[]) AS wanted (project_id, status, above, below)
    CROSS JOIN LATERAL (
      (SELECT * FROM (
          SELECT * FROM instances WHERE ${walk}::text = 'id asc' AND project_id = wanted.project_id AND status = wanted.status::instance_status
            AND (status, id) > (wanted.status::instance_status, wanted.above) AND (status, id) < (wanted.status::instance_status, wanted.below)
          ORDER BY status, id OFFSET 0
        ) AS walked
        WHERE (${region}::text IS NULL OR region = ${region}::text) AND (${plan}::text IS NULL OR plan = ${plan}::text) AND starts_with(name, ${prefix}::text)
        LIMIT ${limit})
      UNION ALL
      (SELECT * FROM (
          SELECT * FROM instances WHERE ${walk}::text = 'id desc' AND project_id = wanted.project_id AND status = wanted.status::instance_status
            AND (status, id) > (wanted.status::instance_status, wanted.above) AND (status, id) < (wanted.status::instance_status, wanted.below)
          ORDER BY status DESC, id DESC OFFSET 0
        ) AS walked
        WHERE (${region}::text IS NULL OR region = ${region}::text) AND (${plan}::text IS NULL OR plan = ${plan}::text) AND starts_with(name, ${prefix}::text)
        LIMIT ${limit})
      UNION ALL
      (SELECT * FROM (
          SELECT * FROM instances WHERE ${walk}::text = 'name asc' AND project_id = wanted.project_id AND status = wanted.status::instance_status
            AND (left(name, 255) COLLATE "C", id) > (${names.above.value}, ${names.above.id}::uuid) AND (left(name, 255) COLLATE "C", id) < (${names.below.value}, ${names.below.id}::uuid)
          ORDER BY left(name, 255) COLLATE "C", id OFFSET 0
        ) AS walked
        WHERE (${region}::text IS NULL OR region = ${region}::text) AND (${plan}::text IS NULL OR plan = ${plan}::text)
        LIMIT ${limit})
      UNION ALL
      (SELECT * FROM (
          SELECT * FROM instances WHERE ${walk}::text = 'name desc' AND project_id = wanted.project_id AND status = wanted.status::instance_status
            AND (left(name, 255) COLLATE "C", id) > (${names.above.value}, ${names.above.id}::uuid) AND (left(name, 255) COLLATE "C", id) < (${names.below.value}, ${names.below.id}::uuid)
          ORDER BY left(name, 255) COLLATE "C" DESC, id DESC OFFSET 0
        ) AS walked
        WHERE (${region}::text IS NULL OR region = ${region}::text) AND (${plan}::text IS NULL OR plan = ${plan}::text)
        LIMIT ${limit})
      UNION ALL
      (SELECT * FROM (
          SELECT * FROM instances WHERE ${walk}::text = 'created asc' AND project_id = wanted.project_id AND status = wanted.status::instance_status
            AND (created, id) > (${moments.above.value}::text::timestamptz, ${moments.above.id}::uuid) AND (created, id) < (${moments.below.value}::text::timestamptz, ${moments.below.id}::uuid)
          ORDER BY created, id OFFSET 0
        ) AS walked
        WHERE (${region}::text IS NULL OR region = ${region}::text) AND (${plan}::text IS NULL OR plan = ${plan}::text) AND starts_with(name, ${prefix}::text)
        LIMIT ${limit})
      UNION ALL
      (SELECT * FROM (
          SELECT * FROM instances WHERE ${walk}::text = 'created desc' AND project_id = wanted.project_id AND status = wanted.status::instance_status
            AND (created, id) > (${moments.above.value}::text::timestamptz, ${moments.above.id}::uuid) AND (created, id) < (${moments.below.value}::text::timestamptz, ${moments.below.id}::uuid)
          ORDER BY created DESC, id DESC OFFSET 0
        ) AS walked
        WHERE (${region}::text IS NULL OR region = ${region}::text) AND (${plan}::text IS NULL OR plan = ${plan}::text) AND starts_with(name, ${prefix}::text)
        LIMIT ${limit})
    ) AS instance`;
}

/** Finds all of a part that one filter leaves, by its own index and, for the `OFFSET 0`, by no other; sorts what the others leave of them. */
function sortInstances(database: Database, parts: readonly Part[], ways: readonly Way[], { filter, order, range }: Search) {
  const { names, moments, limit, isAscending } = range;
  const { region = null, plan = null } = filter;
  const now = new Date();
  // A range that is not asked for must not look large to a plan.
  const [first, last] = ways.includes('prefix') ? [names.above.value, names.below.value] : ['', ''];
  return database.query<Row>`
    SELECT instance.id, instance.project_id AS "projectId", instance.name, instance.status, instance.plan, instance.region,
      instance.vcpu, instance.ram_mb AS "ramMb", instance.storage_gb AS "storageGb", instance.hypervisor, instance.throttled,
      instance.daily_backup AS "dailyBackup", instance.cancellation_at AS "cancellationAt",
      instance.billing_service_id AS "billingServiceId", instance.created, instance.modified
    FROM unnest(${parts.map(({ projectId }) => projectId)}::uuid[], ${parts.map(({ status }) => status)}::text[],
      ${parts.map(({ above }) => above)}::uuid[], ${parts.map(({ below }) => below)}::uuid[], ${ways}::text[])
      AS wanted (project_id, status, above, below, way)
    CROSS JOIN LATERAL (
      SELECT listed.* FROM (
        SELECT found.*, row_number() OVER (ORDER BY
          CASE WHEN ${order.field}::text = 'name' THEN left(found.name, 255) END COLLATE "C",
          CASE WHEN ${order.field}::text = 'created' THEN found.created END, found.id) AS place
        FROM (
          SELECT * FROM instances WHERE wanted.way = 'without_hypervisor'
            AND project_id = wanted.project_id AND status = wanted.status::instance_status AND hypervisor IS NULL AND status <> 'deleted'
          UNION ALL
          SELECT * FROM instances WHERE wanted.way = 'suspended'
            AND project_id = wanted.project_id AND status = wanted.status::instance_status AND status = 'suspended'
          UNION ALL
          SELECT * FROM instances WHERE wanted.way = 'throttled'
            AND project_id = wanted.project_id AND status = wanted.status::instance_status AND throttled AND status <> 'deleted'
          UNION ALL
          SELECT * FROM instances WHERE wanted.way = 'cancellation_scheduled'
            AND project_id = wanted.project_id AND status = wanted.status::instance_status AND cancellation_at > ${now} AND status <> 'deleted'
          UNION ALL
          SELECT * FROM instances WHERE wanted.way = 'region'
            AND project_id = wanted.project_id AND status = wanted.status::instance_status AND region = ${region}::text
          UNION ALL
          SELECT * FROM instances WHERE wanted.way = 'plan'
            AND project_id = wanted.project_id AND status = wanted.status::instance_status AND plan = ${plan}::text
          UNION ALL
          SELECT * FROM instances WHERE wanted.way = 'prefix'
            AND project_id = wanted.project_id AND status = wanted.status::instance_status AND left(name, 255) COLLATE "C" >= ${first} AND left(name, 255) COLLATE "C" < ${last}
          OFFSET 0
        ) AS found
        WHERE (${region}::text IS NULL OR region = ${region}::text) AND (${plan}::text IS NULL OR plan = ${plan}::text)
          AND id > wanted.above AND id < wanted.below
          AND (left(name, 255) COLLATE "C", id) > (${names.above.value}, ${names.above.id}::uuid)
          AND (left(name, 255) COLLATE "C", id) < (${names.below.value}, ${names.below.id}::uuid)
          AND (created, id) > (${moments.above.value}::text::timestamptz, ${moments.above.id}::uuid)
          AND (created, id) < (${moments.below.value}::text::timestamptz, ${moments.below.id}::uuid)
      ) AS listed
      ORDER BY CASE WHEN ${isAscending}::boolean THEN place ELSE -place END LIMIT ${limit}
    ) AS instance`;
}

/** Of parts that are put together PostgreSQL does not know what cannot be null. */
type Row = { readonly [Name in keyof Instance]: Instance[Name] | null };

/** How many there are in each list of a filter that no counter tells: an index entry of each is looked at, and the row for a name. */
export async function countFound(database: Database, projectIds: readonly string[], filter: InstanceFilter): Promise<number[]> {
  const { region = null, plan = null, attention = null } = filter;
  const prefix = filter.namePrefix ?? '';
  const way: Way = attention ?? (prefix === '' ? (region === null ? 'plan' : 'region') : 'prefix');
  const names = namesFrom(prefix);
  const now = new Date();
  const parts = projectIds.flatMap((projectId) => statusesOf(filter).map((status) => ({ projectId, status })));
  const rows = await database.query<{ projectId: string | null; count: number }>`
    SELECT wanted.project_id AS "projectId", sum(counted.count)::int AS count
    FROM unnest(${parts.map(({ projectId }) => projectId)}::uuid[], ${parts.map(({ status }) => status)}::text[]) AS wanted (project_id, status)
    CROSS JOIN LATERAL (
      SELECT count(*) AS count FROM (
        SELECT region, plan, name FROM instances WHERE ${way}::text = 'without_hypervisor'
          AND project_id = wanted.project_id AND status = wanted.status::instance_status AND hypervisor IS NULL AND status <> 'deleted'
        UNION ALL
        SELECT region, plan, name FROM instances WHERE ${way}::text = 'suspended'
          AND project_id = wanted.project_id AND status = wanted.status::instance_status AND status = 'suspended'
        UNION ALL
        SELECT region, plan, name FROM instances WHERE ${way}::text = 'throttled'
          AND project_id = wanted.project_id AND status = wanted.status::instance_status AND throttled AND status <> 'deleted'
        UNION ALL
        SELECT region, plan, name FROM instances WHERE ${way}::text = 'cancellation_scheduled'
          AND project_id = wanted.project_id AND status = wanted.status::instance_status AND cancellation_at > ${now} AND status <> 'deleted'
        UNION ALL
        SELECT region, plan, NULL FROM instances WHERE ${way}::text = 'region'
          AND project_id = wanted.project_id AND status = wanted.status::instance_status AND region = ${region}::text
        UNION ALL
        SELECT region, plan, NULL FROM instances WHERE ${way}::text = 'plan'
          AND project_id = wanted.project_id AND status = wanted.status::instance_status AND plan = ${plan}::text
        UNION ALL
        SELECT region, plan, NULL FROM instances WHERE ${way}::text = 'prefix'
          AND project_id = wanted.project_id AND status = wanted.status::instance_status AND left(name, 255) COLLATE "C" >= ${names.above.value} AND left(name, 255) COLLATE "C" < ${names.below.value}
      ) AS found
      WHERE (${region}::text IS NULL OR region = ${region}::text) AND (${plan}::text IS NULL OR plan = ${plan}::text)
        AND (name IS NULL OR starts_with(name, ${prefix}::text))
    ) AS counted
    GROUP BY wanted.project_id`;
  return pickCounts(projectIds, rows, ({ projectId }) => projectId);
}
