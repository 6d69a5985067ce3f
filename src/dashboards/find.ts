import { hasRole, type ProjectScope } from '../access/scope.ts';
import type { ReadWeighed, Weighed } from '../graph/answer.ts';
import { boundsOf, type Slice } from '../graph/connection.ts';
import { groupRows, pickCounts } from '../graph/level.ts';
import { type InProject, pickInProject } from '../graph/node.ts';
import { type Order, rangeOf, sortRows } from '../graph/order.ts';
import type { Database } from '../platform/database.ts';
import type { Dashboard } from './list.ts';

/** Dashboards by their ids; null for one that is none of the project that it is asked for in, or that the viewer may not see. */
export async function findDashboards(database: Database, asked: readonly InProject[], read: ReadWeighed): Promise<Array<Dashboard | null>> {
  return pickInProject(asked, await read((bytesLeft) => select(database, asked, bytesLeft)));
}

/** The heavy columns are read as far as the bytes that are left allow; without any, they are left out. */
async function select(database: Database, asked: readonly InProject[], bytesLeft: number | null): Promise<Array<Dashboard & Weighed>> {
  const ids = asked.map(({ id }) => id);
  const projectIds = asked.map(({ scope }) => scope.projectId);
  const userIds = asked.map(({ scope }) => scope.viewer.userId);
  const areAdmins = asked.map(({ scope }) => hasRole(scope, 'admin'));
  const rows = await database.query<Row>`
    SELECT id, "projectId", "organizationId", "createdById", name, "isDefault", "isPublic", version, created, modified,
      CASE WHEN fits THEN description ELSE '' END AS description, CASE WHEN fits THEN widgets ELSE '[]'::json END AS widgets,
      size AS bytes
    FROM (
      SELECT found.*, sum(size) OVER (ORDER BY id) <= ${bytesLeft}::bigint AS fits
      FROM (
        SELECT dashboard.id, dashboard.project_id AS "projectId", project.organization_id AS "organizationId",
          dashboard.created_by AS "createdById", dashboard.name, dashboard.is_default AS "isDefault",
          dashboard.is_public AS "isPublic", dashboard.version, dashboard.created, dashboard.modified, dashboard.description,
          dashboard.widgets,
          CASE WHEN ${bytesLeft}::bigint IS NULL THEN 0 ELSE octet_length(dashboard.description) + octet_length(dashboard.widgets::text) END AS size
        FROM unnest(${ids}::uuid[], ${projectIds}::uuid[], ${userIds}::uuid[], ${areAdmins}::boolean[])
          AS wanted (id, project_id, user_id, is_admin)
        CROSS JOIN LATERAL (
          SELECT * FROM dashboards
          WHERE dashboards.id = wanted.id AND dashboards.project_id = wanted.project_id
            AND (wanted.is_admin OR dashboards.is_public OR dashboards.created_by = wanted.user_id)
          LIMIT 1
        ) AS dashboard
        JOIN projects AS project ON project.id = dashboard.project_id
      ) AS found
    ) AS weighed`;
  return rows as Array<Dashboard & Weighed>;
}

/** Of JSON the database says nothing more. */
type Row = Omit<Dashboard, 'widgets'> & Weighed & { readonly widgets: unknown };

/** The list of each of several projects: two statements, however many projects. */
export async function listOfProjects(
  database: Database,
  scopes: readonly ProjectScope[],
  slice: Slice<string>,
  read: ReadWeighed,
): Promise<Dashboard[][]> {
  const { above, below, limit, isAscending } = boundsOf(slice, 'asc');
  const { projectIds, userIds, areAdmins } = describeScopes(scopes);
  const rows = isAscending
    ? await database.query<Place>`
        SELECT listed.id, wanted.project_id AS "projectId"
        FROM unnest(${projectIds}::uuid[], ${userIds}::uuid[], ${areAdmins}::boolean[]) AS wanted (project_id, user_id, is_admin)
        CROSS JOIN LATERAL (
          SELECT dashboard.id FROM dashboards AS dashboard
          WHERE dashboard.project_id = wanted.project_id
            AND (wanted.is_admin OR dashboard.is_public OR dashboard.created_by = wanted.user_id)
            AND dashboard.id > ${above}::uuid AND dashboard.id < ${below}::uuid
          ORDER BY dashboard.id LIMIT ${limit}
        ) AS listed
        ORDER BY listed.id`
    : await database.query<Place>`
        SELECT listed.id, wanted.project_id AS "projectId"
        FROM unnest(${projectIds}::uuid[], ${userIds}::uuid[], ${areAdmins}::boolean[]) AS wanted (project_id, user_id, is_admin)
        CROSS JOIN LATERAL (
          SELECT dashboard.id FROM dashboards AS dashboard
          WHERE dashboard.project_id = wanted.project_id
            AND (wanted.is_admin OR dashboard.is_public OR dashboard.created_by = wanted.user_id)
            AND dashboard.id > ${above}::uuid AND dashboard.id < ${below}::uuid
          ORDER BY dashboard.id DESC LIMIT ${limit}
        ) AS listed
        ORDER BY listed.id DESC`;
  const scopeOf = new Map(scopes.map((scope) => [scope.projectId, scope]));
  const asked = rows.flatMap(({ id, projectId }) => {
    const scope = scopeOf.get(projectId);
    return scope ? [{ scope, id }] : [];
  });
  const found = asked.length > 0 ? await findDashboards(database, asked, read) : [];
  return groupRows(
    projectIds,
    found.filter((dashboard) => dashboard !== null),
    ({ projectId }) => projectId,
  );
}

