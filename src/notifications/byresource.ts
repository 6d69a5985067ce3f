import { columnsOf, type InProject } from '../access/scope.ts';
import type { FieldReader } from '../graph/fieldreader.ts';
import type { Slice } from '../graph/keyset.ts';
import { groupRows, pickCounts } from '../kernel/rows.ts';
import type { Database } from '../platform/database.ts';
import { type FoundNotification, type ListedRow, loadListed } from './find.ts';
import { MAX_SEQUENCE } from './log.ts';

/**
 * A slice of the notifications about each resource, the newest first: two statements, whatever the number of resources. The ids are
 * UUIDs in lower case.
 */
export async function listByResource(
  database: Database,
  resources: readonly InProject[],
  { before: above = 0, after: below = MAX_SEQUENCE, limit, isBackwards }: Slice<number>,
  reader: FieldReader,
): Promise<FoundNotification[][]> {
  const { ids, projectIds } = columnsOf(resources);
  const query = database.queryInOrder(isBackwards);
  const rows = await query<ListedRow & { readonly id: string }>`
    SELECT listed.id, wanted.id AS "parentId" FROM unnest(${ids}::text[], ${projectIds}::uuid[]) AS wanted (id, project_id)
    CROSS JOIN LATERAL (
      SELECT id, sequence FROM notifications
      WHERE project_id = wanted.project_id AND resource_id IS NOT NULL AND lower(resource_id) = wanted.id
        AND sequence > ${above}::bigint AND sequence < ${below}::bigint
      ORDER BY sequence DESC LIMIT ${limit}
    ) AS listed
    ORDER BY listed.sequence DESC`;
  const scopesById = new Map(resources.map(({ id, scope }) => [id, scope]));
  return groupRows(ids, await loadListed(database, { rows, scopesById }, reader), ({ resourceId }) => resourceId?.toLowerCase() ?? null);
}

/** The number of notifications about each resource. */
export async function countByResource(database: Database, resources: readonly InProject[]): Promise<number[]> {
  const { ids, projectIds } = columnsOf(resources);
  const rows = await database.query<{ resourceId: string | null; count: number | null }>`
    SELECT wanted.id AS "resourceId",
      (SELECT count(*) FROM notifications
      WHERE project_id = wanted.project_id AND resource_id IS NOT NULL AND lower(resource_id) = wanted.id)::int AS count
    FROM unnest(${ids}::text[], ${projectIds}::uuid[]) AS wanted (id, project_id)`;
  return pickCounts(ids, rows, ({ resourceId }) => resourceId);
}
