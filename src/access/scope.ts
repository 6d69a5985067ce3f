import { LRUCache } from 'lru-cache';
import type { OrganizationRole, ProjectRole } from '../generated/prisma/enums.ts';
import { batchByOwner } from '../kernel/batch.ts';
import { Fault } from '../kernel/fault.ts';
import { parseUuid } from '../kernel/uuid.ts';
import type { Database, Statements } from '../platform/database.ts';
import type { UserRow, Viewer } from './viewer.ts';

const rank: Readonly<Record<ProjectRole, number>> = { viewer: 0, member: 1, admin: 2 };

declare const proof: unique symbol;

/**
 * The proof that the viewer may see a project, and the way to its data. Only `openProject` and `listProjects` make one, so
 * that a read without access does not compile. What writes takes a `ProjectScope<Statements>`, which may be within a
 * transaction.
 */
export interface ProjectScope<Way extends Statements = Database> {
  readonly [proof]: true;
  readonly database: Way;
  readonly viewer: Viewer;
  readonly organizationId: string;
  readonly projectId: string;
  readonly role: ProjectRole;
  readonly project: { readonly name: string; readonly created: Date };
  readonly organization: { readonly name: string; readonly currency: string };
}

/** The ids of a project. Its organization may be left out: then the project is the one of that id. */
export interface ProjectIds {
  readonly organizationId?: string | null | undefined;
  readonly projectId: string;
}

/**
 * Viewer + ids → scope. Throws one and the same `not_found` for a malformed id, an absent project and a foreign one. A look
 * that was taken at the same project for the same user, just now, is not taken again.
 */
export async function openProject<Way extends Statements>(
  database: Way,
  viewer: Viewer,
  ids: ProjectIds,
  prefetched: PrefetchedProject | null = null,
): Promise<ProjectScope<Way>> {
  const asked = readIds(viewer.userId, ids);
  if (!asked) throw Fault.notFound();
  const { project } = await (prefetched && answers(prefetched, asked) ? prefetched.standing : findStanding(database, asked));
  const scope = project && makeScope(database, viewer, project);
  if (!scope) throw Fault.notFound();
  return scope;
}

/** A look at a project that was begun before its user is admitted. It proves nothing: only `openProject` takes it. */
export interface PrefetchedProject {
  readonly asked: Asked;
  readonly standing: Promise<Standing>;
  /** In milliseconds of `performance.now`. */
  readonly began: number;
}

/** A body may take its time to arrive: who lost the project meanwhile must not get in by an older look. */
const PREFETCH_MS = 250;

/** Begins to look up a user together with what they are in a project; null for a malformed id. */
export function prefetchProject(database: Database, userId: string, ids: ProjectIds): PrefetchedProject | null {
  const asked = readIds(userId, ids);
  if (!asked) return null;
  const standing = findStanding(database, asked);
  // Whoever takes it hears of its failure.
  standing.catch(() => {});
  return { asked, standing, began: performance.now() };
}

function answers({ asked, began }: PrefetchedProject, { userId, organizationId, projectId }: Asked): boolean {
  const isSame = asked.userId === userId && asked.organizationId === organizationId && asked.projectId === projectId;
  return isSame && performance.now() - began < PREFETCH_MS;
}

/** Null for a malformed id. */
function readIds(userId: string, ids: ProjectIds): Asked | null {
  const isWithin = ids.organizationId !== null && ids.organizationId !== undefined;
  const organizationId = parseUuid(ids.organizationId);
  const projectId = parseUuid(ids.projectId);
  return (isWithin && !organizationId) || !projectId ? null : { userId, organizationId, projectId };
}

/** The same scope, for statements within a transaction. */
export function moveScope(scope: ProjectScope, within: Statements): ProjectScope<Statements> {
  return { ...scope, database: within };
}

/** A part of a list in the order of its ids: those between two ids, from one end. */
export interface IdRange {
  readonly above: string;
  readonly below: string;
  readonly limit: number;
  readonly isAscending: boolean;
  /** How many of them are passed over, before `limit` is counted; none unless it says so. */
  readonly offset?: number;
}

