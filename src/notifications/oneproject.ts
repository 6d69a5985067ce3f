import type { ProjectScope } from '../access/scope.ts';
import type { FieldReader } from '../graph/fieldreader.ts';
import type { Slice } from '../graph/keyset.ts';
import type { Sized } from '../graph/responsebudget.ts';
import { clampPage, makePage, type Page, type PageRequest, pageOffset } from '../kernel/page.ts';
import type { Database } from '../platform/database.ts';
import type { Query } from '../platform/query.ts';
import type { NotificationFilter } from './filter.ts';
import { type HeavyColumns, heavyColumnsOf } from './heavycolumns.ts';
import { MAX_SEQUENCE, type Notification } from './log.ts';

// The list of one project, which nearly every request is for: one statement reads sequences and rows, a page without a filter begins
// at a known sequence, as a log has no gaps, and no page looks for more rows than its list has. The same for several projects would need
// a bound and a number of rows for each, so their lists have statements of their own, in manyprojects.ts.

/** A slice of the notifications of a project, the newest first, by cursors: as fast deep in the log as at its end. */
export async function listNotifications(
  scope: ProjectScope,
  { filter, slice }: { filter: NotificationFilter; slice: Slice<number> },
  reader: FieldReader,
): Promise<Notification[]> {
  const { after: below = MAX_SEQUENCE, before: above = 0, limit, isBackwards: isAscending } = slice;
  const part = { ...listOf(scope, filter), above, below, limit, offset: 0, isAscending };
  return reader.rows((bytesLeft) => loadListPart(scope.database, { ...part, ...heavyColumnsOf(reader, bytesLeft) }));
}

/** One page of the same list (§2.7). Throws `not_found` past the end. */
export async function pageNotifications(
  scope: ProjectScope,
  { filter, ...paging }: PageRequest & { readonly filter: NotificationFilter },
  reader: FieldReader,
): Promise<Page<Notification>> {
  const { database } = scope;
  const request = clampPage(paging);
  const list = listOf(scope, filter);
  const isFiltered = list.severity !== null || list.kind !== null;
  const { count, last } = isFiltered ? { count: await countFiltered(database, list), last: MAX_SEQUENCE } : await countList(database, list);
  const offset = pageOffset(request, count);
  // Without a filter the sequences have no gaps: the first one of the page is known, and no rows are skipped by an offset.
  const isGapless = !isFiltered && list.unread === null;
  const start = isGapless ? { below: last - offset + 1, offset: 0 } : { below: MAX_SEQUENCE, offset };
  // The limit is the number of rows that exist: a search for one more would read the whole log behind the last one that passes a filter.
  const limit = Math.min(request.pageSize, count - offset);
  const part = { ...list, ...start, above: 0, limit, isAscending: false };
  const results = await reader.rows((bytesLeft) => loadListPart(database, { ...part, ...heavyColumnsOf(reader, bytesLeft) }));
  return makePage(request, count, results);
}

function listOf({ projectId, viewer }: ProjectScope, filter: NotificationFilter): NotificationList {
  return { ...filter, projectId, userId: viewer.userId };
}

/** The notifications of a project for a user: all of them, or those that pass a filter. */
interface NotificationList extends NotificationFilter {
  readonly projectId: string;
  readonly userId: string;
}

/** A part of a list: the entries with sequences between two bounds, both exclusive, the newest first unless `isAscending`. */
interface ListPart extends NotificationList, HeavyColumns {
  readonly above: number;
  readonly below: number;
  readonly limit: number;
  readonly offset: number;
  readonly isAscending: boolean;
}

type Row = Notification & Sized;

/**
 * The notifications of a part, with the heavy columns of as many rows as `bytesLeft` allows.
 *
 * A list is read in the order of the log, or by the index of a kind or a severity that the filter names. Each statement has one
 * plan, which is right for every part. Where two indexes could be needed, the statement has a branch for each: one of them
 * finds the sequences, then the rows are read. A value on which the plan would depend is in a subselect, which the planner
 * does not evaluate. The lower bound is compared as a row: for two plain bounds the planner would expect few rows, read all of
 * them and sort.
 */
function loadListPart(database: Database, part: ListPart): Promise<Row[]> {
  const query = database.queryInOrder(part.isAscending);
  if (part.unread === false) return selectRead(query, part);
  return part.kind === null && part.severity === null ? selectLog(query, part) : selectFiltered(query, part);
}