/** The order in which dashboards come unless another is asked for: the oldest first. */
export const dashboardOrder: Order = { field: 'id', direction: 'asc' };

/**
 * The list of each project in another order: all that the viewer may see of a project are sorted, which are no more than its
 * quota. The heavy columns are read of a page alone, as in `select`.
 */
export async function orderDashboards(
  database: Database,
  scopes: readonly ProjectScope[],
  order: Order,
  slice: Slice<string>,
  read: ReadWeighed,
): Promise<Dashboard[][]> {
  const range = rangeOf(slice, order);
  const { names, moments, limit, isAscending } = range;
  const { projectIds, userIds, areAdmins } = describeScopes(scopes);
  const rows = await read(
    (bytesLeft) => database.query<Row>`
      SELECT id, "projectId", "organizationId", "createdById", name, "isDefault", "isPublic", version, created, modified,
        CASE WHEN fits THEN description ELSE '' END AS description, CASE WHEN fits THEN widgets ELSE '[]'::json END AS widgets,
        size AS bytes
      FROM (
        SELECT found.*, sum(size) OVER (ORDER BY id) <= ${bytesLeft}::bigint AS fits
        FROM (
          SELECT dashboard.id, dashboard.project_id AS "projectId", project.organization_id AS "organizationId",
            dashboard.created_by AS "createdById", dashboard.name, dashboard.is_default AS "isDefault",
            dashboard.is_public AS "isPublic", dashboard.version, dashboard.created, dashboard.modified, dashboard.description,
            dashboard.widgets,
            CASE WHEN ${bytesLeft}::bigint IS NULL THEN 0 ELSE octet_length(dashboard.description) + octet_length(dashboard.widgets::text) END AS size
          FROM unnest(${projectIds}::uuid[], ${userIds}::uuid[], ${areAdmins}::boolean[]) AS wanted (project_id, user_id, is_admin)
          CROSS JOIN LATERAL (
            SELECT seen.* FROM (
              SELECT dashboards.*, row_number() OVER (ORDER BY
                CASE WHEN ${order.field}::text = 'name' THEN left(name, 255) END COLLATE "C",
                CASE WHEN ${order.field}::text = 'created' THEN created END, id) AS place
              FROM dashboards
              WHERE project_id = wanted.project_id AND (wanted.is_admin OR is_public OR created_by = wanted.user_id)
                AND (left(name, 255) COLLATE "C", id) > (${names.above.value}, ${names.above.id}::uuid)
                AND (left(name, 255) COLLATE "C", id) < (${names.below.value}, ${names.below.id}::uuid)
                AND (created, id) > (${moments.above.value}::text::timestamptz, ${moments.above.id}::uuid)
                AND (created, id) < (${moments.below.value}::text::timestamptz, ${moments.below.id}::uuid)
            ) AS seen
            ORDER BY CASE WHEN ${isAscending}::boolean THEN place ELSE -place END LIMIT ${limit}
          ) AS dashboard
          JOIN projects AS project ON project.id = dashboard.project_id
        ) AS found
      ) AS weighed`,
  );
  const lists = groupRows(projectIds, rows as Array<Dashboard & Weighed>, ({ projectId }) => projectId);
  return lists.map((dashboards) => sortRows(dashboards, order, range));
}

interface Place {
  readonly id: string;
  readonly projectId: string;
}

/** How many there are in each of the lists. */
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

function describeScopes(scopes: readonly ProjectScope[]) {
  return {
    projectIds: scopes.map(({ projectId }) => projectId),
    userIds: scopes.map(({ viewer }) => viewer.userId),
    areAdmins: scopes.map((scope) => hasRole(scope, 'admin')),
  };
}
