import { isDeepStrictEqual } from 'node:util';
import { LRUCache } from 'lru-cache';
import type { OrganizationRole, ProjectRole } from '../generated/prisma/enums.ts';
import { Fault } from '../kernel/fault.ts';
import type { IdRange } from '../kernel/page.ts';
import { groupRows, type Nullable } from '../kernel/rows.ts';
import { createSharedLoader } from '../kernel/sharedloader.ts';
import { parseUuid } from '../kernel/uuid.ts';
import type { Database, SqlClient } from '../platform/database.ts';
import type { UserRow, Viewer } from './viewer.ts';

const rank: Readonly<Record<ProjectRole, number>> = { viewer: 0, member: 1, admin: 2 };

declare const proof: unique symbol;

/**
 * The proof that the viewer may see a project, and the access to its data. Only `openProject` and `openProjects` make one, so
 * that a read without access does not compile. Functions that write take a `ProjectScope<SqlClient>`, which may be within a
 * transaction.
 */
export interface ProjectScope<Executor extends SqlClient = Database> {
  readonly [proof]: true;
  readonly database: Executor;
  readonly viewer: Viewer;
  readonly organizationId: string;
  readonly projectId: string;
  readonly role: ProjectRole;
  readonly project: { readonly name: string; readonly created: Date };
  readonly organization: { readonly name: string; readonly currency: string };
}

/** The id of an object of a project, with the scope through which it is requested. */
export interface InProject {
  readonly scope: ProjectScope;
  readonly id: string;
}

export function projectIdsOf(scopes: readonly ProjectScope[]): string[] {
  return scopes.map(({ projectId }) => projectId);
}

/** The ids of objects, and those of their projects, as two columns for `unnest`. */
export function columnsOf(requested: readonly InProject[]): { ids: string[]; projectIds: string[] } {
  return { ids: requested.map(({ id }) => id), projectIds: requested.map(({ scope }) => scope.projectId) };
}

/** The ids of a project. Without an organization, the project's id alone decides. */
export interface ProjectIds {
  readonly organizationId?: string | null | undefined;
  readonly projectId: string;
}

/**
 * Viewer + ids → scope. Throws the same `not_found` for a malformed id, an absent project, and one that the viewer may not see.
 * A recent prefetch for the same user and project saves the query.
 */
export async function openProject<Executor extends SqlClient>(
  database: Executor,
  viewer: Viewer,
  ids: ProjectIds,
  prefetched: PrefetchedProject | null = null,
): Promise<ProjectScope<Executor>> {
  const key = readAccessKey(viewer.userId, ids);
  if (!key) throw Fault.notFound();
  const { project } = await (prefetched && isUsable(prefetched, key) ? prefetched.access : findAccess(database, key));
  const scope = project && makeScope(database, viewer, project);
  if (!scope) throw Fault.notFound();
  return scope;
}

/** A query for a project that was started before its user was admitted. It proves nothing: only `openProject` uses it. */
export interface PrefetchedProject {
  readonly key: AccessKey;
  readonly access: Promise<Access>;
  /** In milliseconds of `performance.now`. */
  readonly startedAt: number;
}

/** A body may arrive late: a viewer who has lost access meanwhile must not get in by an older result. */
const PREFETCH_MAX_AGE_MS = 250;

/** Starts to query a user together with a project and their roles in it; null for a malformed id. */
export function prefetchProject(database: Database, userId: string, ids: ProjectIds): PrefetchedProject | null {
  const key = readAccessKey(userId, ids);
  if (!key) return null;
  const access = findAccess(database, key);
  // A failure is thrown where the result is awaited; if it never is, the rejection counts as handled.
  access.catch(() => {});
  return { key, access, startedAt: performance.now() };
}

function isUsable({ key, startedAt }: PrefetchedProject, { userId, organizationId, projectId }: AccessKey): boolean {
  const isSame = key.userId === userId && key.organizationId === organizationId && key.projectId === projectId;
  return isSame && performance.now() - startedAt < PREFETCH_MAX_AGE_MS;
}

function readAccessKey(userId: string, ids: ProjectIds): AccessKey | null {
  const parsed = parseProjectIds(ids);
  return parsed && { userId, ...parsed };
}

export type ParsedProjectIds = Omit<AccessKey, 'userId'>;

/** The ids in lower case; null for a malformed one. */
export function parseProjectIds(ids: ProjectIds): ParsedProjectIds | null {
  const hasOrganization = ids.organizationId !== null && ids.organizationId !== undefined;
  const organizationId = parseUuid(ids.organizationId);
  const projectId = parseUuid(ids.projectId);
  return (hasOrganization && !organizationId) || !projectId ? null : { organizationId, projectId };
}

/** The same scope, for other statements: within a transaction, or of a user. */
export function rebindScope<Executor extends SqlClient>(scope: ProjectScope, database: Executor): ProjectScope<Executor> {
  return { ...scope, database };
}

/**
 * For each organization, the projects in the range that the viewer may see, as scopes: one statement, however many organizations. The
 * projects of a plain member are found from the lists of their members. The bounds compare whole keys of the index: by ids alone,
 * PostgreSQL takes the primary key where few organizations have most projects.
 */