function selectLog(query: Query, part: ListPart): Promise<Row[]> {
  const { projectId, userId, unread, above, below, limit, offset, readsBody, readsData, bytesLeft } = part;
  return query<Row>`
    WITH mark AS (
      SELECT coalesce(max(read_through), 0) AS read_through,
        greatest(${above}::bigint, CASE WHEN ${unread}::boolean THEN max(read_through) END) AS above
      FROM notification_states WHERE project_id = ${projectId}::uuid AND user_id = ${userId}::uuid
    )
    SELECT id, sequence, kind, severity, title,
      CASE WHEN fits AND ${readsBody}::boolean THEN body ELSE '' END AS body,
      "resourceType", "resourceId",
      CASE WHEN fits AND ${readsData}::boolean THEN data ELSE '{}'::json END AS data, created, read,
      size AS bytes
    FROM (
      SELECT page.*, sum(size) OVER (ORDER BY sequence DESC) <= ${bytesLeft}::bigint AS fits
      FROM (
        SELECT listed.*, CASE WHEN ${readsBody}::boolean THEN octet_length(body) ELSE 0 END
          + CASE WHEN ${readsData}::boolean THEN json_bytes(data) ELSE 0 END AS size
        FROM (
          SELECT notification.id, notification.sequence, notification.kind, notification.severity, notification.title, notification.body,
            notification.resource_type AS "resourceType", notification.resource_id AS "resourceId", notification.data, notification.created,
            single.sequence IS NOT NULL OR notification.sequence <= (SELECT read_through FROM mark) AS read
          FROM notifications AS notification
          LEFT JOIN LATERAL (
            SELECT reads.sequence FROM notification_reads AS reads
            WHERE reads.project_id = notification.project_id AND reads.user_id = ${userId}::uuid AND reads.sequence = notification.sequence LIMIT 1
          ) AS single ON true
          WHERE notification.project_id = ${projectId}::uuid
            AND notification.sequence < (SELECT ${below}::bigint)
            AND (notification.sequence, notification.project_id) > ((SELECT above FROM mark), ${projectId}::uuid)
            AND (single.sequence IS NULL OR (SELECT ${unread}::boolean IS NOT TRUE))
          ORDER BY notification.sequence DESC LIMIT (SELECT ${limit}::int) OFFSET ${offset}
        ) AS listed
      ) AS page
    ) AS notification
    ORDER BY sequence DESC`;
}

function selectFiltered(query: Query, part: ListPart): Promise<Row[]> {
  const { projectId, userId, unread, severity, kind, above, below, limit, offset, readsBody, readsData, bytesLeft } = part;
  return query<Row>`
    WITH mark AS (
      SELECT coalesce(max(read_through), 0) AS read_through,
        greatest(${above}::bigint, CASE WHEN ${unread}::boolean THEN max(read_through) END) AS above
      FROM notification_states WHERE project_id = ${projectId}::uuid AND user_id = ${userId}::uuid
    )
    SELECT id, sequence, kind, severity, title,
      CASE WHEN fits AND ${readsBody}::boolean THEN body ELSE '' END AS body,
      "resourceType", "resourceId",
      CASE WHEN fits AND ${readsData}::boolean THEN data ELSE '{}'::json END AS data, created, read,
      size AS bytes
    FROM (
      SELECT page.*, sum(size) OVER (ORDER BY sequence DESC) <= ${bytesLeft}::bigint AS fits
      FROM (
        SELECT notification.*, coalesce(listed.read, false) AS read,
          CASE WHEN ${readsBody}::boolean THEN octet_length(body) ELSE 0 END
            + CASE WHEN ${readsData}::boolean THEN json_bytes(data) ELSE 0 END AS size
        FROM (
          (
            SELECT notification.sequence, single.sequence IS NOT NULL OR notification.sequence <= (SELECT read_through FROM mark) AS read
            FROM notifications AS notification
            LEFT JOIN LATERAL (
              SELECT reads.sequence FROM notification_reads AS reads
              WHERE reads.project_id = notification.project_id AND reads.user_id = ${userId}::uuid AND reads.sequence = notification.sequence LIMIT 1
            ) AS single ON true
            WHERE notification.project_id = ${projectId}::uuid AND notification.kind = (SELECT ${kind}::text)
              AND notification.sequence < (SELECT ${below}::bigint)
              AND (notification.sequence, notification.project_id) > ((SELECT above FROM mark), ${projectId}::uuid)
              AND ((SELECT ${severity}::severity) = notification.severity) IS NOT FALSE
              AND (single.sequence IS NULL OR (SELECT ${unread}::boolean IS NOT TRUE))
            ORDER BY notification.sequence DESC LIMIT (SELECT ${limit}::int) OFFSET ${offset}
          )
          UNION ALL
          (
            SELECT notification.sequence, single.sequence IS NOT NULL OR notification.sequence <= (SELECT read_through FROM mark) AS read
            FROM notifications AS notification
            LEFT JOIN LATERAL (
              SELECT reads.sequence FROM notification_reads AS reads
              WHERE reads.project_id = notification.project_id AND reads.user_id = ${userId}::uuid AND reads.sequence = notification.sequence LIMIT 1
            ) AS single ON true
            WHERE (SELECT ${kind}::text IS NULL) AND notification.project_id = ${projectId}::uuid
              AND (SELECT ${severity}::severity) = notification.severity
              AND notification.sequence < (SELECT ${below}::bigint)
              AND (notification.sequence, notification.project_id) > ((SELECT above FROM mark), ${projectId}::uuid)
              AND (single.sequence IS NULL OR (SELECT ${unread}::boolean IS NOT TRUE))
            ORDER BY notification.sequence DESC LIMIT (SELECT ${limit}::int) OFFSET ${offset}
          )
        ) AS listed, LATERAL (
          SELECT one.id, one.sequence, one.kind, one.severity, one.title, one.body, one.resource_type AS "resourceType",
            one.resource_id AS "resourceId", one.data, one.created
          FROM notifications AS one WHERE one.project_id = ${projectId}::uuid AND one.sequence = listed.sequence LIMIT 1
        ) AS notification
      ) AS page
    ) AS notification
    ORDER BY sequence DESC`;
}

