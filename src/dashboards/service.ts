import { hasRole, openProject, type ProjectScope, requireRole } from '../access/scope.ts';
import { Fault } from '../kernel/fault.ts';
import { stringifyJson } from '../kernel/json/text.ts';
import { parseUuid } from '../kernel/uuid.ts';
import type { SqlClient } from '../platform/database.ts';
import type { Query } from '../platform/query.ts';
import { type Dashboard, type DashboardRow, withOrganization } from './row.ts';

/** The fields that a PUT replaces. */
interface DashboardContent {
  readonly name: string;
  readonly description: string;
  /** Any JSON value, also null; `[]` where omitted. Written as JSON text, which keeps every digit. */
  readonly widgets?: unknown;
  readonly isDefault: boolean;
  readonly isPublic: boolean;
}

interface DashboardChange extends DashboardContent {
  readonly id: string;
  /** The project to move to. */
  readonly project?: string | null;
  readonly expectedVersion?: number | null;
}

/**
 * `quota` is the number of dashboards that a project may have. Throws `permission_denied` below the role `member`, and
 * `conflict` where the project has as many.
 */
export async function createDashboard(scope: ProjectScope<SqlClient>, content: DashboardContent, quota: number): Promise<Dashboard> {
  requireRole(scope, 'member');
  const { widgets = [] } = content;
  return lockDefaults(scope, content.isDefault ? [scope.projectId] : [], async (query) => {
    if (content.isDefault) await clearDefault(query, scope.projectId);
    const [row] = await query<DashboardRow>`
      INSERT INTO dashboards (project_id, created_by, name, description, widgets, is_default, is_public)
      SELECT ${scope.projectId}::uuid, ${scope.viewer.userId}::uuid, ${content.name}::text, ${content.description}::text,
        ${stringifyJson(widgets)}::json, ${content.isDefault}::boolean, ${content.isPublic}::boolean
      WHERE has_dashboard_room(${scope.projectId}::uuid, ${quota}::bigint)
      RETURNING id, project_id AS "projectId", created_by AS "createdById", name, description, widgets,
        is_default AS "isDefault", is_public AS "isPublic", version, created, modified`;
    if (!row) throw quotaReached(quota);
    return withOrganization(scope, row);
  });
}

/** Replaces a dashboard (§4.2): omitted fields return to their defaults. Throws as `patchDashboard` does. */
export function updateDashboard(scope: ProjectScope<SqlClient>, change: DashboardChange, quota: number): Promise<Dashboard> {
  const { widgets = [] } = change;
  return patchDashboard(scope, { ...change, widgets }, quota);
}

/** Only the given fields change. Null is a value for `widgets` alone; for any other field it means not given. */
type DashboardPatch = Pick<DashboardChange, 'id' | 'project' | 'expectedVersion'> & {
  readonly [Name in keyof DashboardContent]?: DashboardContent[Name] | null;
};

/**
 * Changes a dashboard; without a field to change, its version stays. One that moves is not the default of its new project,
 * unless `isDefault` says so. Throws `not_found` if the viewer may not see it, `permission_denied` if they may not edit it, a field
 * error for a project that it cannot move to, and `conflict`: with the current version if that is not the expected one, or with the
 * quota if the new project has reached it.
 */
export async function patchDashboard(scope: ProjectScope<SqlClient>, change: DashboardPatch, quota: number): Promise<Dashboard> {
  const { query } = scope.database;
  const target = change.project && change.project !== scope.projectId ? change.project : null;
  const moves = target !== null;
  // The order of the checks: 404 for the dashboard, then the fields, of which the target project is one, then the role.
  if (moves) await findVisible(scope, change.id, query);
  const projectId = moves ? await findTarget(scope, target) : scope.projectId;
  const { name = null, description = null, isPublic = null, widgets } = change;
  const isDefault = change.isDefault ?? (moves ? false : null);
  const isChanged = moves || widgets !== undefined || [name, description, isPublic, isDefault].some((value) => value !== null);
  const [editsAll, editsOwn] = [hasRole(scope, 'admin'), hasRole(scope, 'member')];
  const id = parseUuid(change.id);
  // A viewer who may not edit it takes no lock, and writes nothing that would be rolled back.
  if (isDefault && !editsAll) await findEditable(scope, change.id, query);
  return lockDefaults(scope, isDefault ? [scope.projectId, projectId] : [], async (query) => {
    if (isDefault) await clearDefault(query, projectId, id);
    const [row] = await query<DashboardRow>`
      UPDATE dashboards SET name = coalesce(${name}, name), description = coalesce(${description}, description),
        widgets = coalesce(${widgets === undefined ? null : stringifyJson(widgets)}::json, widgets),
        is_default = coalesce(${isDefault}::boolean, is_default), is_public = coalesce(${isPublic}::boolean, is_public),
        project_id = ${projectId}::uuid, version = version + ${isChanged}::boolean::int,
        modified = CASE WHEN ${isChanged}::boolean THEN clock_timestamp() ELSE modified END
      WHERE id = ${id}::uuid AND project_id = ${scope.projectId}::uuid
        AND (${editsAll}::boolean OR (${editsOwn}::boolean AND created_by = ${scope.viewer.userId}::uuid))
        AND version = coalesce(${change.expectedVersion ?? null}::int, version)
        AND CASE WHEN ${moves}::boolean THEN has_dashboard_room(${projectId}::uuid, ${quota}::bigint) ELSE true END
      RETURNING id, project_id AS "projectId", created_by AS "createdById", name, description, widgets,
        is_default AS "isDefault", is_public AS "isPublic", version, created, modified`;
    if (!row) throw await explainMiss(scope, change, query, moves ? quota : null);
    return withOrganization(scope, row);
  });
}

