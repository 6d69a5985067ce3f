import { type ProjectScope, projectIdsOf } from '../access/scope.ts';
import type { Instance, Task } from '../generated/prisma/client.ts';
import type { InstanceStatus, TaskStatus } from '../generated/prisma/enums.ts';
import type { Context } from '../graph/context.ts';
import { type Page, type PageRange, type PageRequest, resolvePage } from '../kernel/page.ts';
import { groupRows } from '../kernel/rows.ts';
import type { Database } from '../platform/database.ts';
import { countInstances } from './instances.ts';
import { countTasks } from './tasks.ts';

// One page of a list (§2.7). Each skipped row costs one index entry; the row itself is not read.

/** The instances of a project, the oldest first. Throws `not_found` past the end. */
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

/** The tasks of a project, the newest first. Throws as `pageInstances` does. */
export function pageTasks(
  { loadByProject }: Context,
  scope: ProjectScope,
  paging: PageRequest,
  status: TaskStatus | null,
): Promise<Page<Task>> {
  return resolvePage(
    paging,
    () => loadByProject(countTasks, scope, { status }),
    (range) => loadByProject(readTasks, scope, { status, ...range }),
  );
}

interface RowRange<Status> extends PageRange {
  readonly status: Status | null;
}

async function readInstances(
  database: Database,
  scopes: readonly ProjectScope[],
  { status, limit, offset }: RowRange<InstanceStatus>,
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
    JOIN instances AS instance ON instance.id = listed.id
    ORDER BY instance.id`;
  return groupRows(projectIdsOf(scopes), rows, ({ projectId }) => projectId);
}

async function readTasks(
  database: Database,
  scopes: readonly ProjectScope[],
  { status, limit, offset }: RowRange<TaskStatus>,
): Promise<Task[][]> {
  const rows = await database.query<Task>`
    SELECT task.id, task.project_id AS "projectId", task.instance_id AS "instanceId", task.kind, task.status, ''::text AS error,
      task.created, task.started, task.finished
    FROM unnest(${projectIdsOf(scopes)}::uuid[]) AS wanted (project_id)
    CROSS JOIN LATERAL (
      (SELECT id FROM tasks WHERE (SELECT ${status}::task_status IS NULL) AND project_id = wanted.project_id
        ORDER BY id DESC LIMIT ${limit} OFFSET ${offset})
      UNION ALL
      (SELECT id FROM tasks WHERE project_id = wanted.project_id AND (SELECT ${status}::task_status) = status
        ORDER BY id DESC LIMIT ${limit} OFFSET ${offset})
    ) AS listed
    JOIN tasks AS task ON task.id = listed.id
    ORDER BY task.id DESC`;
  return groupRows(projectIdsOf(scopes), rows, ({ projectId }) => projectId);
}
