import { type InProject, type ProjectScope, projectIdsOf } from '../access/scope.ts';
import type { Task } from '../generated/prisma/client.ts';
import type { TaskStatus } from '../generated/prisma/enums.ts';
import type { Context } from '../graph/context.ts';
import { boundsFromStart, type Slice } from '../graph/keyset.ts';
import { pickInProject } from '../graph/node.ts';
import { type Order, rangeOf, sortRows } from '../graph/order.ts';
import type { SizedText } from '../graph/textloader.ts';
import { type Page, type PageRange, type PageRequest, resolvePage } from '../kernel/page.ts';
import { groupRows, type Nullable, pickCounts } from '../kernel/rows.ts';
import type { Database } from '../platform/database.ts';
import { type TaskAttention, windowStarts } from './attention.ts';
import { type StatusFilter, selectTaskStatuses, taskStatuses } from './statuses.ts';

/** The conditions that every task of a list meets. */
export interface TaskFilter extends StatusFilter<TaskStatus> {
  readonly attention?: TaskAttention | null;
}

/** The default order: the newest first. */
export const defaultTaskOrder: Order = { field: 'id', direction: 'desc' };

/** Tasks by id; null for a task outside the project it is requested in. */
export async function findTasks(database: Database, requested: readonly InProject[]): Promise<Array<Task | null>> {
  const rows = await database.prisma.task.findMany({ where: { id: { in: requested.map(({ id }) => id) } }, omit: { error: true } });
  return pickInProject(requested, rows.map(withoutError));
}

/** The tasks of each project, without their errors. */
export async function listTasks(
  database: Database,
  scopes: readonly ProjectScope[],
  filter: TaskFilter,
  order: Order,
  slice: Slice<string>,
): Promise<Task[][]> {
  const { status, statuses, attention } = filter;
  if (order.field !== 'id' || status || statuses?.length || attention) return searchTasks(database, scopes, filter, order, slice);
  const { above, below, limit, isAscending, within } = boundsFromStart(slice, 'desc');
  const query = database.queryInOrder(isAscending);
  // The bounds compare whole keys of the index, as those of `listInstanceTasks` do.
  const rows = await query<Task>`
    SELECT listed.* FROM unnest(${projectIdsOf(scopes)}::uuid[]) AS wanted (project_id)
    CROSS JOIN LATERAL (
      SELECT task.id, task.project_id AS "projectId", task.instance_id AS "instanceId", task.kind, task.status, ''::text AS error,
        task.created, task.started, task.finished
      FROM tasks AS task
      WHERE task.project_id = wanted.project_id
        AND (task.project_id, task.id) > (wanted.project_id, ${above}::uuid)
        AND (task.project_id, task.id) < (wanted.project_id, ${below}::uuid)
      ORDER BY task.id DESC LIMIT ${limit}
    ) AS listed
    ORDER BY listed.id DESC`;
  return groupRows(projectIdsOf(scopes), within(rows), ({ projectId }) => projectId);
}

/** An error may be long: `readTaskErrors` reads it only where it is requested. */
function withoutError(task: Omit<Task, 'error'>): Task {
  return { ...task, error: '' };
}

/** The errors of tasks. The caller has checked access to their projects. */
export function readTaskErrors(database: Database, ids: readonly string[], bytesLeft: number): Promise<SizedText[]> {
  return database.query<SizedText>`
    SELECT id, CASE WHEN sum(size) OVER (ORDER BY id) <= ${bytesLeft}::bigint THEN error ELSE '' END AS text, size AS bytes
    FROM (SELECT id, error, octet_length(error) AS size FROM tasks WHERE id = ANY (${[...ids]}::uuid[])) AS weighed`;
}

/**
 * The tasks of each project in any order and of any statuses. Each status is read separately, along the index of the order.
 * With `attention`, all tasks that the figure counts are sorted: they are few.
 */