/**
 * The notifications that a user has read: the single reads above the watermark, then the entries up to it, in the order of the log or by
 * the index of a filter. Unread entries between the single reads are never scanned. Single reads that the filter rejects are: the marks of
 * the user bound their number.
 */
function selectRead(query: Query, part: ListPart): Promise<Row[]> {
  const { projectId, userId, severity, kind, above, below, limit, offset, readsBody, readsData, bytesLeft } = part;
  return query<Row>`
    WITH mark AS (
      SELECT greatest(${above}::bigint, max(read_through)) AS single_above, least(${below}::bigint, coalesce(max(read_through), 0) + 1) AS through_below
      FROM notification_states WHERE project_id = ${projectId}::uuid AND user_id = ${userId}::uuid
    )
    SELECT id, sequence, kind, severity, title,
      CASE WHEN fits AND ${readsBody}::boolean THEN body ELSE '' END AS body,
      "resourceType", "resourceId",
      CASE WHEN fits AND ${readsData}::boolean THEN data ELSE '{}'::json END AS data, created, true AS read,
      size AS bytes
    FROM (
      SELECT page.*, sum(size) OVER (ORDER BY sequence DESC) <= ${bytesLeft}::bigint AS fits
      FROM (
        SELECT notification.*, CASE WHEN ${readsBody}::boolean THEN octet_length(body) ELSE 0 END
          + CASE WHEN ${readsData}::boolean THEN json_bytes(data) ELSE 0 END AS size
        FROM (
          SELECT either.sequence FROM (
            (
              SELECT single.sequence FROM notification_reads AS single
              CROSS JOIN LATERAL (
                SELECT one.kind, one.severity FROM notifications AS one
                WHERE one.project_id = ${projectId}::uuid AND one.sequence = single.sequence LIMIT 1
              ) AS notification
              WHERE single.project_id = ${projectId}::uuid AND single.user_id = ${userId}::uuid
                AND single.sequence < (SELECT ${below}::bigint)
                AND (single.sequence, single.project_id) > ((SELECT single_above FROM mark), ${projectId}::uuid)
                AND ((SELECT ${kind}::text) = notification.kind) IS NOT FALSE
                AND ((SELECT ${severity}::severity) = notification.severity) IS NOT FALSE
              ORDER BY single.sequence DESC LIMIT (SELECT ${limit}::bigint + ${offset}::bigint)
            )
            UNION ALL
            (
              SELECT notification.sequence FROM notifications AS notification
              WHERE (SELECT ${kind}::text IS NULL AND ${severity}::severity IS NULL) AND notification.project_id = ${projectId}::uuid
                AND notification.sequence < (SELECT through_below FROM mark)
                AND (notification.sequence, notification.project_id) > ((SELECT ${above}::bigint), ${projectId}::uuid)
              ORDER BY notification.sequence DESC LIMIT (SELECT ${limit}::bigint + ${offset}::bigint)
            )
            UNION ALL
            (
              SELECT notification.sequence FROM notifications AS notification
              WHERE notification.project_id = ${projectId}::uuid AND notification.kind = (SELECT ${kind}::text)
                AND notification.sequence < (SELECT through_below FROM mark)
                AND (notification.sequence, notification.project_id) > ((SELECT ${above}::bigint), ${projectId}::uuid)
                AND ((SELECT ${severity}::severity) = notification.severity) IS NOT FALSE
              ORDER BY notification.sequence DESC LIMIT (SELECT ${limit}::bigint + ${offset}::bigint)
            )
            UNION ALL
            (
              SELECT notification.sequence FROM notifications AS notification
              WHERE (SELECT ${kind}::text IS NULL) AND notification.project_id = ${projectId}::uuid
                AND (SELECT ${severity}::severity) = notification.severity
                AND notification.sequence < (SELECT through_below FROM mark)
                AND (notification.sequence, notification.project_id) > ((SELECT ${above}::bigint), ${projectId}::uuid)
              ORDER BY notification.sequence DESC LIMIT (SELECT ${limit}::bigint + ${offset}::bigint)
            )
          ) AS either
          ORDER BY either.sequence DESC LIMIT (SELECT ${limit}::int) OFFSET ${offset}
        ) AS listed, LATERAL (
          SELECT one.id, one.sequence, one.kind, one.severity, one.title, one.body, one.resource_type AS "resourceType",
            one.resource_id AS "resourceId", one.data, one.created
          FROM notifications AS one WHERE one.project_id = ${projectId}::uuid AND one.sequence = listed.sequence LIMIT 1
        ) AS notification
      ) AS page
    ) AS notification
    ORDER BY sequence DESC`;
}

