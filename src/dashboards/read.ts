import { hasRole, type InProject, type ProjectScope, projectIdsOf } from '../access/scope.ts';
import type { FieldReader } from '../graph/fieldreader.ts';
import type { Slice } from '../graph/keyset.ts';
import { pickInProject } from '../graph/node.ts';
import { type Order, rangeOf, sortRows } from '../graph/order.ts';
import type { Sized } from '../graph/responsebudget.ts';
import type { IdRange } from '../kernel/page.ts';
import { groupRows, pickCounts } from '../kernel/rows.ts';
import type { Database } from '../platform/database.ts';
import { type Dashboard, type DashboardRow, heavyColumnsOf, withOrganization } from './row.ts';

// Dashboards by their ids, and the lists of projects. One statement reads the lists of all projects that a document names.

/** Dashboards by id; null for one outside the project it is requested in, or one that the viewer may not see. */
export async function findDashboards(
  database: Database,
  requested: readonly InProject[],
  reader: FieldReader,
): Promise<Array<Dashboard | null>> {
  const rows = pickInProject(requested, await reader.rows((bytesLeft) => selectByIds(database, requested, reader, bytesLeft)));
  return requested.map(({ scope }, index) => (rows[index] ? withOrganization(scope, rows[index]) : null));
}

/** Reads the selected heavy columns of as many of the first rows as `bytesLeft` allows; of none where it is null. */
function selectByIds(database: Database, requested: readonly InProject[], reader: FieldReader, bytesLeft: number | null) {
  const { readsDescription, readsWidgets } = heavyColumnsOf(reader);
  const ids = requested.map(({ id }) => id);
  const { projectIds, userIds, areAdmins } = describeScopes(requested.map(({ scope }) => scope));
  return database.query<DashboardRow & Sized>`
    SELECT id, project_id AS "projectId", created_by AS "createdById", name,
      CASE WHEN fits AND ${readsDescription}::boolean THEN description ELSE '' END AS description,
      CASE WHEN fits AND ${readsWidgets}::boolean THEN widgets ELSE 'null'::json END AS widgets,
      is_default AS "isDefault", is_public AS "isPublic", version, created, modified, size AS bytes
    FROM (
      SELECT found.*, sum(size) OVER (ORDER BY found.id) <= ${bytesLeft}::bigint AS fits
      FROM unnest(${ids}::uuid[], ${projectIds}::uuid[], ${userIds}::uuid[], ${areAdmins}::boolean[])
        AS wanted (id, project_id, user_id, is_admin)
      CROSS JOIN LATERAL (
        SELECT *, CASE WHEN ${readsDescription}::boolean THEN octet_length(description) ELSE 0 END
          + CASE WHEN ${readsWidgets}::boolean THEN json_bytes(widgets) ELSE 0 END AS size
        FROM dashboards
        WHERE id = wanted.id AND project_id = wanted.project_id
          AND (wanted.is_admin OR is_public OR created_by = wanted.user_id)
        LIMIT 1
      ) AS found
    ) AS dashboard`;
}

/** A range of the list of each project, the oldest first, with the heavy columns of as many rows as in `selectByIds`. */
export async function listDashboards(
  database: Database,
  scopes: readonly ProjectScope[],
  { above, below, limit, isAscending, offset = 0 }: IdRange,
  reader: FieldReader,
): Promise<Dashboard[][]> {
  const { projectIds, userIds, areAdmins } = describeScopes(scopes);
  const { readsDescription, readsWidgets } = heavyColumnsOf(reader);
  const query = database.queryInOrder(isAscending);
  const rows = await reader.rows(
    (bytesLeft) => query<DashboardRow & Sized>`
      SELECT id, project_id AS "projectId", created_by AS "createdById", name,
        CASE WHEN fits AND ${readsDescription}::boolean THEN description ELSE '' END AS description,
        CASE WHEN fits AND ${readsWidgets}::boolean THEN widgets ELSE 'null'::json END AS widgets,
        is_default AS "isDefault", is_public AS "isPublic", version, created, modified, size AS bytes
      FROM (
        SELECT listed.*, sum(size) OVER (ORDER BY id DESC) <= ${bytesLeft}::bigint AS fits
        FROM unnest(${projectIds}::uuid[], ${userIds}::uuid[], ${areAdmins}::boolean[]) AS wanted (project_id, user_id, is_admin)
        CROSS JOIN LATERAL (
          SELECT *, CASE WHEN ${readsDescription}::boolean THEN octet_length(description) ELSE 0 END
            + CASE WHEN ${readsWidgets}::boolean THEN json_bytes(widgets) ELSE 0 END AS size
          FROM dashboards
          WHERE project_id = wanted.project_id AND (wanted.is_admin OR is_public OR created_by = wanted.user_id)
            AND (project_id, id) > (wanted.project_id, ${above}::uuid) AND (project_id, id) < (wanted.project_id, ${below}::uuid)
          ORDER BY id DESC LIMIT ${limit} OFFSET ${offset}
        ) AS listed
      ) AS dashboard
      ORDER BY id DESC`,
  );
  return groupByScope(scopes, rows);
}

