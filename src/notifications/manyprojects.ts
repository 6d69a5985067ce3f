import { type ProjectScope, projectIdsOf } from '../access/scope.ts';
import type { FieldReader } from '../graph/fieldreader.ts';
import type { Slice } from '../graph/keyset.ts';
import { clampPage, hasPage, makePage, type Page, type PageRequest } from '../kernel/page.ts';
import { groupRows, pickCounts } from '../kernel/rows.ts';
import type { Database } from '../platform/database.ts';
import type { NotificationFilter } from './filter.ts';
import { type FoundNotification, type ListedRow, loadListed } from './find.ts';
import { MAX_SEQUENCE } from './log.ts';

// The lists of several projects that one document names, such as those of an organization: one statement finds the ids in all lists,
// and another one reads the rows, whatever the number of projects. The one list of oneproject.ts takes a statement less, and skips no
// rows before a page without a filter.

/** A part of the list of each project. */
interface ProjectsPart {
  readonly filter: NotificationFilter;
  readonly slice: Slice<number>;
  readonly offset?: number;
}

/** A slice of the list of each project, the newest first: two statements, whatever the number of projects. */
export async function listNotificationsByProject(
  database: Database,
  scopes: readonly ProjectScope[],
  part: ProjectsPart,
  reader: FieldReader,
): Promise<FoundNotification[][]> {
  const rows = await (part.filter.unread === false ? selectRead : selectAny)(database, scopes, part);
  const scopesById = new Map(scopes.map((scope) => [scope.projectId, scope]));
  return groupRows(projectIdsOf(scopes), await loadListed(database, { rows, scopesById }, reader), ({ projectId }) => projectId);
}

/** The parameters of both statements below. */
function parametersOf(database: Database, scopes: readonly ProjectScope[], { slice, offset = 0 }: ProjectsPart) {
  const { before: above = 0, after: below = MAX_SEQUENCE, limit, isBackwards } = slice;
  const userIds = scopes.map(({ viewer }) => viewer.userId);
  const query = database.queryInOrder(isBackwards);
  return { projectIds: projectIdsOf(scopes), userIds, above, below, limit, offset, query };
}

/** The entries of lists of all notifications, or of unread ones. */
function selectAny(database: Database, scopes: readonly ProjectScope[], part: ProjectsPart): Promise<ListedRow[]> {
  const { unread, severity, kind } = part.filter;
  const { projectIds, userIds, above, below, limit, offset, query } = parametersOf(database, scopes, part);
  return query<ListedRow>`
    SELECT listed.id, wanted.project_id AS "parentId"
    FROM unnest(${projectIds}::uuid[], ${userIds}::uuid[]) AS wanted (project_id, user_id)
    CROSS JOIN LATERAL (
      SELECT greatest(${above}::bigint, CASE WHEN ${unread}::boolean THEN max(read_through) END) AS above
      FROM notification_states WHERE project_id = wanted.project_id AND user_id = wanted.user_id
    ) AS mark
    CROSS JOIN LATERAL (
      SELECT either.id, either.sequence FROM (
        (SELECT notification.id, notification.sequence FROM notifications AS notification
        LEFT JOIN LATERAL (
          SELECT reads.sequence FROM notification_reads AS reads
          WHERE reads.project_id = notification.project_id AND reads.user_id = wanted.user_id AND reads.sequence = notification.sequence LIMIT 1
        ) AS single ON true
        WHERE ${kind}::text IS NULL AND ${severity}::severity IS NULL AND notification.project_id = wanted.project_id
          AND notification.sequence > mark.above AND notification.sequence < ${below}::bigint
          AND (single.sequence IS NULL OR ${unread}::boolean IS NOT TRUE)
        ORDER BY notification.sequence DESC LIMIT ${limit} OFFSET ${offset})
        UNION ALL
        (SELECT notification.id, notification.sequence FROM notifications AS notification
        LEFT JOIN LATERAL (
          SELECT reads.sequence FROM notification_reads AS reads
          WHERE reads.project_id = notification.project_id AND reads.user_id = wanted.user_id AND reads.sequence = notification.sequence LIMIT 1
        ) AS single ON true
        WHERE ${kind}::text IS NOT NULL AND notification.project_id = wanted.project_id AND notification.kind = ${kind}::text
          AND (${severity}::severity IS NULL OR ${severity}::severity = notification.severity)
          AND notification.sequence > mark.above AND notification.sequence < ${below}::bigint
          AND (single.sequence IS NULL OR ${unread}::boolean IS NOT TRUE)
        ORDER BY notification.sequence DESC LIMIT ${limit} OFFSET ${offset})
        UNION ALL
        (SELECT notification.id, notification.sequence FROM notifications AS notification
        LEFT JOIN LATERAL (
          SELECT reads.sequence FROM notification_reads AS reads
          WHERE reads.project_id = notification.project_id AND reads.user_id = wanted.user_id AND reads.sequence = notification.sequence LIMIT 1
        ) AS single ON true
        WHERE ${kind}::text IS NULL AND ${severity}::severity IS NOT NULL AND notification.project_id = wanted.project_id AND ${severity}::severity = notification.severity
          AND notification.sequence > mark.above AND notification.sequence < ${below}::bigint
          AND (single.sequence IS NULL OR ${unread}::boolean IS NOT TRUE)
        ORDER BY notification.sequence DESC LIMIT ${limit} OFFSET ${offset})
      ) AS either
    ) AS listed
    ORDER BY listed.sequence DESC`;
}

