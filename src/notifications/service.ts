import { type ProjectScope, requireRole } from '../access/scope.ts';
import type { Severity } from '../generated/prisma/enums.ts';
import type { ReadWeighed } from '../graph/answer.ts';
import type { Slice } from '../graph/connection.ts';
import { Fault } from '../kernel/fault.ts';
import { toJsonText } from '../kernel/jsontext.ts';
import { makePage, type Page, pageOffset, readPage } from '../kernel/page.ts';
import { exceedsBytes } from '../kernel/size.ts';
import type { Database, Statements } from '../platform/database.ts';
import { type Batch, type BatchLimits, readEntries } from './batch.ts';
import type { Hubs } from './hubs.ts';
import { countFiltered, countList, LAST, type List, readPart } from './list.ts';
import type { Notification } from './log.ts';

export interface NotificationFilter {
  readonly unread?: boolean | null;
  readonly severity?: Severity | null;
  readonly kind?: string | null;
}

/** The fields that may be large: a list reads them only where they are asked for, and as far as its answer may go. */
export const heavyFields: ReadonlySet<string> = new Set(['body', 'data']);

/** The notifications of a project, the newest first, from a cursor on: as fast deep in the log as at its end. */
export async function listNotifications(
  scope: ProjectScope,
  { filter, slice }: { filter: NotificationFilter; slice: Slice<number> },
  read: ReadWeighed,
): Promise<Notification[]> {
  const { after: below = LAST, before: above = 0, limit, backwards: isAscending } = slice;
  const part = { ...listOf(scope, filter), above, below, limit, offset: 0, isAscending };
  return read((bytesLeft) => readPart(scope.database, { ...part, bytesLeft }));
}

/** The entries of the log after one number up to another, in its own order: as many as `limit` and `maxBytes` allow. */
export function listEntries(
  { database, projectId, viewer }: ProjectScope,
  range: { after: number; upTo: number } & BatchLimits,
): Promise<Batch> {
  return readEntries(database, projectId, { ...range, userId: viewer.userId });
}

/** One page of the same list (§2.7). Throws field errors for a page that is not positive, `not_found` past the end. */
export async function pageNotifications(
  scope: ProjectScope,
  { filter, ...paging }: { filter: NotificationFilter; page: number; pageSize: number },
  read: ReadWeighed,
): Promise<Page<Notification>> {
  const { database } = scope;
  const request = readPage(paging);
  const list = listOf(scope, filter);
  const isFiltered = list.severity !== null || list.kind !== null;
  const { count, last } = isFiltered ? { count: await countFiltered(database, list), last: LAST } : await countList(database, list);
  const offset = pageOffset(request, count);
  // Without a filter the numbers have no gaps: the page is found by its first number, not by counting rows.
  const isWhole = !isFiltered && list.unread === null;
  const place = isWhole ? { below: last - offset + 1, offset: 0 } : { below: LAST, offset };
  const part = { ...list, ...place, above: 0, limit: request.pageSize, isAscending: false };
  const results = await read((bytesLeft) => readPart(database, { ...part, bytesLeft }));
  return makePage(request, count, results);
}

/** An empty kind is none. */
function listOf({ projectId, viewer }: ProjectScope, { unread, severity, kind }: NotificationFilter): List {
  return { projectId, userId: viewer.userId, unread: unread ?? null, severity: severity ?? null, kind: kind || null };
}

/** How many notifications of each project the viewer has not read. */
export async function countUnread(database: Database, scopes: readonly ProjectScope[]): Promise<number[]> {
  const [projectIds, userIds] = [scopes.map(({ projectId }) => projectId), scopes.map(({ viewer }) => viewer.userId)];
  const rows = await database.query<{ projectId: string | null; unread: number | null }>`
    SELECT wanted.project_id AS "projectId", unread_notifications(wanted.project_id, wanted.user_id)::int AS unread
    FROM unnest(${projectIds}::uuid[], ${userIds}::uuid[]) AS wanted (project_id, user_id)`;
  const counts = new Map(rows.map(({ projectId, unread }) => [projectId, unread]));
  return projectIds.map((id) => counts.get(id) ?? 0);
}

interface MarkRequest {
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
export async function markRead(
  { database, projectId, viewer }: ProjectScope<Statements>,
  hubs: Hubs,
  request: MarkRequest,
): Promise<MarkResult> {
  const ids = request.notificationIds?.length ? request.notificationIds : null;
  const [result] = await database.query<{ marked: number | null; unreadCount: number | null }>`
    SELECT marked::int, unread_count::int AS "unreadCount"
    FROM mark_notifications_read(
      ${projectId}::uuid, ${viewer.userId}::uuid, ${ids}::uuid[], ${request.throughSequence ?? null}::bigint)`;
  if (!result) throw new Error('marking answers one row always');
  const { marked, unreadCount } = result;
  if (marked) database.afterCommit(() => hubs.wake({ projectId, userId: viewer.userId }));
  return { marked: marked ?? 0, unreadCount: unreadCount ?? 0 };
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

/** What the notifications that are published together may take as JSON: any that may be published alone fits. */
export const MAX_PUBLISHED_BYTES = 256 * 1024;

/**
 * Appends to the project's log in the order given: one statement, however many there are. Throws a field error where they
 * take too much together, `permission_denied` below the role `admin`.
 */
export async function publishNotifications(
  { database, projectId, ...scope }: ProjectScope<Statements>,
  hubs: Hubs,
  inputs: readonly NewNotification[],
): Promise<Notification[]> {
  if (inputs.length > 1 && exceedsBytes(inputs, MAX_PUBLISHED_BYTES))
    throw Fault.invalidFields({ notifications: [`Ensure this field takes no more than ${MAX_PUBLISHED_BYTES} bytes.`] });
  requireRole(scope, 'admin');
  if (inputs.length === 0) return [];
  const all = <Value>(read: (input: NewNotification) => Value) => inputs.map(read);
  // The JSON goes as text: Prisma's own way would drop a key named __proto__.
  const rows = await database.query<Omit<Notification, 'read'>>`
    INSERT INTO notifications (project_id, kind, severity, title, body, resource_type, resource_id, data, created)
    SELECT ${projectId}::uuid, given.kind, given.severity::severity, given.title, given.body, given.resource_type, given.resource_id,
      given.data::json, ${new Date()}::timestamptz
    FROM unnest(${all(({ kind }) => kind)}::text[], ${all(({ severity }) => severity)}::text[], ${all(({ title }) => title)}::text[],
      ${all(({ body }) => body)}::text[], ${all(({ resourceType }) => resourceType ?? null)}::text[],
      ${all(({ resourceId }) => resourceId ?? null)}::text[], ${all(({ data }) => toJsonText(data ?? {}))}::text[])
      WITH ORDINALITY AS given (kind, severity, title, body, resource_type, resource_id, data, place)
    ORDER BY given.place
    RETURNING id, sequence, kind, severity, title, body, resource_type AS "resourceType", resource_id AS "resourceId", data, created`;
  database.afterCommit(() => hubs.wake({ projectId }));
  return rows.map((row) => ({ ...row, read: false })).sort((a, b) => a.sequence - b.sequence);
}