/** The default order: the oldest first. */
export const defaultDashboardOrder: Order = { field: 'id', direction: 'asc' };

/**
 * The list of each project in another order. All dashboards that the viewer may see in a project are sorted: the quota bounds
 * them. Heavy columns are read for the page alone, as in `selectByIds`.
 */
export async function listOrderedDashboards(
  database: Database,
  scopes: readonly ProjectScope[],
  order: Order,
  slice: Slice<string>,
  reader: FieldReader,
): Promise<Dashboard[][]> {
  const range = rangeOf(slice, order);
  const { nameBounds, createdBounds, limit, isAscending } = range;
  const { projectIds, userIds, areAdmins } = describeScopes(scopes);
  const { readsDescription, readsWidgets } = heavyColumnsOf(reader);
  const query = database.queryInOrder(isAscending);
  const rows = await reader.rows(
    (bytesLeft) => query<DashboardRow & Sized>`
      SELECT id, project_id AS "projectId", created_by AS "createdById", name,
        CASE WHEN fits AND ${readsDescription}::boolean THEN description ELSE '' END AS description,
        CASE WHEN fits AND ${readsWidgets}::boolean THEN widgets ELSE 'null'::json END AS widgets,
        is_default AS "isDefault", is_public AS "isPublic", version, created, modified, size AS bytes
      FROM (
        SELECT found.*, sum(size) OVER (ORDER BY id) <= ${bytesLeft}::bigint AS fits
        FROM (
          SELECT listed.*,
            CASE WHEN ${readsDescription}::boolean THEN octet_length(listed.description) ELSE 0 END
              + CASE WHEN ${readsWidgets}::boolean THEN json_bytes(listed.widgets) ELSE 0 END AS size
          FROM unnest(${projectIds}::uuid[], ${userIds}::uuid[], ${areAdmins}::boolean[]) AS wanted (project_id, user_id, is_admin)
          CROSS JOIN LATERAL (
            SELECT * FROM dashboards
            WHERE project_id = wanted.project_id AND (wanted.is_admin OR is_public OR created_by = wanted.user_id)
              AND (left(name, 255) COLLATE "C", id) > (${nameBounds.above.value}, ${nameBounds.above.id}::uuid)
              AND (left(name, 255) COLLATE "C", id) < (${nameBounds.below.value}, ${nameBounds.below.id}::uuid)
              AND (created, id) > (${createdBounds.above.value}::text::timestamptz, ${createdBounds.above.id}::uuid)
              AND (created, id) < (${createdBounds.below.value}::text::timestamptz, ${createdBounds.below.id}::uuid)
            ORDER BY CASE WHEN ${order.field}::text = 'name' THEN left(name, 255) END COLLATE "C" DESC,
              CASE WHEN ${order.field}::text = 'created' THEN created END DESC, id DESC LIMIT ${limit}
          ) AS listed
        ) AS found
      ) AS dashboard`,
  );
  return groupByScope(scopes, rows).map((dashboards) => sortRows(dashboards, order, range));
}

/** The length of each project's list. */
export async function countDashboards(database: Database, scopes: readonly ProjectScope[]): Promise<number[]> {
  const { projectIds, userIds, areAdmins } = describeScopes(scopes);
  const rows = await database.query<{ projectId: string | null; count: number | null }>`
    SELECT wanted.project_id AS "projectId", (
        SELECT count(*) FROM dashboards AS dashboard
        WHERE dashboard.project_id = wanted.project_id
          AND (wanted.is_admin OR dashboard.is_public OR dashboard.created_by = wanted.user_id)
      )::int AS count
    FROM unnest(${projectIds}::uuid[], ${userIds}::uuid[], ${areAdmins}::boolean[]) AS wanted (project_id, user_id, is_admin)`;
  return pickCounts(projectIds, rows, ({ projectId }) => projectId);
}

/** The dashboards of each project. */
function groupByScope(scopes: readonly ProjectScope[], rows: readonly DashboardRow[]): Dashboard[][] {
  const lists = groupRows(projectIdsOf(scopes), rows, ({ projectId }) => projectId);
  return scopes.map((scope, index) => (lists[index] ?? []).map((row) => withOrganization(scope, row)));
}

function describeScopes(scopes: readonly ProjectScope[]) {
  return {
    projectIds: projectIdsOf(scopes),
    userIds: scopes.map(({ viewer }) => viewer.userId),
    areAdmins: scopes.map((scope) => hasRole(scope, 'admin')),
  };
}