/** Deletes a dashboard and returns its id. Throws `not_found`, `permission_denied` and `conflict` as `patchDashboard` does. */
export async function deleteDashboard(
  scope: ProjectScope<SqlClient>,
  { id, expectedVersion }: { id: string; expectedVersion?: number | null },
) {
  const { query } = scope.database;
  const [editsAll, editsOwn] = [hasRole(scope, 'admin'), hasRole(scope, 'member')];
  const [deleted] = await query<{ id: string }>`
    DELETE FROM dashboards
    WHERE id = ${parseUuid(id)}::uuid AND project_id = ${scope.projectId}::uuid
      AND (${editsAll}::boolean OR (${editsOwn}::boolean AND created_by = ${scope.viewer.userId}::uuid))
      AND version = coalesce(${expectedVersion ?? null}::int, version)
    RETURNING id`;
  if (!deleted) throw await explainMiss(scope, { id, expectedVersion }, query);
  return { deletedId: deleted.id };
}

interface VisibleDashboard {
  readonly createdById: string;
  readonly version: number;
}

/** Throws `not_found` for a dashboard that the viewer may not see. */
async function findVisible(scope: ProjectScope<SqlClient>, id: string, query: Query): Promise<VisibleDashboard> {
  const dashboardId = parseUuid(id);
  if (!dashboardId) throw Fault.notFound();
  const seesAll = hasRole(scope, 'admin');
  const [row] = await query<VisibleDashboard>`
    SELECT created_by AS "createdById", version FROM dashboards
    WHERE id = ${dashboardId}::uuid AND project_id = ${scope.projectId}::uuid
      AND (${seesAll}::boolean OR is_public OR created_by = ${scope.viewer.userId}::uuid)`;
  if (!row) throw Fault.notFound();
  return row;
}

/** Throws `permission_denied`, too, for a dashboard that the viewer may see and not edit. */
async function findEditable(scope: ProjectScope<SqlClient>, id: string, query: Query): Promise<VisibleDashboard> {
  const dashboard = await findVisible(scope, id, query);
  requireRole(scope, dashboard.createdById === scope.viewer.userId ? 'member' : 'admin');
  return dashboard;
}

/** The id of a project to move to. Throws a field error unless it is in the same organization and the viewer may edit dashboards there. */
async function findTarget({ database, viewer, organizationId }: ProjectScope<SqlClient>, projectId: string): Promise<string> {
  const target = await openProject(database, viewer, { organizationId, projectId }).catch((failure) => {
    if (failure instanceof Fault && failure.code === 'not_found') return null;
    throw failure;
  });
  if (!target || !hasRole(target, 'member')) throw Fault.invalidFields({ project: ['Not a project that the dashboard can be moved to.'] });
  return target.projectId;
}

/**
 * Serializes changes of the default dashboard: runs `work` in a transaction that locks the projects' rows, in the order of
 * their ids, so that two moves in opposite directions cannot deadlock. Without projects, there is no transaction.
 */
async function lockDefaults<Result>(
  { database }: ProjectScope<SqlClient>,
  projectIds: readonly string[],
  work: (query: Query) => Promise<Result>,
) {
  if (projectIds.length === 0) return work(database.query);
  return database.transact(async (query) => {
    await query<{ id: string }>`
      SELECT id FROM projects WHERE id = ANY (${projectIds}::uuid[]) ORDER BY id FOR NO KEY UPDATE`;
    return work(query);
  });
}

async function clearDefault(query: Query, projectId: string, exceptId: string | null = null): Promise<void> {
  await query`
    UPDATE dashboards SET is_default = false, version = version + 1, modified = clock_timestamp()
    WHERE project_id = ${projectId}::uuid AND is_default AND id IS DISTINCT FROM ${exceptId}::uuid`;
}

/**
 * Why a statement changed no dashboard: the viewer may not see or edit it, its version is not the expected one, or, with a
 * `quota`, the target project has reached that.
 */
async function explainMiss(
  scope: ProjectScope<SqlClient>,
  { id, expectedVersion }: { id: string; expectedVersion?: number | null },
  query: Query,
  quota: number | null = null,
): Promise<Fault> {
  const { version } = await findEditable(scope, id, query);
  if (quota && (expectedVersion ?? version) === version) return quotaReached(quota);
  return new Fault('conflict', 'The dashboard has been changed since the expected version.', { context: { version } });
}

function quotaReached(limit: number): Fault {
  return Fault.quotaReached('The project has as many dashboards as it may have.', { quota: 'dashboards_per_project', limit });
}
