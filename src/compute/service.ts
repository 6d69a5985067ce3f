import type { ProjectScope } from '../access/scope.ts';
import { type Instance, Prisma, type Task } from '../generated/prisma/client.ts';
import type { InstanceStatus, TaskStatus } from '../generated/prisma/enums.ts';
import { inSlice, type Slice } from '../graph/connection.ts';
import { batchByOwner } from '../kernel/batch.ts';
import { Fault } from '../kernel/fault.ts';
import { parseUuid } from '../kernel/uuid.ts';
import type { Database } from '../platform/database.ts';

export interface StatusCount {
  readonly status: string;
  readonly count: number;
}

/** The figures of §2.5, all of one moment. */
export interface ComputeOverview {
  readonly attention: {
    readonly instancesWithoutHypervisor: number;
    readonly instancesSuspended: number;
    readonly instancesThrottled: number;
    readonly cancellationsScheduled: number;
    readonly tasksFailed24h: number;
    readonly tasksStuck: number;
  };
  readonly instancesByStatus: readonly StatusCount[];
  readonly instancesTotal: number;
  readonly resourcesAllocated: { readonly vcpu: number; readonly ramMb: number; readonly ramGb: number; readonly storageGb: number };
  readonly resourcesCount: {
    readonly volumes: number;
    readonly vpcs: number;
    readonly sshKeys: number;
    readonly snapshots: number;
    readonly backups: number;
    readonly storageGb: number;
  };
  readonly tasksByStatus: readonly StatusCount[];
  readonly tasksRecentCount: number;
}

const HOUR_MS = 3_600_000;

/** Where the windows of the figures begin, so that a figure and the list behind it agree. */
function windows(now: Date) {
  return { dayAgo: new Date(now.getTime() - 24 * HOUR_MS), hourAgo: new Date(now.getTime() - HOUR_MS) };
}

/**
 * The overview (§4.4), by one statement, so from one snapshot. Its cost does not grow with the instances: it adds up
 * counters, and reads only what failed, hangs or was created within the window.
 */
export async function readOverview({ database, projectId }: ProjectScope): Promise<ComputeOverview> {
  const now = new Date();
  const { dayAgo, hourAgo } = windows(now);
  const [row] = await database.query<{ overview: ComputeOverview }>`
    WITH by_status AS (
      SELECT status::text COLLATE "C" AS status, sum(instances) AS instances, sum(vcpu) AS vcpu, sum(ram_mb) AS ram_mb,
        sum(storage_gb) AS storage_gb, sum(without_hypervisor) AS without_hypervisor, sum(throttled) AS throttled
      FROM instance_counters WHERE project_id = ${projectId}::uuid AND status <> 'deleted'
      GROUP BY status HAVING sum(instances) <> 0
    ), instance_totals AS (
      SELECT coalesce(json_agg(json_build_object('status', status, 'count', instances) ORDER BY status), '[]') AS by_status,
        coalesce(sum(instances), 0) AS total, coalesce(sum(vcpu), 0) AS vcpu, coalesce(sum(ram_mb), 0) AS ram_mb,
        coalesce(sum(storage_gb), 0) AS storage_gb, coalesce(sum(without_hypervisor), 0) AS without_hypervisor,
        coalesce(sum(throttled), 0) AS throttled,
        coalesce(sum(instances) FILTER (WHERE status = 'suspended'), 0) AS suspended
      FROM by_status
    ), resource_totals AS (
      SELECT coalesce(sum(resources) FILTER (WHERE kind = 'volumes'), 0) AS volumes,
        coalesce(sum(resources) FILTER (WHERE kind = 'vpcs'), 0) AS vpcs,
        coalesce(sum(resources) FILTER (WHERE kind = 'ssh_keys'), 0) AS ssh_keys,
        coalesce(sum(resources) FILTER (WHERE kind = 'snapshots'), 0) AS snapshots,
        coalesce(sum(resources) FILTER (WHERE kind = 'backups'), 0) AS backups,
        coalesce(sum(storage_gb) FILTER (WHERE kind = 'volumes'), 0) AS storage_gb
      FROM resource_counters WHERE project_id = ${projectId}::uuid
    ), recent AS (
      SELECT coalesce(json_agg(json_build_object('status', status, 'count', tasks) ORDER BY status), '[]') AS by_status,
        coalesce(sum(tasks), 0) AS total
      FROM (
        SELECT status::text COLLATE "C" AS status, count(*) AS tasks FROM tasks
        WHERE project_id = ${projectId}::uuid AND created >= ${dayAgo} GROUP BY status
      ) AS recent_by_status
    )
    SELECT json_build_object(
      'attention', json_build_object(
        'instancesWithoutHypervisor', instance_totals.without_hypervisor,
        'instancesSuspended', instance_totals.suspended,
        'instancesThrottled', instance_totals.throttled,
        'cancellationsScheduled', (
          SELECT count(*) FROM instances
          WHERE project_id = ${projectId}::uuid AND cancellation_at > ${now} AND status <> 'deleted'),
        'tasksFailed24h', (
          SELECT count(*) FROM tasks WHERE project_id = ${projectId}::uuid AND status = 'failed' AND finished >= ${dayAgo}),
        'tasksStuck', (
          SELECT count(*) FROM tasks
          WHERE project_id = ${projectId}::uuid AND status IN ('pending', 'running') AND created < ${hourAgo})),
      'instancesByStatus', instance_totals.by_status,
      'instancesTotal', instance_totals.total,
      'resourcesAllocated', json_build_object(
        'vcpu', instance_totals.vcpu, 'ramMb', instance_totals.ram_mb, 'ramGb', floor(instance_totals.ram_mb / 1024), 'storageGb', instance_totals.storage_gb),
      'resourcesCount', json_build_object(
        'volumes', resource_totals.volumes, 'vpcs', resource_totals.vpcs, 'sshKeys', resource_totals.ssh_keys,
        'snapshots', resource_totals.snapshots, 'backups', resource_totals.backups, 'storageGb', resource_totals.storage_gb),
      'tasksByStatus', recent.by_status,
      'tasksRecentCount', recent.total
    ) AS overview
    FROM instance_totals, resource_totals, recent`;
  if (!row) throw new Error('the overview is one row always');
  return row.overview;
}

