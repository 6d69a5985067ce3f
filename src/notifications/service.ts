import { type ProjectScope, requireRole } from '../access/scope.ts';
import { Prisma } from '../generated/prisma/client.ts';
import type { Severity } from '../generated/prisma/enums.ts';
import type { Slice } from '../graph/connection.ts';
import { makePage, type Page, pageOffset, readPage } from '../kernel/page.ts';
import type { Hubs } from './hub.ts';
import { columns, type Notification } from './log.ts';

export interface NotificationFilter {
  readonly unread?: boolean | null;
  readonly severity?: Severity | null;
  readonly kind?: string | null;
}

/** The notifications of a project, the newest first, from a cursor on: as fast deep in the log as at its end. */
export async function listNotifications(scope: ProjectScope, filter: NotificationFilter, slice: Slice<number>): Promise<Notification[]> {
  const conditions = [
    ...filterConditions(filter),
    ...(slice.after ? [Prisma.sql`notification.sequence < ${slice.after}`] : []),
    ...(slice.before ? [Prisma.sql`notification.sequence > ${slice.before}`] : []),
  ];
  const order = slice.backwards ? Prisma.sql`ASC` : Prisma.sql`DESC`;
  return selectNotifications(scope, conditions, Prisma.sql`ORDER BY notification.sequence ${order} LIMIT ${slice.limit}`);
}

/** The entries of the log after one number up to another, in its own order. */
export function listEntries(scope: ProjectScope, { after, upTo, limit }: { after: number; upTo: number; limit: number }) {
  const conditions = [Prisma.sql`notification.sequence > ${after}`, Prisma.sql`notification.sequence <= ${upTo}`];
  return selectNotifications(scope, conditions, Prisma.sql`ORDER BY notification.sequence LIMIT ${limit}`);
}

/** One page of the same list (§2.7). Throws field errors for a page that is not positive, `not_found` past the end. */
export async function pageNotifications(
  scope: ProjectScope,
  { filter, ...paging }: { filter: NotificationFilter; page: number; pageSize: number },
): Promise<Page<Notification>> {
  const request = readPage(paging);
  const { count, last } = await countNotifications(scope, filter);
  const offset = pageOffset(request, count);
  // Without a filter the numbers have no gaps: the page is found by its first number, not by counting rows.
  const isWhole = filterConditions(filter).length === 0;
  const conditions = isWhole ? [Prisma.sql`notification.sequence <= ${last - offset}`] : filterConditions(filter);
  const order = Prisma.sql`ORDER BY notification.sequence DESC LIMIT ${request.pageSize} OFFSET ${isWhole ? 0 : offset}`;
  return makePage(request, count, await selectNotifications(scope, conditions, order));
}

/** How many notifications of the project the viewer has not read. */
export async function countUnread({ database, projectId, viewer }: ProjectScope): Promise<number> {
  const [row] = await database.$queryRaw<Array<{ unread: number }>>`
    SELECT unread_notifications(${projectId}::uuid, ${viewer.userId}::uuid)::int AS unread`;
  return row?.unread ?? 0;
}

export interface MarkRequest {
  readonly notificationIds?: readonly string[] | null;
  readonly throughSequence?: number | null;
}

export interface MarkResult {
  readonly marked: number;
  readonly unreadCount: number;
}

/**
 * Marks the named notifications, or all up to a sequence, or (neither given, or no ids) all that there are now, as
 * read by the viewer (§4.5). Ids that are unknown, repeated or of another project are ignored. One statement, whose
 * cost does not grow with the unread.
 */
export async function markRead({ database, projectId, viewer }: ProjectScope, hubs: Hubs, request: MarkRequest): Promise<MarkResult> {
  const ids = request.notificationIds?.length ? request.notificationIds : null;
  const [result] = await database.$queryRaw<MarkResult[]>`
    SELECT marked::int, unread_count::int AS "unreadCount"
    FROM mark_notifications_read(
      ${projectId}::uuid, ${viewer.userId}::uuid, ${ids}::uuid[], ${request.throughSequence ?? null}::bigint)`;
  if (!result) throw new Error('marking answers one row always');
  if (result.marked > 0) hubs.wake({ projectId, userId: viewer.userId });
  return result;
}