async function searchTasks(
  database: Database,
  scopes: readonly ProjectScope[],
  filter: TaskFilter,
  order: Order,
  slice: Slice<string>,
): Promise<Task[][]> {
  const range = rangeOf(slice, order, { known: taskStatuses, wanted: selectTaskStatuses(filter) ?? taskStatuses });
  const { createdBounds, statuses, idsAbove, idsBelow, limit, isAscending } = range;
  const { dayAgo, hourAgo } = windowStarts(new Date());
  const isByStatus = order.field === 'status';
  const source: string = filter.attention ?? range.scanColumn;
  const query = database.queryInOrder(isAscending);
  const rows = await query<TaskRow>`
    SELECT task.id, task.project_id AS "projectId", task.instance_id AS "instanceId", task.kind, task.status, '' AS error,
      task.created, task.started, task.finished
    FROM unnest(${projectIdsOf(scopes)}::uuid[]) AS wanted (project_id)
    CROSS JOIN LATERAL (
      (SELECT found.* FROM unnest(${statuses}::text[], ${idsAbove}::uuid[], ${idsBelow}::uuid[])
          WITH ORDINALITY AS chosen (status, above, below, rank)
        CROSS JOIN LATERAL (
          SELECT id, project_id, instance_id, kind, status, created, started, finished FROM tasks
          WHERE project_id = wanted.project_id AND status = chosen.status::task_status
            AND (status, id) > (chosen.status::task_status, chosen.above) AND (status, id) < (chosen.status::task_status, chosen.below)
          ORDER BY status DESC, id DESC LIMIT ${limit}
        ) AS found
        WHERE ${source}::text = 'id' ORDER BY CASE WHEN ${isByStatus}::boolean THEN chosen.rank END, found.id DESC LIMIT ${limit})
      UNION ALL
      (SELECT found.* FROM unnest(${statuses}::text[], ${idsAbove}::uuid[], ${idsBelow}::uuid[])
          WITH ORDINALITY AS chosen (status, above, below, rank)
        CROSS JOIN LATERAL (
          SELECT id, project_id, instance_id, kind, status, created, started, finished FROM tasks
          WHERE project_id = wanted.project_id AND status = chosen.status::task_status
            AND (created, id) > (${createdBounds.above.value}::text::timestamptz, ${createdBounds.above.id}::uuid)
            AND (created, id) < (${createdBounds.below.value}::text::timestamptz, ${createdBounds.below.id}::uuid)
          ORDER BY created DESC, id DESC LIMIT ${limit}
        ) AS found
        WHERE ${source}::text = 'created' ORDER BY found.created DESC, found.id DESC LIMIT ${limit})
      UNION ALL
      (SELECT id, project_id, instance_id, kind, found.status, created, started, finished FROM (
        SELECT * FROM tasks WHERE ${source}::text = 'failed_24h' AND project_id = wanted.project_id
          AND status = 'failed' AND finished >= ${dayAgo}
        UNION ALL
        SELECT * FROM tasks WHERE ${source}::text = 'stuck' AND project_id = wanted.project_id
          AND status IN ('pending', 'running') AND created < ${hourAgo}
        OFFSET 0
      ) AS found
      JOIN unnest(${statuses}::text[], ${idsAbove}::uuid[], ${idsBelow}::uuid[]) AS chosen (status, above, below)
        ON chosen.status = found.status::text AND found.id > chosen.above AND found.id < chosen.below
      WHERE (created, id) > (${createdBounds.above.value}::text::timestamptz, ${createdBounds.above.id}::uuid)
        AND (created, id) < (${createdBounds.below.value}::text::timestamptz, ${createdBounds.below.id}::uuid)
      ORDER BY CASE WHEN ${order.field}::text = 'created' THEN created END DESC,
        CASE WHEN ${isByStatus}::boolean THEN found.status END DESC, id DESC LIMIT ${limit})
    ) AS task`;
  const lists = groupRows(projectIdsOf(scopes), rows as Task[], ({ projectId }) => projectId);
  return lists.map((listed) => sortRows(listed, order, range, taskStatuses));
}

export type TaskRow = Nullable<Omit<Task, 'error'>> & { readonly error: '' };

/** The length of each project's list. Reads one index entry for each counted task. */
export async function countTasks(database: Database, scopes: readonly ProjectScope[], filter: TaskFilter): Promise<number[]> {
  const { dayAgo, hourAgo } = windowStarts(new Date());
  const { attention = null } = filter;
  const statuses = selectTaskStatuses(filter);
  const rows = await database.query<{ projectId: string | null; count: number | null }>`
    SELECT wanted.project_id AS "projectId",
      (CASE ${attention}::text
        WHEN 'failed_24h' THEN (
          SELECT count(*) FROM tasks WHERE project_id = wanted.project_id AND status = 'failed' AND finished >= ${dayAgo}
            AND (${statuses}::text[] IS NULL OR status = ANY (${statuses}::text[]::task_status[])))
        WHEN 'stuck' THEN (
          SELECT count(*) FROM tasks WHERE project_id = wanted.project_id AND status IN ('pending', 'running') AND created < ${hourAgo}
            AND (${statuses}::text[] IS NULL OR status = ANY (${statuses}::text[]::task_status[])))
        ELSE CASE WHEN ${statuses}::text[] IS NULL THEN (SELECT count(*) FROM tasks WHERE project_id = wanted.project_id)
          ELSE (
            SELECT count(*) FROM (SELECT DISTINCT unnest(${statuses}::text[])::task_status AS status) AS chosen
            JOIN tasks ON tasks.project_id = wanted.project_id AND tasks.status = chosen.status) END
      END)::int AS count
    FROM unnest(${projectIdsOf(scopes)}::uuid[]) AS wanted (project_id)`;
  return pickCounts(projectIdsOf(scopes), rows, ({ projectId }) => projectId);
}

/** One page of the tasks of a project (§2.7), the newest first. Throws `not_found` past the end. */
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

interface TaskRange extends PageRange {
  readonly status: TaskStatus | null;
}

/** Each skipped row costs one index entry; the row itself is not read. */
async function readTasks(database: Database, scopes: readonly ProjectScope[], { status, limit, offset }: TaskRange): Promise<Task[][]> {
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
    CROSS JOIN LATERAL (SELECT * FROM tasks WHERE tasks.id = listed.id LIMIT 1) AS task
    ORDER BY task.id DESC`;
  return groupRows(projectIdsOf(scopes), rows, ({ projectId }) => projectId);
}
