import { type ProjectScope, projectIdsOf } from '../access/scope.ts';
import { pickRows } from '../kernel/rows.ts';
import { deleteInBatches } from '../platform/cleanup.ts';
import type { Database } from '../platform/database.ts';
import { windowStarts } from './attention.ts';

interface StatusCount {
  readonly status: string;
  readonly count: number;
}

/** The figures of §2.5, all from one snapshot. */
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

/**
 * The overview (§4.4) of each project, in one statement and therefore from one snapshot. Its cost does not grow with the
 * instances or the tasks: it sums counters, and reads only scheduled cancellations, stuck tasks, and the tasks of the partial
 * quarter of an hour at the start of the day's window.
 */
export async function readOverviews(database: Database, scopes: readonly ProjectScope[]): Promise<ComputeOverview[]> {
  const now = new Date();
  const { dayAgo, wholeQuarters, hourAgo } = windowStarts(now);
  const rows = await database.query<{ projectId: string; overview: ComputeOverview }>`
    SELECT wanted.project_id AS "projectId", figures.overview
    FROM unnest(${projectIdsOf(scopes)}::uuid[]) AS wanted (project_id)
    CROSS JOIN LATERAL (
      WITH instance_totals AS (
        SELECT coalesce(jsonb_agg(jsonb_build_object('status', status::text, 'count', instances::bigint) ORDER BY status), '[]') AS by_status,
          coalesce(sum(instances), 0)::bigint AS total, coalesce(sum(vcpu), 0)::bigint AS vcpu,
          coalesce(sum(ram_mb), 0)::bigint AS ram_mb, coalesce(sum(storage_gb), 0)::bigint AS storage_gb,
          coalesce(sum(without_hypervisor), 0)::bigint AS without_hypervisor, coalesce(sum(throttled), 0)::bigint AS throttled,
          coalesce(sum(instances) FILTER (WHERE status = 'suspended'), 0)::bigint AS suspended
        FROM (
          SELECT status::text COLLATE "C" AS status, sum(instances)::bigint AS instances, sum(vcpu) AS vcpu, sum(ram_mb) AS ram_mb,
            sum(storage_gb) AS storage_gb, sum(without_hypervisor) AS without_hypervisor, sum(throttled) AS throttled
          FROM instance_counters WHERE project_id = wanted.project_id AND status <> 'deleted'
          GROUP BY status HAVING sum(instances) <> 0
        ) AS by_status
      ), resource_totals AS (
        SELECT coalesce(sum(resources) FILTER (WHERE kind = 'volumes'), 0)::bigint AS volumes,
          coalesce(sum(resources) FILTER (WHERE kind = 'vpcs'), 0)::bigint AS vpcs,
          coalesce(sum(resources) FILTER (WHERE kind = 'ssh_keys'), 0)::bigint AS ssh_keys,
          coalesce(sum(resources) FILTER (WHERE kind = 'snapshots'), 0)::bigint AS snapshots,
          coalesce(sum(resources) FILTER (WHERE kind = 'backups'), 0)::bigint AS backups,
          coalesce(sum(storage_gb) FILTER (WHERE kind = 'volumes'), 0)::bigint AS storage_gb
        FROM resource_counters WHERE project_id = wanted.project_id
      ), task_totals AS (
        SELECT coalesce(sum(pending), 0)::bigint AS pending, coalesce(sum(running), 0)::bigint AS running,
          coalesce(sum(succeeded), 0)::bigint AS succeeded, coalesce(sum(failed), 0)::bigint AS failed,
          coalesce(sum(cancelled), 0)::bigint AS cancelled, coalesce(sum(failures), 0)::bigint AS failures
        FROM task_counters WHERE project_id = wanted.project_id AND since >= ${wholeQuarters}
      ), recent AS (
        SELECT coalesce(jsonb_agg(jsonb_build_object('status', status::text, 'count', tasks::bigint) ORDER BY status COLLATE "C"), '[]') AS by_status,
          coalesce(sum(tasks), 0)::bigint AS total
        FROM (
          SELECT counted.status, counted.tasks + earlier.tasks AS tasks
          FROM task_totals
          CROSS JOIN LATERAL (
            VALUES ('pending', pending), ('running', running), ('succeeded', succeeded), ('failed', failed), ('cancelled', cancelled)
          ) AS counted (status, tasks)
          CROSS JOIN LATERAL (
            SELECT count(*) AS tasks FROM tasks
            WHERE project_id = wanted.project_id AND status = counted.status::task_status AND created >= ${dayAgo} AND created < ${wholeQuarters}
          ) AS earlier
        ) AS by_status
        WHERE tasks > 0
      )
      SELECT jsonb_build_object(
        'attention', jsonb_build_object(
          'instancesWithoutHypervisor', instance_totals.without_hypervisor,
          'instancesSuspended', instance_totals.suspended,
          'instancesThrottled', instance_totals.throttled,
          'cancellationsScheduled', coalesce((
            SELECT count(*) FROM instances
            WHERE project_id = wanted.project_id AND cancellation_at > ${now} AND status <> 'deleted'), 0),
          'tasksFailed24h', task_totals.failures + coalesce((
            SELECT count(*) FROM tasks
            WHERE project_id = wanted.project_id AND status = 'failed' AND finished >= ${dayAgo} AND finished < ${wholeQuarters}), 0),
          'tasksStuck', coalesce((
            SELECT count(*) FROM tasks
            WHERE project_id = wanted.project_id AND status IN ('pending', 'running') AND created < ${hourAgo}), 0)),
        'instancesByStatus', instance_totals.by_status,
        'instancesTotal', instance_totals.total,
        'resourcesAllocated', jsonb_build_object(
          'vcpu', instance_totals.vcpu, 'ramMb', instance_totals.ram_mb, 'ramGb', instance_totals.ram_mb / 1024, 'storageGb', instance_totals.storage_gb),
        'resourcesCount', jsonb_build_object(
          'volumes', resource_totals.volumes, 'vpcs', resource_totals.vpcs, 'sshKeys', resource_totals.ssh_keys,
          'snapshots', resource_totals.snapshots, 'backups', resource_totals.backups, 'storageGb', resource_totals.storage_gb),
        'tasksByStatus', recent.by_status,
        'tasksRecentCount', recent.total
      ) AS overview
      FROM instance_totals, resource_totals, task_totals, recent
    ) AS figures`;
  return pickRows(projectIdsOf(scopes), rows, ({ projectId }) => projectId).map((row) => {
    if (!row) throw new Error('the overview always has one row');
    return row.overview;
  });
}

/**
 * Deletes the counters of quarters that began more than 26 hours ago: the triggers write those of the last 25, and an overview reads
 * 24, by a clock that may be an hour behind.
 */
export function deleteOldTaskCounters(database: Database, signal?: AbortSignal): Promise<void> {
  return deleteInBatches(
    (limit) => database.query<{ deleted: number | null }>`
      DELETE FROM task_counters WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM task_counters WHERE since < now() - interval '26 hours' ORDER BY since LIMIT ${limit}::int
      )) RETURNING 1 AS deleted`,
    signal,
  );
}
