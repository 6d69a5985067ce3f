import { hasRole, openProject, type ProjectScope, requireRole } from '../access/scope.ts';
import type { Dashboard as DashboardRow } from '../generated/prisma/client.ts';
import { Prisma } from '../generated/prisma/client.ts';
import { type Slice, sliceById } from '../graph/connection.ts';
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
  const { where, ...order } = sliceById(slice);
  const rows = await scope.database.dashboard.findMany({ where: { AND: [visible(scope), where] }, ...order });
  return rows.map((row) => withOrganization(scope, row));
}

/** One page of the same list (§2.7). Throws field errors for a page that is not positive, `not_found` past the end. */
export async function pageDashboards(scope: ProjectScope, paging: { page: number; pageSize: number }): Promise<Page<Dashboard>> {
  const request = readPage(paging);
  const where = visible(scope);
  const count = await scope.database.dashboard.count({ where });
  const skip = pageOffset(request, count);
  const rows = await scope.database.dashboard.findMany({ where, orderBy: { id: 'asc' }, skip, take: request.pageSize });
  return makePage(
    request,
    count,
    rows.map((row) => withOrganization(scope, row)),
  );
}

/** Throws `not_found` for a dashboard that is absent, in another project, or not to be seen by the viewer. */
export function getDashboard(scope: ProjectScope, id: string): Promise<Dashboard> {
  return findVisible(scope, id, scope.database);
}

/** Throws `permission_denied` below the role `member`. */
export async function createDashboard(scope: ProjectScope, content: DashboardContent): Promise<Dashboard> {
  requireRole(scope, 'member');
  return asDefault(scope, content.isDefault ? [scope.projectId] : [], async (database) => {
    if (content.isDefault) await clearDefault(database, scope.projectId);
    const now = new Date();
    const [row] = await database.$queryRaw<DashboardRow[]>`
      INSERT INTO dashboards AS dashboard (project_id, created_by, name, description, widgets, is_default, is_public, created, modified)
      VALUES (${scope.projectId}::uuid, ${scope.viewer.userId}::uuid, ${content.name}, ${content.description},
        ${widgetsText(content)}::json, ${content.isDefault}, ${content.isPublic}, ${now}, ${now})
      RETURNING ${columns}`;
    if (!row) throw new Error('the insert returned no row');
    return withOrganization(scope, row);
  });
}

/**
 * Replaces a dashboard (§4.2). Throws `not_found` and `permission_denied` as the viewer may see and edit it, a field
 * error for a project that it cannot move to, and `conflict` with the current version when that is not the expected one.
 */
export async function updateDashboard(scope: ProjectScope, change: DashboardChange): Promise<Dashboard> {
  const before = await getEditable(scope, change.id);
  const projectId = await findTarget(scope, change.project);
  const { name, description, isDefault, isPublic } = change;
  return asDefault(scope, isDefault ? [scope.projectId, projectId] : [], async (database) => {
    if (isDefault) await clearDefault(database, projectId, before.id);
    const [row] = await database.$queryRaw<DashboardRow[]>`
      UPDATE dashboards AS dashboard SET name = ${name}, description = ${description}, widgets = ${widgetsText(change)}::json,
        is_default = ${isDefault}, is_public = ${isPublic}, project_id = ${projectId}::uuid,
        version = version + 1, modified = ${new Date()}
      WHERE id = ${before.id}::uuid AND project_id = ${scope.projectId}::uuid ${hasVersion(change.expectedVersion)}
      RETURNING ${columns}`;
    if (!row) throw await explainMiss(scope, before.id, database);
    return withOrganization(scope, row);
  });
}

/** Deletes a dashboard; throws as `updateDashboard` does. Returns its id. */
export async function deleteDashboard(scope: ProjectScope, { id, expectedVersion }: { id: string; expectedVersion?: number | null }) {
  const before = await getEditable(scope, id);
  const deleted = await scope.database.$executeRaw`
    DELETE FROM dashboards WHERE id = ${before.id}::uuid AND project_id = ${scope.projectId}::uuid ${hasVersion(expectedVersion)}`;
  if (deleted === 0) throw await explainMiss(scope, before.id, scope.database);
  return { deletedId: before.id };
}

/** What everyone sees, what is the viewer's own, and for admins all. */
function visible(scope: ProjectScope): Prisma.DashboardWhereInput {
  const { projectId, viewer } = scope;
  return hasRole(scope, 'admin') ? { projectId } : { projectId, OR: [{ isPublic: true }, { createdById: viewer.userId }] };
}

async function findVisible(scope: ProjectScope, id: string, database: Transaction): Promise<Dashboard> {
  const dashboardId = parseUuid(id);
  const row = dashboardId && (await database.dashboard.findFirst({ where: { AND: [visible(scope), { id: dashboardId }] } }));
  if (!row) throw Fault.notFound();
  return withOrganization(scope, row);
}

async function getEditable(scope: ProjectScope, id: string): Promise<Dashboard> {
  const dashboard = await getDashboard(scope, id);
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

type Transaction = Prisma.TransactionClient;

/**
 * Runs `work` alone among those that set a default in the same projects: their rows are locked, in the order of their
 * ids, so that two who move dashboards opposite ways do not wait for each other. Without projects, no transaction.
 */
async function asDefault<Result>(
  { database }: ProjectScope,
  projectIds: readonly string[],
  work: (database: Transaction) => Promise<Result>,
) {
  if (projectIds.length === 0) return work(database);
  return database.$transaction(async (transaction) => {
    await transaction.$queryRaw`
      SELECT id FROM projects WHERE id = ANY (${projectIds}::uuid[]) ORDER BY id FOR NO KEY UPDATE`;
    return work(transaction);
  });
}

async function clearDefault(database: Transaction, projectId: string, exceptId?: string): Promise<void> {
  await database.$executeRaw`
    UPDATE dashboards SET is_default = false, version = version + 1, modified = ${new Date()}
    WHERE project_id = ${projectId}::uuid AND is_default AND id IS DISTINCT FROM ${exceptId ?? null}::uuid`;
}

function hasVersion(expected: number | null | undefined): Prisma.Sql {
  return typeof expected === 'number' ? Prisma.sql`AND version = ${expected}` : Prisma.empty;
}

/** Why a dashboard that was there a moment ago could not be changed: it went, or it is another version now. */
async function explainMiss(scope: ProjectScope, id: string, database: Transaction): Promise<Fault> {
  const { version } = await findVisible(scope, id, database);
  return new Fault('conflict', 'The dashboard has been changed since the expected version.', { context: { version } });
}

/** The JSON goes in as text: Prisma's own way would drop a key named __proto__. Left out it is `[]`; null is a value. */
function widgetsText({ widgets = [] }: DashboardContent): string {
  return JSON.stringify(widgets);
}

function withOrganization({ organizationId }: ProjectScope, row: DashboardRow): Dashboard {
  return { ...row, organizationId };
}

const columns = Prisma.sql`dashboard.id, dashboard.project_id AS "projectId", dashboard.created_by AS "createdById",
  dashboard.name, dashboard.description, dashboard.widgets, dashboard.is_default AS "isDefault",
  dashboard.is_public AS "isPublic", dashboard.version, dashboard.created, dashboard.modified`;
