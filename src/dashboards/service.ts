import { hasRole, openProject, type ProjectScope, requireRole } from '../access/scope.ts';
import type { Dashboard as DashboardRow } from '../generated/prisma/client.ts';
import { Prisma } from '../generated/prisma/client.ts';
import { inSlice, type Slice } from '../graph/connection.ts';
import { Fault } from '../kernel/fault.ts';
import { makePage, type Page, pageOffset, readPage } from '../kernel/page.ts';
import { parseUuid } from '../kernel/uuid.ts';

/** A dashboard with the organization of its project. */
export type Dashboard = DashboardRow & { readonly organizationId: string };

/** What a PUT replaces, defaults filled in. */
export interface DashboardContent {
  readonly name: string;
  readonly description: string;
  readonly widgets?: unknown;
  readonly isDefault: boolean;
  readonly isPublic: boolean;
}

export interface DashboardChange extends DashboardContent {
  readonly id: string;
  /** The project to move to. */
  readonly project?: string | null;
  readonly expectedVersion?: number | null;
}

/** The dashboards that the viewer may see, the oldest first. */
export async function listDashboards(scope: ProjectScope, slice: Slice<string>): Promise<Dashboard[]> {
  const rows = await scope.database.query<DashboardRow>`
    SELECT ${columns} FROM dashboards AS dashboard WHERE ${visible(scope)} ${inSlice(slice, 'asc')}`;
  return rows.map((row) => withOrganization(scope, row));
}

/** One page of the same list (§2.7). Throws field errors for a page that is not positive, `not_found` past the end. */
export async function pageDashboards(scope: ProjectScope, paging: { page: number; pageSize: number }): Promise<Page<Dashboard>> {
  const request = readPage(paging);
  const [counted] = await scope.database.query<{ count: number }>`
    SELECT count(*)::int AS count FROM dashboards AS dashboard WHERE ${visible(scope)}`;
  const count = counted?.count ?? 0;
  const rows = await scope.database.query<DashboardRow>`
    SELECT ${columns} FROM dashboards AS dashboard WHERE ${visible(scope)}
    ORDER BY id LIMIT ${request.pageSize} OFFSET ${pageOffset(request, count)}`;
  return makePage(
    request,
    count,
    rows.map((row) => withOrganization(scope, row)),
  );
}

/** Throws `not_found` for a dashboard that is absent, in another project, or not to be seen by the viewer. */
export async function getDashboard(scope: ProjectScope, id: string): Promise<Dashboard> {
  return withOrganization(scope, await findVisible(scope, id, scope.database.query));
}

/** Throws `permission_denied` below the role `member`. */
export async function createDashboard(scope: ProjectScope, content: DashboardContent): Promise<Dashboard> {
  requireRole(scope, 'member');
  return asDefault(scope, content.isDefault ? [scope.projectId] : [], async (query) => {
    if (content.isDefault) await clearDefault(query, scope.projectId);
    const now = new Date();
    const [row] = await query<DashboardRow>(Prisma.sql`
      INSERT INTO dashboards AS dashboard (project_id, created_by, name, description, widgets, is_default, is_public, created, modified)
      VALUES (${scope.projectId}::uuid, ${scope.viewer.userId}::uuid, ${content.name}, ${content.description},
        ${widgetsText(content)}::json, ${content.isDefault}, ${content.isPublic}, ${now}, ${now})
      RETURNING ${columns}`);
    if (!row) throw new Error('the insert returned no row');
    return withOrganization(scope, row);
  });
}

/**
 * Replaces a dashboard (§4.2). Throws `not_found` and `permission_denied` as the viewer may see and edit it, a field
 * error for a project that it cannot move to, and `conflict` with the current version when that is not the expected one.
 */
export async function updateDashboard(scope: ProjectScope, change: DashboardChange): Promise<Dashboard> {
  const { query } = scope.database;
  const moves = Boolean(change.project) && change.project !== scope.projectId;
  // Where it may move to is told only to those who may edit it.
  const projectId = moves ? await getEditable(scope, change.id, query).then(() => findTarget(scope, change.project)) : scope.projectId;
  const { name, description, isDefault, isPublic } = change;
  const id = parseUuid(change.id);
  return asDefault(scope, isDefault ? [scope.projectId, projectId] : [], async (query) => {
    if (isDefault) await clearDefault(query, projectId, id);
    const [row] = await query<DashboardRow>(Prisma.sql`
      UPDATE dashboards AS dashboard SET name = ${name}, description = ${description}, widgets = ${widgetsText(change)}::json,
        is_default = ${isDefault}, is_public = ${isPublic}, project_id = ${projectId}::uuid,
        version = version + 1, modified = ${new Date()}
      WHERE id = ${id}::uuid AND ${editable(scope)} ${hasVersion(change.expectedVersion)}
      RETURNING ${columns}`);
    if (!row) throw await explainMiss(scope, change.id, query);
    return withOrganization(scope, row);
  });
}

