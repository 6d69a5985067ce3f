import { type ProjectScope, projectIdsOf } from '../access/scope.ts';
import type { OrganizationRole, ProjectRole } from '../generated/prisma/enums.ts';
import type { Context } from '../graph/context.ts';
import { boundsOf, type Slice, sliceById } from '../graph/keyset.ts';
import type { Colleague } from '../graph/user.ts';
import { groupRows, pickCounts, pickLists } from '../kernel/rows.ts';
import type { Database } from '../platform/database.ts';

/** A user with a role in an organization or a project. */
export interface Member<Role> {
  readonly role: Role;
  readonly user: Colleague;
}

const user = { select: { id: true, email: true, name: true } };

/** The members of each organization, in the order of their user ids. The caller has checked that the viewer belongs to it. */
export async function listMembers(
  { database }: Context,
  organizationIds: readonly string[],
  slice: Slice<string>,
): Promise<Array<Array<Member<OrganizationRole>>>> {
  const { where, orderBy, take } = sliceById(slice);
  const members = { where: { userId: where.id }, orderBy: { userId: orderBy.id }, take, select: { role: true, user } };
  const rows = await database.prisma.organization.findMany({
    relationLoadStrategy: 'join',
    where: { id: { in: [...organizationIds] } },
    select: { id: true, members },
  });
  return pickLists(organizationIds, rows, ({ members }) => members);
}

export async function countMembers({ database }: Context, organizationIds: readonly string[]): Promise<number[]> {
  const rows = await database.query<{ organizationId: string; count: number }>`
    SELECT organization_id AS "organizationId", count(*)::int AS count FROM organization_members
    WHERE organization_id = ANY (${organizationIds}::uuid[]) GROUP BY organization_id`;
  return pickCounts(organizationIds, rows, ({ organizationId }) => organizationId);
}

interface ProjectMemberRow extends Colleague {
  readonly projectId: string | null;
  readonly role: ProjectRole;
}

/** Users who may see each project, in the order of their ids: owners and admins of its organization, and the members whom it lists. */
export async function listProjectMembers(
  database: Database,
  scopes: readonly ProjectScope[],
  slice: Slice<string>,
): Promise<Array<Array<Member<ProjectRole>>>> {
  const { above, below, limit, isAscending } = boundsOf(slice, 'asc');
  const projectIds = projectIdsOf(scopes);
  const organizationIds = scopes.map(({ organizationId }) => organizationId);
  const query = database.queryInOrder(isAscending);
  const rows = await query<ProjectMemberRow>`
    SELECT wanted.project_id AS "projectId", member.role, users.id, users.email, users.name
    FROM unnest(${projectIds}::uuid[], ${organizationIds}::uuid[]) AS wanted (project_id, organization_id)
    CROSS JOIN LATERAL (
      SELECT either.user_id, either.role FROM (
        (SELECT administrator.user_id, 'admin'::project_role AS role FROM organization_members AS administrator
        WHERE administrator.organization_id = wanted.organization_id AND administrator.role <> 'member'
          AND administrator.user_id > ${above}::uuid AND administrator.user_id < ${below}::uuid
        ORDER BY administrator.user_id DESC LIMIT ${limit})
        UNION ALL
        (SELECT listed.user_id, listed.role FROM project_members AS listed
        CROSS JOIN LATERAL (
          SELECT FROM organization_members AS own
          WHERE own.organization_id = wanted.organization_id AND own.user_id = listed.user_id AND own.role = 'member' LIMIT 1
        ) AS own
        WHERE listed.project_id = wanted.project_id AND listed.user_id > ${above}::uuid AND listed.user_id < ${below}::uuid
        ORDER BY listed.user_id DESC LIMIT ${limit})
      ) AS either
      ORDER BY either.user_id DESC LIMIT ${limit}
    ) AS member
    JOIN users ON users.id = member.user_id
    ORDER BY users.id DESC`;
  const lists = groupRows(projectIds, rows, ({ projectId }) => projectId);
  return lists.map((list) => list.map(({ projectId: _projectId, role, ...user }) => ({ role, user })));
}

export async function countProjectMembers(database: Database, scopes: readonly ProjectScope[]): Promise<number[]> {
  const projectIds = projectIdsOf(scopes);
  const organizationIds = scopes.map(({ organizationId }) => organizationId);
  const rows = await database.query<{ projectId: string | null; count: number }>`
    SELECT wanted.project_id AS "projectId",
      ((SELECT count(*) FROM organization_members AS administrator
        WHERE administrator.organization_id = wanted.organization_id AND administrator.role <> 'member')
      + (SELECT count(*) FROM project_members AS listed
        CROSS JOIN LATERAL (
          SELECT FROM organization_members AS own
          WHERE own.organization_id = wanted.organization_id AND own.user_id = listed.user_id AND own.role = 'member' LIMIT 1
        ) AS own
        WHERE listed.project_id = wanted.project_id))::int AS count
    FROM unnest(${projectIds}::uuid[], ${organizationIds}::uuid[]) AS wanted (project_id, organization_id)`;
  return pickCounts(projectIds, rows, ({ projectId }) => projectId);
}