export const instanceAttentions = ['without_hypervisor', 'suspended', 'throttled', 'cancellation_scheduled'] as const;
export const taskAttentions = ['failed_24h', 'stuck'] as const;

export interface InstanceFilter {
  readonly status?: InstanceStatus | null;
  readonly attention?: (typeof instanceAttentions)[number] | null;
}

export interface TaskFilter {
  readonly status?: TaskStatus | null;
  readonly attention?: (typeof taskAttentions)[number] | null;
}

/** The project's instances, the oldest first; deleted ones only when their status is asked for. */
export function listInstances({ database, projectId }: ProjectScope, { status, attention }: InstanceFilter, slice: Slice<string>) {
  return database.query<Instance>`
    SELECT ${columns} FROM instances
    WHERE project_id = ${projectId}::uuid AND ${status ? Prisma.sql`status = ${status}::instance_status` : Prisma.sql`status <> 'deleted'`}
      ${attention ? Prisma.sql`AND ${instanceConditions[attention]()}` : Prisma.empty}
      ${inSlice(slice, 'asc')}`;
}

const columns = Prisma.sql`id, project_id AS "projectId", name, status::text, plan, region, vcpu, ram_mb AS "ramMb",
  storage_gb AS "storageGb", hypervisor, throttled, daily_backup AS "dailyBackup", cancellation_at AS "cancellationAt",
  billing_service_id AS "billingServiceId", created, modified`;

/** Throws `not_found` for a malformed id, and for an instance of another project. */
export async function getInstance({ database, projectId }: ProjectScope, id: string): Promise<Instance> {
  const instanceId = parseUuid(id);
  const instance = instanceId && (await findInstance(database, instanceId));
  if (!instance || instance.projectId !== projectId) throw Fault.notFound();
  return instance;
}

const findInstance = batchByOwner(async (database: Database, ids: readonly string[]) => {
  const rows = await database.query<Instance>`SELECT ${columns} FROM instances WHERE id = ANY (${ids}::uuid[])`;
  const instances = new Map(rows.map((row) => [row.id, row]));
  return ids.map((id) => instances.get(id) ?? null);
});

/** The project's tasks, the newest first. */
export function listTasks({ database, projectId }: ProjectScope, { status, attention }: TaskFilter, slice: Slice<string>) {
  return database.query<Task>`
    SELECT id, project_id AS "projectId", instance_id AS "instanceId", kind, status::text, error, created, started, finished
    FROM tasks
    WHERE project_id = ${projectId}::uuid ${status ? Prisma.sql`AND status = ${status}::task_status` : Prisma.empty}
      ${attention ? Prisma.sql`AND ${taskConditions[attention]()}` : Prisma.empty}
      ${inSlice(slice, 'desc')}`;
}

/**
 * What each figure of `attention` counts, as the condition of the list that it opens. Written as the partial indexes
 * are: a status that comes as text, as Prisma sends it, the planner cannot match with them.
 */
const instanceConditions: Record<(typeof instanceAttentions)[number], () => Prisma.Sql> = {
  without_hypervisor: () => Prisma.sql`hypervisor IS NULL AND status <> 'deleted'`,
  suspended: () => Prisma.sql`status = 'suspended'`,
  throttled: () => Prisma.sql`throttled AND status <> 'deleted'`,
  cancellation_scheduled: () => Prisma.sql`cancellation_at > ${new Date()} AND status <> 'deleted'`,
};

const taskConditions: Record<(typeof taskAttentions)[number], () => Prisma.Sql> = {
  failed_24h: () => Prisma.sql`status = 'failed' AND finished >= ${windows(new Date()).dayAgo}`,
  stuck: () => Prisma.sql`status IN ('pending', 'running') AND created < ${windows(new Date()).hourAgo}`,
};