/** For each organization a part of the projects that the viewer may see, opened: one statement, however many organizations. */
export async function listProjects(
  database: Database,
  viewer: Viewer,
  organizationIds: readonly string[],
  { above, below, limit, isAscending, offset = 0 }: IdRange,
): Promise<ProjectScope[][]> {
  const { userId } = viewer;
  const rows = isAscending
    ? await database.query<ProjectRow>`
        SELECT project.id, project.organization_id, project.name, project.created, organization.name AS organization_name,
          organization.currency, organization_member.role AS organization_role, listed.role AS project_role
        FROM organization_members AS organization_member
        JOIN organizations AS organization ON organization.id = organization_member.organization_id
        CROSS JOIN LATERAL (
          SELECT project.* FROM projects AS project
          LEFT JOIN project_members AS project_member
            ON project_member.project_id = project.id AND project_member.user_id = organization_member.user_id
          WHERE project.organization_id = organization_member.organization_id
            AND (organization_member.role <> 'member' OR project_member.role IS NOT NULL)
            AND project.id > ${above}::uuid AND project.id < ${below}::uuid
          ORDER BY project.id LIMIT ${limit} OFFSET ${offset}
        ) AS project
        LEFT JOIN project_members AS listed ON listed.project_id = project.id AND listed.user_id = organization_member.user_id
        WHERE organization_member.user_id = ${userId}::uuid AND organization_member.organization_id = ANY (${organizationIds}::uuid[])
        ORDER BY project.id`
    : await database.query<ProjectRow>`
        SELECT project.id, project.organization_id, project.name, project.created, organization.name AS organization_name,
          organization.currency, organization_member.role AS organization_role, listed.role AS project_role
        FROM organization_members AS organization_member
        JOIN organizations AS organization ON organization.id = organization_member.organization_id
        CROSS JOIN LATERAL (
          SELECT project.* FROM projects AS project
          LEFT JOIN project_members AS project_member
            ON project_member.project_id = project.id AND project_member.user_id = organization_member.user_id
          WHERE project.organization_id = organization_member.organization_id
            AND (organization_member.role <> 'member' OR project_member.role IS NOT NULL)
            AND project.id > ${above}::uuid AND project.id < ${below}::uuid
          ORDER BY project.id DESC LIMIT ${limit} OFFSET ${offset}
        ) AS project
        LEFT JOIN project_members AS listed ON listed.project_id = project.id AND listed.user_id = organization_member.user_id
        WHERE organization_member.user_id = ${userId}::uuid AND organization_member.organization_id = ANY (${organizationIds}::uuid[])
        ORDER BY project.id DESC`;
  const lists = new Map<string, ProjectScope[]>(organizationIds.map((id) => [id, []]));
  for (const row of rows) {
    const scope = makeScope(database, viewer, row);
    if (scope) lists.get(row.organization_id)?.push(scope);
  }
  return organizationIds.map((id) => lists.get(id) ?? []);
}

/** Null where the viewer has no role in the project. */
function makeScope<Way extends Statements>(database: Way, viewer: Viewer, row: ProjectRow): ProjectScope<Way> | null {
  const role = projectRole(row.organization_role, row.project_role);
  return role && ({ database, viewer, role, ...describe(row) } as ProjectScope<Way>);
}

/** What all scopes of a project have in common. */
type Description = Pick<ProjectScope, 'organizationId' | 'projectId' | 'project' | 'organization'>;

/** Many sockets may show one project: as long as it stays as it is, they have its description together. */
const descriptions = new LRUCache<string, Description>({ max: 1_000 });

function describe(row: ProjectRow): Description {
  const { id: projectId, organization_id: organizationId } = row;
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
  /** Null: any. */
  readonly organizationId: string | null;
  readonly projectId: string;
}

/** A user, null for an unknown one, and a project with what they are in it, null where they are nothing in its organization. */
interface Standing {
  readonly user: UserRow | null;
  readonly project: ProjectRow | null;
}

const findStanding = batchByOwner(async (database: Statements, asked: readonly Asked[]): Promise<Standing[]> => {
  const rows = await database.query<StandingRow>`
    SELECT asked.index, users.email AS user_email, users.name AS user_name, users.created AS user_created, users.disabled_at,
      project.id, project.organization_id, project.name, project.created, organization.name AS organization_name,
      organization.currency, organization_member.role AS organization_role, project_member.role AS project_role
    FROM unnest(${asked.map(({ userId }) => userId)}::uuid[], ${asked.map(({ organizationId }) => organizationId)}::uuid[],
      ${asked.map(({ projectId }) => projectId)}::uuid[]) WITH ORDINALITY AS asked (user_id, organization_id, project_id, index)
    JOIN users ON users.id = asked.user_id
    LEFT JOIN projects AS project
      ON project.id = asked.project_id AND project.organization_id = coalesce(asked.organization_id, project.organization_id)
    LEFT JOIN organizations AS organization ON organization.id = project.organization_id
    LEFT JOIN organization_members AS organization_member
      ON organization_member.organization_id = project.organization_id AND organization_member.user_id = asked.user_id
    LEFT JOIN project_members AS project_member
      ON project_member.project_id = project.id AND project_member.user_id = asked.user_id`;
  const found = new Map(rows.map((row) => [row.index, row]));
  return asked.map(({ userId }, index) => {
    const row = found.get(index + 1);
    if (!row) return { user: null, project: null };
    const { user_email: email, user_name: name, user_created: created, disabled_at: disabledAt } = row;
    const user = { id: userId, email, name, created, disabledAt };
    // Whoever is in the organization of a project has all columns of it.
    return { user, project: row.organization_role === null ? null : (row as ProjectRow) };
  });
});

type StandingRow = { readonly [Name in keyof ProjectRow]: ProjectRow[Name] | null } & {
  readonly index: number | null;
  readonly user_email: string;
  readonly user_name: string;
  readonly user_created: Date;
  readonly disabled_at: Date | null;
};

/** Throws `permission_denied` below the role: the viewer may see the project, but may not do this. */
export function requireRole(scope: Pick<ProjectScope, 'role'>, role: ProjectRole): void {
  if (!hasRole(scope, role)) throw Fault.permissionDenied();
}

export function hasRole(scope: Pick<ProjectScope, 'role'>, role: ProjectRole): boolean {
  return rank[scope.role] >= rank[role];
}

/** Owners and admins of an organization are admins of its projects; a member has the role that the project lists, if any. */
export function projectRole(organizationRole: OrganizationRole, listedRole: ProjectRole | null): ProjectRole | null {
  return organizationRole === 'member' ? listedRole : 'admin';
}

interface ProjectRow {
  readonly id: string;
  readonly organization_id: string;
  readonly name: string;
  readonly created: Date;
  readonly organization_name: string;
  readonly currency: string;
  readonly organization_role: OrganizationRole;
  readonly project_role: ProjectRole | null;
}
