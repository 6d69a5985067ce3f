import { openProjects, type ProjectScope } from '../access/scope.ts';
import type { Context } from '../graph/context.ts';
import { boundsOfPage } from '../graph/keyset.ts';
import { type IdRange, type Page, type PageRequest, resolvePage } from '../kernel/page.ts';
import { pickCounts } from '../kernel/rows.ts';

// The projects of an organization that the viewer may see. Those of several organizations in one document are read together.

export function countProjects({ loadBatched }: Context, organizationId: string): Promise<number> {
  return loadBatched(countByOrganization, organizationId);
}

/** The projects in a range of ids, as scopes, which `findProject` then finds. */
export function listProjects({ loadBatched }: Context, organizationId: string, range: IdRange): Promise<ProjectScope[]> {
  return loadBatched(openByOrganization, organizationId, range);
}

async function openByOrganization({ database, requireViewer, registerProjects }: Context, ids: readonly string[], range: IdRange) {
  const lists = await openProjects(database, requireViewer(), ids, range);
  registerProjects(lists.flat());
  return lists;
}

/** One page of them. Throws `not_found` past the end. */
export function pageProjects(context: Context, organizationId: string, paging: PageRequest): Promise<Page<ProjectScope>> {
  return resolvePage(
    paging,
    () => countProjects(context, organizationId),
    (range) => listProjects(context, organizationId, boundsOfPage(range)),
  );
}

/** In the order of the organizations. */
async function countByOrganization({ database, requireViewer }: Context, organizationIds: readonly string[]): Promise<number[]> {
  const { userId } = requireViewer();
  const rows = await database.query<{ organizationId: string; count: number | null }>`
    SELECT member.organization_id AS "organizationId",
      (CASE WHEN member.role <> 'member' THEN (SELECT count(*) FROM projects WHERE projects.organization_id = member.organization_id)
        ELSE (
          SELECT count(*) FROM project_members AS listed
          CROSS JOIN LATERAL (SELECT projects.organization_id FROM projects WHERE projects.id = listed.project_id LIMIT 1) AS project
          WHERE listed.user_id = member.user_id AND project.organization_id = member.organization_id)
      END)::int AS count
    FROM organization_members AS member
    WHERE member.user_id = ${userId}::uuid AND member.organization_id = ANY (${organizationIds}::uuid[])`;
  return pickCounts(organizationIds, rows, ({ organizationId }) => organizationId);
}
