import { type IdRange, listProjects as listOfOrganizations, type ProjectScope } from '../access/scope.ts';
import type { Viewer } from '../access/viewer.ts';
import { boundsOfPage } from '../graph/connection.ts';
import type { Context } from '../graph/context.ts';
import { pickCounts } from '../graph/level.ts';
import { makePage, type Page, type PageRequest, pageOffset, readPage } from '../kernel/page.ts';
import type { Database } from '../platform/database.ts';

// The projects of an organization, as far as the viewer may see them; those of several organizations are read together.

export function countProjects({ database, requireViewer, loadBatched }: Context, organizationId: string): Promise<number> {
  return loadBatched('count of projects', organizationId, (ids) => countOfOrganizations(database, requireViewer(), ids));
}

/** Some of them, opened. */
export function listProjects(
  { database, requireViewer, loadBatched, keepProjects }: Context,
  organizationId: string,
  range: IdRange,
): Promise<ProjectScope[]> {
  return loadBatched(`projects ${JSON.stringify(range)}`, organizationId, async (ids) => {
    const lists = await listOfOrganizations(database, requireViewer(), ids, range);
    keepProjects(lists.flat());
    return lists;
  });
}

/** Throws field errors for what is no page, `not_found` past the end. */
export async function pageProjects(context: Context, organizationId: string, paging: PageRequest): Promise<Page<ProjectScope>> {
  const request = readPage(paging);
  const count = await countProjects(context, organizationId);
  const range = boundsOfPage(request.pageSize, pageOffset(request, count));
  return makePage(request, count, await listProjects(context, organizationId, range));
}

/** Of each organization how many. */
async function countOfOrganizations(database: Database, { userId }: Viewer, organizationIds: readonly string[]): Promise<number[]> {
  const rows = await database.query<{ organizationId: string; count: number | null }>`
    SELECT member.organization_id AS "organizationId",
      (CASE WHEN member.role <> 'member' THEN (SELECT count(*) FROM projects WHERE projects.organization_id = member.organization_id)
        ELSE (
          SELECT count(*) FROM project_members AS listed JOIN projects AS project ON project.id = listed.project_id
          WHERE listed.user_id = member.user_id AND project.organization_id = member.organization_id)
      END)::int AS count
    FROM organization_members AS member
    WHERE member.user_id = ${userId}::uuid AND member.organization_id = ANY (${organizationIds}::uuid[])`;
  return pickCounts(organizationIds, rows, ({ organizationId }) => organizationId);
}
