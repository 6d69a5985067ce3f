import { type ProjectScope, requireRole } from '../access/scope.ts';
import { Prisma } from '../generated/prisma/client.ts';
import type { Severity } from '../generated/prisma/enums.ts';
import type { Slice } from '../graph/connection.ts';
import { makePage, type Page, pageOffset, readPage } from '../kernel/page.ts';
import type { Hubs } from './hubs.ts';
import { columns, type Notification } from './log.ts';

export interface NotificationFilter {
  readonly unread?: boolean | null;
  readonly severity?: Severity | null;
  readonly kind?: string | null;
}

/** The notifications of a project, the newest first, from a cursor on: as fast deep in the log as at its end. */
export async function listNotifications(scope: ProjectScope, filter: NotificationFilter, slice: Slice<number>): Promise<Notification[]> {
  const conditions = [
    ...filterConditions(scope, filter),
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
  const filters = filterConditions(scope, filter);
  const isWhole = filters.length === 0;
  const conditions = isWhole ? [Prisma.sql`notification.sequence <= ${last - offset}`] : filters;
  const order = Prisma.sql`ORDER BY notification.sequence DESC LIMIT ${request.pageSize} OFFSET ${isWhole ? 0 : offset}`;
  return makePage(request, count, await selectNotifications(scope, conditions, order));
}

/** How many notifications of the project the viewer has not read. */
export async function countUnread({ database, projectId, viewer }: ProjectScope): Promise<number> {
  const [row] = await database.query<{ unread: number }>`
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
  const [result] = await database.query<MarkResult>`
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
  const [notification] = await scope.database.query<Notification>`
    INSERT INTO notifications AS notification (project_id, kind, severity, title, body, resource_type, resource_id, data, created)
    VALUES (${scope.projectId}::uuid, ${kind}, ${severity}::severity, ${title}, ${body}, ${resourceType}, ${resourceId},
      ${JSON.stringify(input.data ?? {})}::json, ${new Date()})
    RETURNING ${columns}, false AS read`;
  if (!notification) throw new Error('the insert returned no row');
  hubs.wake({ projectId: scope.projectId });
  return notification;
}

/** All up to this one the viewer has read. Looked up once a statement, so that an index can begin there. */
function readThrough({ projectId, viewer }: ProjectScope): Prisma.Sql {
  return Prisma.sql`coalesce((
    SELECT read_through FROM notification_states WHERE project_id = ${projectId}::uuid AND user_id = ${viewer.userId}::uuid), 0)`;
}

/** The notifications, each with its single read: by the read's key, so that a page looks up those of its own rows alone. */
function withReads({ viewer }: ProjectScope): Prisma.Sql {
  return Prisma.sql`notifications AS notification
    LEFT JOIN notification_reads AS single
      ON single.project_id = notification.project_id AND single.user_id = ${viewer.userId}::uuid
        AND single.sequence = notification.sequence`;
}

function isRead(scope: ProjectScope): Prisma.Sql {
  return Prisma.sql`(notification.sequence <= ${readThrough(scope)} OR single.sequence IS NOT NULL)`;
}

function selectNotifications(scope: ProjectScope, conditions: readonly Prisma.Sql[], order: Prisma.Sql) {
  return scope.database.query<Notification>`
    SELECT ${columns}, ${isRead(scope)} AS read
    FROM ${withReads(scope)}
    WHERE ${Prisma.join([Prisma.sql`notification.project_id = ${scope.projectId}::uuid`, ...conditions], ' AND ')}
    ${order}`;
}

function filterConditions(scope: ProjectScope, { unread, severity, kind }: NotificationFilter): Prisma.Sql[] {
  const conditions: Prisma.Sql[] = [];
  if (unread === true) conditions.push(Prisma.sql`notification.sequence > ${readThrough(scope)} AND single.sequence IS NULL`);
  if (unread === false) conditions.push(isRead(scope));
  if (severity) conditions.push(Prisma.sql`notification.severity = ${severity}::severity`);
  if (kind) conditions.push(Prisma.sql`notification.kind = ${kind}`);
  return conditions;
}

/** The length of the list, and the last number in the log. */
async function countNotifications(scope: ProjectScope, filter: NotificationFilter) {
  const [row] = await scope.database.query<{ count: number; last: number }>`
    SELECT (${lengthOf(scope, filter)})::int AS count, log.last_sequence::int AS last
    FROM notification_logs AS log WHERE log.project_id = ${scope.projectId}::uuid`;
  return row ?? { count: 0, last: 0 };
}

/** How many there are, and how many of them are read or unread, is arithmetic; only other filters count rows. */
function lengthOf(scope: ProjectScope, filter: NotificationFilter): Prisma.Sql {
  const conditions = filterConditions(scope, filter);
  const all = Prisma.sql`log.last_sequence - log.pruned_through`;
  const unread = Prisma.sql`unread_notifications(log.project_id, ${scope.viewer.userId}::uuid)`;
  if (conditions.length === 0) return all;
  if (conditions.length === 1 && filter.unread === true) return unread;
  if (conditions.length === 1 && filter.unread === false) return Prisma.sql`${all} - ${unread}`;
  return Prisma.sql`(
    SELECT count(*) FROM ${withReads(scope)}
    WHERE ${Prisma.join([Prisma.sql`notification.project_id = log.project_id`, ...conditions], ' AND ')})`;
}