export interface NewNotification {
  readonly kind: string;
  readonly severity: Severity;
  readonly title: string;
  readonly body: string;
  readonly resourceType?: string | null;
  readonly resourceId?: string | null;
  readonly data?: unknown;
}

/** Appends to the project's log. Throws `permission_denied` below the role `admin`. */
export async function publishNotification(scope: ProjectScope, hubs: Hubs, input: NewNotification): Promise<Notification> {
  requireRole(scope, 'admin');
  const { kind, severity, title, body, resourceType = null, resourceId = null } = input;
  // The JSON goes as text: Prisma's own way would drop a key named __proto__.
  const [notification] = await scope.database.$queryRaw<Notification[]>`
    INSERT INTO notifications AS notification (project_id, kind, severity, title, body, resource_type, resource_id, data, created)
    VALUES (${scope.projectId}::uuid, ${kind}, ${severity}::severity, ${title}, ${body}, ${resourceType}, ${resourceId},
      ${JSON.stringify(input.data ?? {})}::json, ${new Date()})
    RETURNING ${columns}, false AS read`;
  if (!notification) throw new Error('the insert returned no row');
  hubs.wake({ projectId: scope.projectId });
  return notification;
}

const isRead = Prisma.sql`(
  notification.sequence <= coalesce(state.read_through, 0) OR EXISTS (
    SELECT FROM notification_reads AS single
    WHERE single.project_id = state.project_id AND single.user_id = state.user_id AND single.sequence = notification.sequence))`;

function selectNotifications({ database, projectId, viewer }: ProjectScope, conditions: readonly Prisma.Sql[], order: Prisma.Sql) {
  return database.$queryRaw<Notification[]>`
    SELECT ${columns}, ${isRead} AS read
    FROM notifications AS notification
    LEFT JOIN notification_states AS state ON state.project_id = notification.project_id AND state.user_id = ${viewer.userId}::uuid
    WHERE ${Prisma.join([Prisma.sql`notification.project_id = ${projectId}::uuid`, ...conditions], ' AND ')}
    ${order}`;
}

function filterConditions({ unread, severity, kind }: NotificationFilter): Prisma.Sql[] {
  const conditions: Prisma.Sql[] = [];
  if (typeof unread === 'boolean') conditions.push(unread ? Prisma.sql`NOT ${isRead}` : isRead);
  if (severity) conditions.push(Prisma.sql`notification.severity = ${severity}::severity`);
  if (kind) conditions.push(Prisma.sql`notification.kind = ${kind}`);
  return conditions;
}

/** The length of the list, and the last number in the log. */
async function countNotifications({ database, projectId, viewer }: ProjectScope, filter: NotificationFilter) {
  const conditions = filterConditions(filter);
  const isOnlyUnread = filter.unread === true && conditions.length === 1;
  const count =
    conditions.length === 0
      ? Prisma.sql`log.last_sequence - log.pruned_through`
      : isOnlyUnread
        ? Prisma.sql`unread_notifications(log.project_id, ${viewer.userId}::uuid)`
        : Prisma.sql`(
            SELECT count(*) FROM notifications AS notification
            LEFT JOIN notification_states AS state
              ON state.project_id = notification.project_id AND state.user_id = ${viewer.userId}::uuid
            WHERE ${Prisma.join([Prisma.sql`notification.project_id = log.project_id`, ...conditions], ' AND ')})`;
  const [row] = await database.$queryRaw<Array<{ count: number; last: number }>>`
    SELECT (${count})::int AS count, log.last_sequence::int AS last FROM notification_logs AS log WHERE log.project_id = ${projectId}::uuid`;
  return row ?? { count: 0, last: 0 };
}