/** The entries of lists of read notifications, as `selectRead` in oneproject.ts finds them. */
function selectRead(database: Database, scopes: readonly ProjectScope[], part: ProjectsPart): Promise<ListedRow[]> {
  const { severity, kind } = part.filter;
  const { projectIds, userIds, above, below, limit, offset, query } = parametersOf(database, scopes, part);
  return query<ListedRow>`
    SELECT listed.id, wanted.project_id AS "parentId"
    FROM unnest(${projectIds}::uuid[], ${userIds}::uuid[]) AS wanted (project_id, user_id)
    CROSS JOIN LATERAL (
      SELECT greatest(${above}::bigint, max(read_through)) AS single_above, least(${below}::bigint, coalesce(max(read_through), 0) + 1) AS through_below
      FROM notification_states WHERE project_id = wanted.project_id AND user_id = wanted.user_id
    ) AS mark
    CROSS JOIN LATERAL (
      SELECT either.id, either.sequence FROM (
        (SELECT notification.id, single.sequence FROM notification_reads AS single
        CROSS JOIN LATERAL (
          SELECT one.id, one.kind, one.severity FROM notifications AS one
          WHERE one.project_id = wanted.project_id AND one.sequence = single.sequence LIMIT 1
        ) AS notification
        WHERE single.project_id = wanted.project_id AND single.user_id = wanted.user_id
          AND single.sequence > mark.single_above AND single.sequence < ${below}::bigint
          AND (${kind}::text IS NULL OR ${kind}::text = notification.kind)
          AND (${severity}::severity IS NULL OR ${severity}::severity = notification.severity)
        ORDER BY single.sequence DESC LIMIT ${limit}::bigint + ${offset}::bigint)
        UNION ALL
        (SELECT notification.id, notification.sequence FROM notifications AS notification
        WHERE ${kind}::text IS NULL AND ${severity}::severity IS NULL AND notification.project_id = wanted.project_id
          AND notification.sequence > ${above}::bigint AND notification.sequence < mark.through_below
        ORDER BY notification.sequence DESC LIMIT ${limit}::bigint + ${offset}::bigint)
        UNION ALL
        (SELECT notification.id, notification.sequence FROM notifications AS notification
        WHERE ${kind}::text IS NOT NULL AND notification.project_id = wanted.project_id AND notification.kind = ${kind}::text
          AND (${severity}::severity IS NULL OR ${severity}::severity = notification.severity)
          AND notification.sequence > ${above}::bigint AND notification.sequence < mark.through_below
        ORDER BY notification.sequence DESC LIMIT ${limit}::bigint + ${offset}::bigint)
        UNION ALL
        (SELECT notification.id, notification.sequence FROM notifications AS notification
        WHERE ${kind}::text IS NULL AND ${severity}::severity IS NOT NULL AND notification.project_id = wanted.project_id AND ${severity}::severity = notification.severity
          AND notification.sequence > ${above}::bigint AND notification.sequence < mark.through_below
        ORDER BY notification.sequence DESC LIMIT ${limit}::bigint + ${offset}::bigint)
      ) AS either
      ORDER BY either.sequence DESC LIMIT ${limit} OFFSET ${offset}
    ) AS listed
    ORDER BY listed.sequence DESC`;
}

