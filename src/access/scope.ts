import { LRUCache } from 'lru-cache';
import type { OrganizationRole, ProjectRole } from '../generated/prisma/enums.ts';
import { batchByOwner } from '../kernel/batch.ts';
import { Fault } from '../kernel/fault.ts';
import { parseUuid } from '../kernel/uuid.ts';
import type { Database } from '../platform/database.ts';
import type { Viewer } from './viewer.ts';

const rank: Readonly<Record<ProjectRole, number>> = { viewer: 0, member: 1, admin: 2 };

declare const proof: unique symbol;

/**
 * The proof that the viewer may see a project, and the way to its data. Only `openProject` makes one, so that a read
 * without access does not compile.
 */
export interface ProjectScope {
  readonly [proof]: true;
  readonly database: Database;
  readonly viewer: Viewer;
  readonly organizationId: string;
  readonly projectId: string;
  readonly role: ProjectRole;
  readonly project: { readonly name: string; readonly created: Date };
  readonly organization: { readonly name: string; readonly currency: string };
}

/** Viewer + ids → scope. Throws one and the same `not_found` for a malformed id, an absent project and a foreign one. */
export async function openProject(
  database: Database,
  viewer: Viewer,
  ids: { organizationId: string; projectId: string },
): Promise<ProjectScope> {
  const organizationId = parseUuid(ids.organizationId);
  const projectId = parseUuid(ids.projectId);
  if (!organizationId || !projectId) throw Fault.notFound();
  const row = await findProject(database, { userId: viewer.userId, organizationId, projectId });
  const role = row && projectRole(row.organization_role, row.project_role);
  if (!row || !role) throw Fault.notFound();
  return { database, viewer, role, ...describe(organizationId, projectId, row) } as ProjectScope;
}

/** What all scopes of a project have in common. */
type Description = Pick<ProjectScope, 'organizationId' | 'projectId' | 'project' | 'organization'>;

/** Many sockets may show one project: as long as it stays as it is, they have its description together. */
const descriptions = new LRUCache<string, Description>({ max: 1_000 });

function describe(organizationId: string, projectId: string, row: ProjectRow): Description {
  const known = descriptions.get(projectId);
  if (
    known?.organizationId === organizationId &&
    known.project.name === row.name &&
    known.project.created.getTime() === row.created.getTime() &&
    known.organization.name === row.organization_name &&
    known.organization.currency === row.currency
  )
    return known;
  const project = { name: row.name, created: row.created };
  const organization = { name: row.organization_name, currency: row.currency };
  const description = { organizationId, projectId, project, organization };
  descriptions.set(projectId, description);
  return description;
}

interface Asked {
  readonly userId: string;
  readonly organizationId: string;
  readonly projectId: string;
}

/** Each project with what its user is in it, null where they are nothing in its organization. */
const findProject = batchByOwner(async (database: Database, asked: readonly Asked[]) => {
  const rows = await database.query<ProjectRow & { index: number }>`
    SELECT asked.index::int, project.name, project.created, organization.name AS organization_name, organization.currency,
      organization_member.role::text AS organization_role, project_member.role::text AS project_role
    FROM unnest(${asked.map(({ userId }) => userId)}::uuid[], ${asked.map(({ organizationId }) => organizationId)}::uuid[],
      ${asked.map(({ projectId }) => projectId)}::uuid[]) WITH ORDINALITY AS asked (user_id, organization_id, project_id, index)
    JOIN projects AS project ON project.id = asked.project_id AND project.organization_id = asked.organization_id
    JOIN organizations AS organization ON organization.id = project.organization_id
    JOIN organization_members AS organization_member
      ON organization_member.organization_id = project.organization_id AND organization_member.user_id = asked.user_id
    LEFT JOIN project_members AS project_member
      ON project_member.project_id = project.id AND project_member.user_id = asked.user_id`;
  const found = new Map(rows.map((row) => [row.index, row]));
  return asked.map((_asked, index) => found.get(index + 1) ?? null);
});

/** Throws `permission_denied` below the role: the viewer may see the project, but may not do this. */
export function requireRole(scope: ProjectScope, role: ProjectRole): void {
  if (!hasRole(scope, role)) throw Fault.permissionDenied();
}

export function hasRole(scope: ProjectScope, role: ProjectRole): boolean {
  return rank[scope.role] >= rank[role];
}

/** Owners and admins of an organization are admins of its projects; a member has the role that the project lists, if any. */
export function projectRole(organizationRole: OrganizationRole, listedRole: ProjectRole | null): ProjectRole | null {
  return organizationRole === 'member' ? listedRole : 'admin';
}

interface ProjectRow {
  readonly name: string;
  readonly created: Date;
  readonly organization_name: string;
  readonly currency: string;
  readonly organization_role: OrganizationRole;
  readonly project_role: ProjectRole | null;
}