/** Deletes a dashboard; throws as `updateDashboard` does. Returns its id. */
export async function deleteDashboard(scope: ProjectScope, { id, expectedVersion }: { id: string; expectedVersion?: number | null }) {
  const { query } = scope.database;
  const [deleted] = await query<{ id: string }>`
    DELETE FROM dashboards AS dashboard
    WHERE id = ${parseUuid(id)}::uuid AND ${editable(scope)} ${hasVersion(expectedVersion)} RETURNING id`;
  if (!deleted) throw await explainMiss(scope, id, query);
  return { deletedId: deleted.id };
}

/** What everyone sees, what is the viewer's own, and for admins all. */
function visible(scope: ProjectScope): Prisma.Sql {
  const all = Prisma.sql`dashboard.project_id = ${scope.projectId}::uuid`;
  return hasRole(scope, 'admin')
    ? all
    : Prisma.sql`${all} AND (dashboard.is_public OR dashboard.created_by = ${scope.viewer.userId}::uuid)`;
}

/** For members what is their own, for admins all. */
function editable(scope: ProjectScope): Prisma.Sql {
  const all = Prisma.sql`dashboard.project_id = ${scope.projectId}::uuid`;
  if (hasRole(scope, 'admin')) return all;
  return hasRole(scope, 'member') ? Prisma.sql`${all} AND dashboard.created_by = ${scope.viewer.userId}::uuid` : Prisma.sql`false`;
}

async function findVisible(scope: ProjectScope, id: string, query: Ask): Promise<DashboardRow> {
  const dashboardId = parseUuid(id);
  if (!dashboardId) throw Fault.notFound();
  const [row] = await query<DashboardRow>(Prisma.sql`
    SELECT ${columns} FROM dashboards AS dashboard WHERE id = ${dashboardId}::uuid AND ${visible(scope)}`);
  if (!row) throw Fault.notFound();
  return row;
}

async function getEditable(scope: ProjectScope, id: string, query: Ask): Promise<DashboardRow> {
  const dashboard = await findVisible(scope, id, query);
  const isOwn = dashboard.createdById === scope.viewer.userId;
  requireRole(scope, isOwn ? 'member' : 'admin');
  return dashboard;
}

/** The project to move to: of the same organization, and one in which the viewer may edit dashboards. */
async function findTarget(scope: ProjectScope, project: string | null | undefined): Promise<string> {
  if (!project || project === scope.projectId) return scope.projectId;
  const ids = { organizationId: scope.organizationId, projectId: project };
  const target = await openProject(scope.database, scope.viewer, ids).catch((failure) => {
    if (failure instanceof Fault && failure.code === 'not_found') return null;
    throw failure;
  });
  if (!target || !hasRole(target, 'member')) throw Fault.invalidFields({ project: ['Not a project that the dashboard can be moved to.'] });
  return target.projectId;
}

/** Runs a statement: alone, or within a transaction. */
type Ask = <Row>(statement: Prisma.Sql) => Promise<Row[]>;

/**
 * Runs `work` alone among those that set a default in the same projects: their rows are locked, in the order of their
 * ids, so that two who move dashboards opposite ways do not wait for each other. Without projects, no transaction.
 */
async function asDefault<Result>({ database }: ProjectScope, projectIds: readonly string[], work: (query: Ask) => Promise<Result>) {
  if (projectIds.length === 0) return work(database.query);
  return database.$transaction(async (transaction) => {
    await transaction.$queryRaw`
      SELECT id FROM projects WHERE id = ANY (${projectIds}::uuid[]) ORDER BY id FOR NO KEY UPDATE`;
    return work((statement) => transaction.$queryRaw(statement));
  });
}

async function clearDefault(query: Ask, projectId: string, exceptId: string | null = null): Promise<void> {
  await query(Prisma.sql`
    UPDATE dashboards SET is_default = false, version = version + 1, modified = ${new Date()}
    WHERE project_id = ${projectId}::uuid AND is_default AND id IS DISTINCT FROM ${exceptId}::uuid`);
}

function hasVersion(expected: number | null | undefined): Prisma.Sql {
  return typeof expected === 'number' ? Prisma.sql`AND version = ${expected}` : Prisma.empty;
}

/** Why a dashboard was not changed: the viewer may not see or edit it, or it is another version now. */
async function explainMiss(scope: ProjectScope, id: string, query: Ask): Promise<Fault> {
  const { version } = await getEditable(scope, id, query);
  return new Fault('conflict', 'The dashboard has been changed since the expected version.', { context: { version } });
}

/** The JSON goes in as text: Prisma's own way would drop a key named __proto__. Left out it is `[]`; null is a value. */
function widgetsText({ widgets = [] }: DashboardContent): string {
  return JSON.stringify(widgets);
}

function withOrganization({ organizationId }: ProjectScope, row: DashboardRow): Dashboard {
  return Object.assign(row, { organizationId });
}

const columns = Prisma.sql`dashboard.id, dashboard.project_id AS "projectId", dashboard.created_by AS "createdById",
  dashboard.name, dashboard.description, dashboard.widgets, dashboard.is_default AS "isDefault",
  dashboard.is_public AS "isPublic", dashboard.version, dashboard.created, dashboard.modified`;