/** The length of a list without a filter by kind or severity, computed without counting rows; and the last sequence of the log. */
async function countList(database: Database, { projectId, userId, unread }: NotificationList): Promise<{ count: number; last: number }> {
  const [row] = await database.query<{ count: number; last: number }>`
    SELECT coalesce(CASE ${unread}::boolean
        WHEN true THEN unread_notifications(project_id, ${userId}::uuid)
        WHEN false THEN last_sequence - pruned_through - unread_notifications(project_id, ${userId}::uuid)
        ELSE last_sequence - pruned_through
      END, 0)::bigint AS count, last_sequence AS last
    FROM notification_logs WHERE project_id = ${projectId}::uuid`;
  return row ?? { count: 0, last: 0 };
}

/**
 * The length of a list with a filter by kind or severity: counts its rows, in an index alone unless the filter has both, as the index
 * of kinds has no severities.
 */
async function countFiltered(database: Database, list: NotificationList): Promise<number> {
  const { projectId, userId, unread, severity, kind } = list;
  const [row] = await database.query<{ count: number }>`
    WITH mark AS (
      SELECT coalesce(max(read_through), 0) AS read_through, coalesce(CASE WHEN ${unread}::boolean THEN max(read_through) END, 0) AS above
      FROM notification_states WHERE project_id = ${projectId}::uuid AND user_id = ${userId}::uuid
    )
    SELECT count(*)::int AS count
    FROM (
      SELECT sequence FROM notifications
      WHERE ${severity}::severity IS NULL AND project_id = ${projectId}::uuid AND kind = ${kind}::text
      UNION ALL
      SELECT sequence FROM notifications
      WHERE ${severity}::severity IS NOT NULL AND project_id = ${projectId}::uuid AND kind = ${kind}::text AND ${severity}::severity = severity
      UNION ALL
      SELECT sequence FROM notifications
      WHERE ${kind}::text IS NULL AND project_id = ${projectId}::uuid AND ${severity}::severity = severity
    ) AS notification
    WHERE notification.sequence > (SELECT above FROM mark)
      AND ((SELECT ${unread}::boolean) IS NULL OR (notification.sequence <= (SELECT read_through FROM mark) OR EXISTS (
        SELECT FROM notification_reads AS single
        WHERE single.project_id = ${projectId}::uuid AND single.user_id = ${userId}::uuid AND single.sequence = notification.sequence
      )) <> (SELECT ${unread}::boolean))`;
  return row?.count ?? 0;
}
