import { columnsOf, type InProject } from '../access/scope.ts';
import type { Task } from '../generated/prisma/client.ts';
import type { TaskStatus } from '../generated/prisma/enums.ts';
import { boundsFromStart, type Slice } from '../graph/keyset.ts';
import { type Order, rangeOf, sortRows } from '../graph/order.ts';
import { groupRows, pickCounts } from '../kernel/rows.ts';
import type { Database } from '../platform/database.ts';
import { type StatusFilter, selectTaskStatuses, taskStatuses } from './statuses.ts';
import type { TaskRow } from './tasks.ts';

/** As `TaskFilter`, but without `attention`, whose figures count the tasks of a project. */
type InstanceTaskFilter = StatusFilter<TaskStatus>;

/**
 * The tasks of each instance in its current project, in one statement for all instances: tasks in another project are not listed.
 * The bounds and the order are whole keys of the index: by those of ids alone, PostgreSQL takes the primary key where few instances
 * have most of the tasks, and reads all of them for an instance that has none; or it takes another index, and sorts all tasks of the
 * instance.
 */
export async function listInstanceTasks(
  database: Database,
  instances: readonly InProject[],
  filter: InstanceTaskFilter,
  order: Order,
  slice: Slice<string>,
): Promise<Task[][]> {
  if (order.field !== 'id' || selectTaskStatuses(filter)) return searchInstanceTasks(database, instances, filter, order, slice);
  const { above, below, limit, isAscending, within } = boundsFromStart(slice, 'desc');
  const { ids: instanceIds, projectIds } = columnsOf(instances);
  const query = database.queryInOrder(isAscending);
  const rows = await query<Task>`
    SELECT listed.* FROM unnest(${instanceIds}::uuid[], ${projectIds}::uuid[]) AS wanted (instance_id, project_id)
    CROSS JOIN LATERAL (
      SELECT task.id, task.project_id AS "projectId", task.instance_id AS "instanceId", task.kind, task.status, ''::text AS error,
        task.created, task.started, task.finished
      FROM tasks AS task
      WHERE (task.instance_id, task.project_id, task.id) > (wanted.instance_id, wanted.project_id, ${above}::uuid)
        AND (task.instance_id, task.project_id, task.id) < (wanted.instance_id, wanted.project_id, ${below}::uuid)
      ORDER BY task.instance_id DESC, task.project_id DESC, task.id DESC LIMIT ${limit}
    ) AS listed
    ORDER BY listed.id DESC`;
  return groupRows(instanceIds, within(rows), ({ instanceId }) => instanceId);
}

/** The tasks of each instance in any order and of any statuses. Each status is read separately, along the index of the order. */
async function searchInstanceTasks(
  database: Database,
  instances: readonly InProject[],
  filter: InstanceTaskFilter,
  order: Order,
  slice: Slice<string>,
): Promise<Task[][]> {
  const range = rangeOf(slice, order, { known: taskStatuses, wanted: selectTaskStatuses(filter) ?? taskStatuses });
  const { createdBounds, statuses, idsAbove, idsBelow, limit, scanColumn, isAscending } = range;
  const query = database.queryInOrder(isAscending);
  const { ids: instanceIds, projectIds } = columnsOf(instances);
  const rows = await query<TaskRow>`
    SELECT task.id, task.project_id AS "projectId", task.instance_id AS "instanceId", task.kind, task.status, '' AS error,
      task.created, task.started, task.finished
    FROM unnest(${instanceIds}::uuid[], ${projectIds}::uuid[]) AS wanted (instance_id, project_id)
    CROSS JOIN LATERAL (
      SELECT found.* FROM unnest(${statuses}::text[], ${idsAbove}::uuid[], ${idsBelow}::uuid[]) AS chosen (status, above, below)
      CROSS JOIN LATERAL (
        (SELECT id, project_id, instance_id, kind, status, created, started, finished FROM tasks
          WHERE ${scanColumn}::text = 'id'
            AND (instance_id, project_id, status, id)
              > (wanted.instance_id, wanted.project_id, chosen.status::task_status, chosen.above)
            AND (instance_id, project_id, status, id)
              < (wanted.instance_id, wanted.project_id, chosen.status::task_status, chosen.below)
          ORDER BY instance_id DESC, project_id DESC, status DESC, id DESC LIMIT ${limit})
        UNION ALL
        (SELECT id, project_id, instance_id, kind, status, created, started, finished FROM tasks
          WHERE ${scanColumn}::text = 'created' AND instance_id = wanted.instance_id AND project_id = wanted.project_id
            AND status = chosen.status::task_status
            AND (created, id) > (${createdBounds.above.value}::text::timestamptz, ${createdBounds.above.id}::uuid)
            AND (created, id) < (${createdBounds.below.value}::text::timestamptz, ${createdBounds.below.id}::uuid)
          ORDER BY created DESC, id DESC LIMIT ${limit})
      ) AS found
    ) AS task`;
  const lists = groupRows(instanceIds, rows as Task[], ({ instanceId }) => instanceId);
  return lists.map((listed) => sortRows(listed, order, range, taskStatuses));
}

/** The number of tasks of each instance. Reads one index entry for each counted task. */
export async function countInstanceTasks(
  database: Database,
  instances: readonly InProject[],
  filter: InstanceTaskFilter,
): Promise<number[]> {
  const statuses = selectTaskStatuses(filter);
  const { ids: instanceIds, projectIds } = columnsOf(instances);
  const rows = await database.query<{ instanceId: string | null; count: number | null }>`
    SELECT wanted.instance_id AS "instanceId",
      (CASE WHEN ${statuses}::text[] IS NULL
        THEN (SELECT count(*) FROM tasks WHERE instance_id = wanted.instance_id AND project_id = wanted.project_id)
        ELSE (
          SELECT count(*) FROM tasks WHERE instance_id = wanted.instance_id AND project_id = wanted.project_id
            AND status = ANY (${statuses}::text[]::task_status[]))
      END)::int AS count
    FROM unnest(${instanceIds}::uuid[], ${projectIds}::uuid[]) AS wanted (instance_id, project_id)`;
  return pickCounts(instanceIds, rows, ({ instanceId }) => instanceId);
}
