import { generateKey } from '../access/apikey.ts';
import { projectRole } from '../access/scope.ts';
import type { Session, Viewer } from '../access/viewer.ts';
import { Prisma } from '../generated/prisma/client.ts';
import type { OrganizationRole, ProjectRole } from '../generated/prisma/enums.ts';
import type { Slice } from '../graph/connection.ts';
import { sliceById } from '../graph/connection.ts';
import { Fault } from '../kernel/fault.ts';
import { parseUuid } from '../kernel/uuid.ts';
import type { Database } from '../platform/database.ts';

/** An organization, as one of its members sees it. */
export interface Membership {
  readonly id: string;
  readonly name: string;
  readonly currency: string;
  readonly created: Date;
  readonly role: OrganizationRole;
}

/** A project in a list: what is behind it hangs under the root field `project`. */
export interface ProjectSummary {
  readonly id: string;
  readonly organizationId: string;
  readonly name: string;
  readonly created: Date;
  readonly role: ProjectRole;
}

/** The viewer's organizations, by id. */
export async function listOrganizations(database: Database, viewer: Viewer, slice: Slice<string>): Promise<Membership[]> {
  const { where, orderBy, take } = sliceById(slice);
  const rows = await database.organizationMember.findMany({
    where: { userId: viewer.userId, organizationId: where.id },
    orderBy: { organizationId: orderBy.id },
    take,
    include: { organization: true },
  });
  return rows.map(({ organization, role }) => ({ ...organization, role }));
}

/** Throws `not_found` for a malformed id, and for an organization that the viewer is not a member of. */
export async function getOrganization(database: Database, viewer: Viewer, id: string): Promise<Membership> {
  const organizationId = parseUuid(id);
  const row =
    organizationId &&
    (await database.organizationMember.findUnique({
      where: { organizationId_userId: { organizationId, userId: viewer.userId } },
      include: { organization: true },
    }));
  if (!row) throw Fault.notFound();
  return { ...row.organization, role: row.role };
}

/** For each organization the projects that the viewer may see, by id: one statement, however many organizations. */
export async function listProjects(
  database: Database,
  viewer: Viewer,
  organizationIds: readonly string[],
  slice: Slice<string>,
): Promise<ProjectSummary[][]> {
  const rows = await database.query<Omit<ProjectSummary, 'role'> & { organizationRole: OrganizationRole; listedRole: ProjectRole | null }>`
    SELECT project.*
    FROM organization_members AS organization_member
    CROSS JOIN LATERAL (
      SELECT project.id, project.organization_id AS "organizationId", project.name, project.created,
        organization_member.role::text AS "organizationRole", project_member.role::text AS "listedRole"
      FROM projects AS project
      LEFT JOIN project_members AS project_member
        ON project_member.project_id = project.id AND project_member.user_id = organization_member.user_id
      WHERE project.organization_id = organization_member.organization_id
        AND (organization_member.role <> 'member' OR project_member.role IS NOT NULL)
        ${slice.after ? Prisma.sql`AND project.id > ${slice.after}::uuid` : Prisma.empty}
        ${slice.before ? Prisma.sql`AND project.id < ${slice.before}::uuid` : Prisma.empty}
      ORDER BY project.id ${slice.backwards ? Prisma.sql`DESC` : Prisma.empty}
      LIMIT ${slice.limit}
    ) AS project
    WHERE organization_member.user_id = ${viewer.userId}::uuid AND organization_member.organization_id = ANY (${organizationIds}::uuid[])`;
  const projects = rows.flatMap(({ organizationRole, listedRole, ...project }) => {
    const role = projectRole(organizationRole, listedRole);
    return role ? [{ ...project, role }] : [];
  });
  return organizationIds.map((id) => projects.filter((project) => project.organizationId === id));
}

/** The viewer's keys, the newest first. */
export async function listApiKeys(database: Database, session: Session, slice: Slice<string>) {
  const { where, ...order } = sliceById(slice, 'desc');
  return database.apiKey.findMany({ where: { userId: session.userId, ...where }, ...order });
}

/** Makes a key; its text is in the answer and nowhere else. Throws a field error for an expiry in the past. */
export async function createApiKey(database: Database, session: Session, input: { name: string; expires?: Date | null }) {
  if (input.expires && input.expires <= new Date()) throw Fault.invalidFields({ expires: ['Must be in the future.'] });
  const { key, secretHash, hint } = generateKey();
  const apiKey = await database.apiKey.create({
    data: { userId: session.userId, name: input.name, expires: input.expires ?? null, hint, secretHash },
  });
  return { key, apiKey };
}

/** Revokes one of the viewer's keys, from the next request on. Throws `not_found` for any other; twice is no fault. */
export async function revokeApiKey(database: Database, session: Session, id: string) {
  const keyId = parseUuid(id);
  if (!keyId) throw Fault.notFound();
  const [apiKey] = await database.apiKey.updateManyAndReturn({
    where: { id: keyId, userId: session.userId, revoked: null },
    data: { revoked: new Date() },
  });
  const revoked = apiKey ?? (await database.apiKey.findFirst({ where: { id: keyId, userId: session.userId } }));
  if (!revoked) throw Fault.notFound();
  return { apiKey: revoked };
}
