import type { InProject } from '../access/scope.ts';
import type { Slice } from '../graph/keyset.ts';
import type { ReadWithinBudget } from '../graph/response.ts';
import { groupRows, pickCounts } from '../kernel/rows.ts';
import type { Database } from '../platform/database.ts';
import { type FoundNotification, type ListedRow, loadListed } from './find.ts';
import { MAX_SEQUENCE } from './list.ts';

/** A slice of the notifications about each subject, a resource by its UUID in lower case, the newest first: two statements, whatever the number of subjects. */
export async function listBySubject(
  database: Database,
  subjects: readonly InProject[],
  { before: above = 0, after: below = MAX_SEQUENCE, limit, backwards }: Slice<number>,
  read: ReadWithinBudget,
): Promise<FoundNotification[][]> {
  const ids = subjects.map(({ id }) => id);
  const projectIds = subjects.map(({ scope }) => scope.projectId);
  const query = backwards ? database.queryAscending : database.query;
  const rows = await query<ListedRow & { readonly id: string }>`
    SELECT listed.id, wanted.id AS "parentId" FROM unnest(${ids}::text[], ${projectIds}::uuid[]) AS wanted (id, project_id)
    CROSS JOIN LATERAL (
      SELECT id, sequence FROM notifications
      WHERE project_id = wanted.project_id AND resource_id IS NOT NULL AND lower(resource_id) = wanted.id
        AND sequence > ${above}::bigint AND sequence < ${below}::bigint
      ORDER BY sequence DESC LIMIT ${limit}
    ) AS listed
    ORDER BY listed.sequence DESC`;
  const scopesById = new Map(subjects.map(({ id, scope }) => [id, scope]));
  return groupRows(ids, await loadListed(database, { rows, scopesById }, read), ({ resourceId }) => resourceId?.toLowerCase() ?? null);
}

/** The number of notifications about each subject. */
export async function countBySubject(database: Database, subjects: readonly InProject[]): Promise<number[]> {
  const ids = subjects.map(({ id }) => id);
  const projectIds = subjects.map(({ scope }) => scope.projectId);
  const rows = await database.query<{ subjectId: string | null; count: number | null }>`
    SELECT wanted.id AS "subjectId",
      (SELECT count(*) FROM notifications
      WHERE project_id = wanted.project_id AND resource_id IS NOT NULL AND lower(resource_id) = wanted.id)::int AS count
    FROM unnest(${ids}::text[], ${projectIds}::uuid[]) AS wanted (id, project_id)`;
  return pickCounts(ids, rows, ({ subjectId }) => subjectId);
}