export async function openProjects(
  database: Database,
  viewer: Viewer,
  organizationIds: readonly string[],
  { above, below, limit, isAscending, offset = 0 }: IdRange,
): Promise<ProjectScope[][]> {
  const { userId } = viewer;
  const query = database.queryInOrder(isAscending);
  const rows = await query<ProjectRow>`
    SELECT project.id, project.organization_id, project.name, project.created, organization.name AS organization_name,
      organization.currency, organization_member.role AS organization_role, listed.project_role
    FROM unnest(${organizationIds}::uuid[]) AS wanted (organization_id)
    CROSS JOIN LATERAL (
      SELECT * FROM organization_members
      WHERE organization_members.organization_id = wanted.organization_id AND organization_members.user_id = ${userId}::uuid LIMIT 1
    ) AS organization_member
    JOIN organizations AS organization ON organization.id = organization_member.organization_id
    CROSS JOIN LATERAL (
      (SELECT project.* FROM projects AS project
      WHERE organization_member.role <> 'member' AND project.organization_id = organization_member.organization_id
        AND (project.organization_id, project.id) > (organization_member.organization_id, ${above}::uuid)
        AND (project.organization_id, project.id) < (organization_member.organization_id, ${below}::uuid)
      ORDER BY project.id DESC LIMIT ${limit} OFFSET ${offset})
      UNION ALL
      (SELECT project.* FROM project_members AS project_member
      CROSS JOIN LATERAL (SELECT * FROM projects WHERE projects.id = project_member.project_id LIMIT 1) AS project
      WHERE organization_member.role = 'member' AND project_member.user_id = organization_member.user_id
        AND project.organization_id = organization_member.organization_id
        AND project_member.project_id > ${above}::uuid AND project_member.project_id < ${below}::uuid
      ORDER BY project_member.project_id DESC LIMIT ${limit} OFFSET ${offset})
    ) AS project
    LEFT JOIN LATERAL (
      SELECT role AS project_role FROM project_members
      WHERE project_id = project.id AND user_id = organization_member.user_id LIMIT 1
    ) AS listed ON true
    ORDER BY project.id DESC`;
  const scopes = rows.map((row) => makeScope(database, viewer, row)).filter((scope) => scope !== null);
  return groupRows(organizationIds, scopes, ({ organizationId }) => organizationId);
}

/**
 * Null if the viewer has no role in the project. Owners and admins of an organization are admins of its projects; a member has
 * the role that the project lists, if any.
 */
function makeScope<Executor extends SqlClient>(database: Executor, viewer: Viewer, row: ProjectRow): ProjectScope<Executor> | null {
  const role = row.organization_role === 'member' ? row.project_role : 'admin';
  return role && ({ database, viewer, role, ...describe(row) } as ProjectScope<Executor>);
}

/** The properties that all scopes of a project share. */
type Description = Pick<ProjectScope, 'organizationId' | 'projectId' | 'project' | 'organization'>;

/** Sockets of one project share its description, as long as it is unchanged: this saves memory with many sockets. */
const descriptions = new LRUCache<string, Description>({ max: 1_000 });

function describe(row: ProjectRow): Description {
  const { id: projectId, organization_id: organizationId } = row;
  const project = { name: row.name, created: row.created };
  const organization = { name: row.organization_name, currency: row.currency };
  const description = { organizationId, projectId, project, organization };
  const cached = descriptions.get(projectId);
  if (isDeepStrictEqual(cached, description)) return cached as Description;
  descriptions.set(projectId, description);
  return description;
}

interface AccessKey {
  readonly userId: string;
  /** Null: any. */
  readonly organizationId: string | null;
  readonly projectId: string;
}

interface Access {
  /** Null for an unknown user. */
  readonly user: UserRow | null;
  /** The project with the roles of the user; null if the user is not a member of its organization. */
  readonly project: ProjectRow | null;
}

const findAccess = createSharedLoader(async (database: SqlClient, keys: readonly AccessKey[]): Promise<Access[]> => {
  const rows = await database.query<AccessRow>`
    SELECT wanted.index, users.email AS user_email, users.name AS user_name, users.created AS user_created, users.disabled_at,
      project.id, project.organization_id, project.name, project.created, organization.name AS organization_name,
      organization.currency, organization_member.organization_role, project_member.project_role
    FROM unnest(${keys.map(({ userId }) => userId)}::uuid[], ${keys.map(({ organizationId }) => organizationId)}::uuid[],
      ${keys.map(({ projectId }) => projectId)}::uuid[]) WITH ORDINALITY AS wanted (user_id, organization_id, project_id, index)
    JOIN users ON users.id = wanted.user_id
    LEFT JOIN projects AS project
      ON project.id = wanted.project_id AND project.organization_id = coalesce(wanted.organization_id, project.organization_id)
    LEFT JOIN organizations AS organization ON organization.id = project.organization_id
    LEFT JOIN LATERAL (
      SELECT role AS organization_role FROM organization_members
      WHERE organization_id = project.organization_id AND user_id = wanted.user_id LIMIT 1
    ) AS organization_member ON true
    LEFT JOIN LATERAL (
      SELECT role AS project_role FROM project_members WHERE project_id = project.id AND user_id = wanted.user_id LIMIT 1
    ) AS project_member ON true`;
  const found = new Map(rows.map((row) => [row.index, row]));
  return keys.map(({ userId }, index) => {
    const row = found.get(index + 1);
    if (!row) return { user: null, project: null };
    const { user_email: email, user_name: name, user_created: created, disabled_at: disabledAt } = row;
    const user = { id: userId, email, name, created, disabledAt };
    // With a role in its organization, the columns of the project are not null.
    return { user, project: row.organization_role === null ? null : (row as ProjectRow) };
  });
});

type AccessRow = Nullable<ProjectRow> & {
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