/** One page of the list of each of several projects (§2.7), in three statements; null for a project whose list has no such page. */
export async function pageNotificationsByProject(
  database: Database,
  scopes: readonly ProjectScope[],
  { filter, ...paging }: PageRequest & { readonly filter: NotificationFilter },
  reader: FieldReader,
): Promise<Array<Page<FoundNotification> | null>> {
  const request = clampPage(paging);
  const counts = await countNotificationsByProject(database, scopes, filter);
  const slice = { after: undefined, before: undefined, limit: request.pageSize, isBackwards: false };
  const part = { filter, slice, offset: (request.page - 1) * request.pageSize };
  const withPage = scopes.filter((_scope, index) => hasPage(request, counts[index] ?? 0));
  const lists = withPage.length > 0 ? await listNotificationsByProject(database, withPage, part, reader) : [];
  const results = new Map(withPage.map(({ projectId }, index) => [projectId, lists[index] ?? []]));
  return scopes.map(({ projectId }, index) => {
    const found = results.get(projectId);
    return found ? makePage(request, counts[index] ?? 0, found) : null;
  });
}

/** The length of the list of each project; only with a filter by severity or kind does it count rows. */
export async function countNotificationsByProject(
  database: Database,
  scopes: readonly ProjectScope[],
  { unread, severity, kind }: NotificationFilter,
): Promise<number[]> {
  const projectIds = projectIdsOf(scopes);
  const userIds = scopes.map(({ viewer }) => viewer.userId);
  const rows = await database.query<{ projectId: string; count: number | null }>`
    SELECT wanted.project_id AS "projectId", (CASE
        WHEN ${kind}::text IS NOT NULL OR ${severity}::severity IS NOT NULL THEN (
          SELECT count(*)
          FROM (
            SELECT sequence FROM notifications
            WHERE ${severity}::severity IS NULL AND project_id = wanted.project_id AND kind = ${kind}::text
            UNION ALL
            SELECT sequence FROM notifications
            WHERE ${severity}::severity IS NOT NULL AND project_id = wanted.project_id AND kind = ${kind}::text AND ${severity}::severity = severity
            UNION ALL
            SELECT sequence FROM notifications
            WHERE ${kind}::text IS NULL AND project_id = wanted.project_id AND ${severity}::severity = severity
          ) AS notification
          WHERE ${unread}::boolean IS NULL
            OR ${unread}::boolean <> (notification.sequence <= coalesce(state.read_through, 0) OR EXISTS (
              SELECT FROM notification_reads AS single
              WHERE single.project_id = wanted.project_id AND single.user_id = wanted.user_id AND single.sequence = notification.sequence
            )))
        WHEN ${unread}::boolean IS NULL THEN log.last_sequence - log.pruned_through
        WHEN ${unread}::boolean THEN unread_notifications(wanted.project_id, wanted.user_id)
        ELSE log.last_sequence - log.pruned_through - unread_notifications(wanted.project_id, wanted.user_id)
      END)::bigint AS count
    FROM unnest(${projectIds}::uuid[], ${userIds}::uuid[]) AS wanted (project_id, user_id)
    JOIN notification_logs AS log ON log.project_id = wanted.project_id
    LEFT JOIN notification_states AS state ON state.project_id = wanted.project_id AND state.user_id = wanted.user_id`;
  return pickCounts(projectIds, rows, ({ projectId }) => projectId);
}
