import { hasRole, type ProjectScope } from '../access/scope.ts';
import type { ReadWithinBudget, Sized } from '../graph/responsebudget.ts';
import type { IdRange } from '../kernel/page.ts';

/** A row of the table `dashboards`. */
export interface DashboardRow {
  readonly id: string;
  readonly projectId: string;
  readonly createdById: string;
  readonly name: string;
  readonly description: string;
  readonly widgets: unknown;
  readonly isDefault: boolean;
  readonly isPublic: boolean;
  readonly version: number;
  readonly created: Date;
  readonly modified: Date;
}

/** A dashboard with the organization of its project. */
export type Dashboard = DashboardRow & { readonly organizationId: string };

/** The fields that may be large: a list reads them only where they are requested, and only within the response's byte budget. */
export const heavyFields: ReadonlySet<string> = new Set(['description', 'widgets']);

/** The dashboards that the viewer may see in one project, the oldest first, in a range of ids. */
export async function listDashboards(scope: ProjectScope, range: IdRange, read: ReadWithinBudget): Promise<Dashboard[]> {
  const rows = await read((bytesLeft) => selectRange(scope, { ...range, bytesLeft }));
  return rows.map((row) => withOrganization(scope, row));
}

interface RowRange extends IdRange {
  /** Bounds the heavy columns; null where they are not read. */
  readonly bytesLeft: number | null;
}

/** Reads the heavy columns of as many of the first rows as `bytesLeft` allows. */
function selectRange(scope: ProjectScope, range: RowRange): Promise<Array<DashboardRow & Sized>> {
  const { database, projectId, viewer } = scope;
  const { above, below, limit, offset = 0, bytesLeft, isAscending } = range;
  const seesAll = hasRole(scope, 'admin');
  const query = isAscending ? database.queryAscending : database.query;
  return query<DashboardRow & Sized>`
    SELECT id, project_id AS "projectId", created_by AS "createdById", name, CASE WHEN fits THEN description ELSE '' END AS description,
      CASE WHEN fits THEN widgets ELSE 'null'::json END AS widgets, is_default AS "isDefault", is_public AS "isPublic", version, created, modified,
      size AS bytes
    FROM (
      SELECT page.*, sum(size) OVER (ORDER BY id DESC) <= ${bytesLeft}::bigint AS fits
      FROM (
        SELECT *, CASE WHEN ${bytesLeft}::bigint IS NULL THEN 0 ELSE octet_length(description) + json_bytes(widgets) END AS size
        FROM dashboards
        WHERE project_id = ${projectId}::uuid AND (${seesAll}::boolean OR is_public OR created_by = ${viewer.userId}::uuid)
          AND id > ${above}::uuid AND id < ${below}::uuid
        ORDER BY id DESC LIMIT ${limit} OFFSET ${offset}
      ) AS page
    ) AS dashboard
    ORDER BY id DESC`;
}

export function withOrganization({ organizationId }: Pick<ProjectScope, 'organizationId'>, row: DashboardRow): Dashboard {
  return Object.assign(row, { organizationId });
}
