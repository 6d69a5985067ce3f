import { columnsOf, type InProject, type ProjectScope } from '../access/scope.ts';
import type { FieldReader } from '../graph/fieldreader.ts';
import { pickInProject } from '../graph/node.ts';
import type { Sized } from '../graph/responsebudget.ts';
import type { Database } from '../platform/database.ts';
import { type HeavyColumns, heavyColumnsOf } from './heavycolumns.ts';
import type { Notification } from './log.ts';

// Notifications by their ids: named ones, and those that a statement has listed.

/** A notification with the project of its log. */
export type FoundNotification = Notification & { readonly projectId: string };

/** Notifications by their ids, each for the viewer of its scope; null for one of another project. */
export async function findNotifications(
  database: Database,
  requested: readonly InProject[],
  reader: FieldReader,
): Promise<Array<FoundNotification | null>> {
  return pickInProject(requested, await reader.rows((bytesLeft) => selectByIds(database, requested, heavyColumnsOf(reader, bytesLeft))));
}

/** The rows with these ids, with the heavy columns of as many of them as `bytesLeft` allows. */
function selectByIds(
  database: Database,
  requested: readonly InProject[],
  { readsBody, readsData, bytesLeft }: HeavyColumns,
): Promise<Array<FoundNotification & Sized>> {
  const { ids, projectIds } = columnsOf(requested);
  const userIds = requested.map(({ scope }) => scope.viewer.userId);
  return database.query<FoundNotification & Sized>`
    SELECT id, "projectId", sequence, kind, severity, title,
      CASE WHEN fits AND ${readsBody}::boolean THEN body ELSE '' END AS body,
      "resourceType", "resourceId",
      CASE WHEN fits AND ${readsData}::boolean THEN data ELSE '{}'::json END AS data, created, read,
      size AS bytes
    FROM (
      SELECT found.*, sum(size) OVER (ORDER BY id) <= ${bytesLeft}::bigint AS fits
      FROM (
        SELECT notification.id, notification.project_id AS "projectId", notification.sequence, notification.kind,
          notification.severity, notification.title, notification.body, notification.resource_type AS "resourceType",
          notification.resource_id AS "resourceId", notification.data, notification.created,
          single.sequence IS NOT NULL OR notification.sequence <= coalesce(state.read_through, 0) AS read,
          CASE WHEN ${readsBody}::boolean THEN octet_length(notification.body) ELSE 0 END
            + CASE WHEN ${readsData}::boolean THEN json_bytes(notification.data) ELSE 0 END AS size
        FROM unnest(${ids}::uuid[], ${projectIds}::uuid[], ${userIds}::uuid[]) AS wanted (id, project_id, user_id)
        CROSS JOIN LATERAL (
          SELECT * FROM notifications WHERE notifications.id = wanted.id AND notifications.project_id = wanted.project_id LIMIT 1
        ) AS notification
        LEFT JOIN LATERAL (
          SELECT states.read_through FROM notification_states AS states
          WHERE states.project_id = notification.project_id AND states.user_id = wanted.user_id
          LIMIT 1
        ) AS state ON true
        LEFT JOIN LATERAL (
          SELECT reads.sequence FROM notification_reads AS reads
          WHERE reads.project_id = notification.project_id AND reads.user_id = wanted.user_id
            AND reads.sequence = notification.sequence
          LIMIT 1
        ) AS single ON true
      ) AS found
    ) AS weighed`;
}

/** A row of the list of a parent: of a project, or of a resource. */
export interface ListedRow {
  readonly id: string | null;
  readonly parentId: string;
}

/** Loads the notifications of listed rows, in their order, each in the scope of its parent. */
export async function loadListed(
  database: Database,
  { rows, scopesById }: { rows: readonly ListedRow[]; scopesById: ReadonlyMap<string, ProjectScope> },
  reader: FieldReader,
): Promise<FoundNotification[]> {
  const requested = rows.flatMap(({ id, parentId }) => {
    const scope = scopesById.get(parentId);
    return scope && id !== null ? [{ scope, id }] : [];
  });
  const found = requested.length > 0 ? await findNotifications(database, requested, reader) : [];
  return found.filter((notification) => notification !== null);
}
