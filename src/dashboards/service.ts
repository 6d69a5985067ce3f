import { hasRole, openProject, type ProjectScope, requireRole } from '../access/scope.ts';
import { Fault } from '../kernel/fault.ts';
import { toJsonText } from '../kernel/jsontext.ts';
import { parseUuid } from '../kernel/uuid.ts';
import type { Statements } from '../platform/database.ts';
import type { Query } from '../platform/query.ts';
import { type Dashboard, type Row, withOrganization } from './list.ts';

/** What a PUT replaces, defaults filled in. */
interface DashboardContent {
  readonly name: string;
  readonly description: string;
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

/** How many dashboards a project may have. */
export interface DashboardQuota {
  readonly perProject: number;
}

/** Throws `permission_denied` below the role `member`, and `conflict` where the project has as many as it may. */
export async function createDashboard(
  scope: ProjectScope<Statements>,
  content: DashboardContent,
  quota: DashboardQuota,
): Promise<Dashboard> {
  requireRole(scope, 'member');
  return asDefault(scope, content.isDefault ? [scope.projectId] : [], async (query) => {
    if (content.isDefault) await clearDefault(query, scope.projectId);
    const now = new Date();
    const [row] = await query<Row>`
      INSERT INTO dashboards (project_id, created_by, name, description, widgets, is_default, is_public, created, modified)
      SELECT ${scope.projectId}::uuid, ${scope.viewer.userId}::uuid, ${content.name}::text, ${content.description}::text,
        ${widgetsText(content)}::json, ${content.isDefault}::boolean, ${content.isPublic}::boolean, ${now}::timestamptz, ${now}::timestamptz
      WHERE has_dashboard_room(${scope.projectId}::uuid, ${quota.perProject}::bigint)
      RETURNING id, project_id AS "projectId", created_by AS "createdById", name, description, widgets,
        is_default AS "isDefault", is_public AS "isPublic", version, created, modified`;
    if (!row) throw refuseMore(quota);
    return withOrganization(scope, row);
  });
}

/** Replaces a dashboard (§4.2): what is left out has returned to its default. Throws as `patchDashboard` does. */
export function updateDashboard(scope: ProjectScope<Statements>, change: DashboardChange, quota: DashboardQuota): Promise<Dashboard> {
  return patchDashboard(scope, { ...change, widgets: change.widgets === undefined ? [] : change.widgets }, quota);
}

/** What is given is changed, and nothing else; `null` is a value for `widgets` alone. */
type DashboardPatch = Pick<DashboardChange, 'id' | 'project' | 'expectedVersion'> & {
  readonly [Name in keyof DashboardContent]?: DashboardContent[Name] | null;
};

/**
 * Changes a dashboard; one that moves is not the default of its new project, unless it is made that. Throws `not_found`
 * and `permission_denied` as the viewer may see and edit it, a field error for a project that it cannot move to, and
 * `conflict` with the current version when that is not the expected one, or with the quota when the project to move to has
 * as many as it may.
 */
export async function patchDashboard(scope: ProjectScope<Statements>, change: DashboardPatch, quota: DashboardQuota): Promise<Dashboard> {
  const { query } = scope.database;
  const moves = Boolean(change.project) && change.project !== scope.projectId;
  // Where it may move to is told only to those who may edit it.
  const projectId = moves ? await findEditable(scope, change.id, query).then(() => findTarget(scope, change.project)) : scope.projectId;
  const { name = null, description = null, isPublic = null, widgets } = change;
  const isDefault = change.isDefault ?? (moves ? false : null);
  const [editsAll, editsOwn] = [hasRole(scope, 'admin'), hasRole(scope, 'member')];
  const id = parseUuid(change.id);
  return asDefault(scope, isDefault ? [scope.projectId, projectId] : [], async (query) => {
    if (isDefault) await clearDefault(query, projectId, id);
    const [row] = await query<Row>`
      UPDATE dashboards SET name = coalesce(${name}, name), description = coalesce(${description}, description),
        widgets = coalesce(${widgets === undefined ? null : widgetsText({ widgets })}::json, widgets),
        is_default = coalesce(${isDefault}::boolean, is_default), is_public = coalesce(${isPublic}::boolean, is_public),
        project_id = ${projectId}::uuid, version = version + 1, modified = ${new Date()}
      WHERE id = ${id}::uuid AND project_id = ${scope.projectId}::uuid
        AND (${editsAll}::boolean OR (${editsOwn}::boolean AND created_by = ${scope.viewer.userId}::uuid))
        AND version = coalesce(${change.expectedVersion ?? null}::int, version)
        AND CASE WHEN ${moves}::boolean THEN has_dashboard_room(${projectId}::uuid, ${quota.perProject}::bigint) ELSE true END
      RETURNING id, project_id AS "projectId", created_by AS "createdById", name, description, widgets,
        is_default AS "isDefault", is_public AS "isPublic", version, created, modified`;
    if (!row) throw await explainMiss(scope, change, query, moves ? quota : null);
    return withOrganization(scope, row);
  });
}

/** Deletes a dashboard; throws as `updateDashboard` does. Returns its id. */
export async function deleteDashboard(
  scope: ProjectScope<Statements>,
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

/** Throws `not_found` for what the viewer may not see, `permission_denied` for what they may not edit. */
async function findEditable(scope: ProjectScope<Statements>, id: string, query: Query): Promise<{ readonly version: number }> {
  const dashboardId = parseUuid(id);
  if (!dashboardId) throw Fault.notFound();
  const seesAll = hasRole(scope, 'admin');
  const [row] = await query<{ createdById: string; version: number }>`
    SELECT created_by AS "createdById", version FROM dashboards
    WHERE id = ${dashboardId}::uuid AND project_id = ${scope.projectId}::uuid
      AND (${seesAll}::boolean OR is_public OR created_by = ${scope.viewer.userId}::uuid)`;
  if (!row) throw Fault.notFound();
  requireRole(scope, row.createdById === scope.viewer.userId ? 'member' : 'admin');
  return row;
}

/** The project to move to: of the same organization, and one in which the viewer may edit dashboards. */
async function findTarget(scope: ProjectScope<Statements>, project: string | null | undefined): Promise<string> {
  if (!project || project === scope.projectId) return scope.projectId;
  const ids = { organizationId: scope.organizationId, projectId: project };
  const target = await openProject(scope.database, scope.viewer, ids).catch((failure) => {
    if (failure instanceof Fault && failure.code === 'not_found') return null;
    throw failure;
  });
  if (!target || !hasRole(target, 'member')) throw Fault.invalidFields({ project: ['Not a project that the dashboard can be moved to.'] });
  return target.projectId;
}

/**
 * Runs `work` alone among those that set a default in the same projects: their rows are locked, in the order of their
 * ids, so that two who move dashboards opposite ways do not wait for each other. Without projects, no transaction.
 */
async function asDefault<Result>(
  { database }: ProjectScope<Statements>,
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
    UPDATE dashboards SET is_default = false, version = version + 1, modified = ${new Date()}
    WHERE project_id = ${projectId}::uuid AND is_default AND id IS DISTINCT FROM ${exceptId}::uuid`;
}

/**
 * Why a dashboard was not changed: the viewer may not see or edit it, it is another version now, or there is no room for
 * it, where there is a `quota` to be kept.
 */
async function explainMiss(
  scope: ProjectScope<Statements>,
  { id, expectedVersion }: { id: string; expectedVersion?: number | null },
  query: Query,
  quota: DashboardQuota | null = null,
): Promise<Fault> {
  const { version } = await findEditable(scope, id, query);
  if (quota && (expectedVersion ?? version) === version) return refuseMore(quota);
  return new Fault('conflict', 'The dashboard has been changed since the expected version.', { context: { version } });
}

function refuseMore({ perProject }: DashboardQuota): Fault {
  return new Fault('conflict', 'The project has as many dashboards as it may have.', {
    context: { quota: 'dashboards_per_project', limit: perProject },
  });
}

/** The JSON goes in as text: Prisma's own way would drop a key named __proto__. Left out it is `[]`; null is a value. */
function widgetsText({ widgets = [] }: Pick<DashboardContent, 'widgets'>): string {
  return toJsonText(widgets);
}
