import { type ProjectScope, requireRole } from '../access/scope.ts';
import type { Severity } from '../generated/prisma/enums.ts';
import type { Services } from '../graph/context.ts';
import { Fault } from '../kernel/fault.ts';
import { stringifyJson } from '../kernel/json/text.ts';
import { exceedsBytes } from '../kernel/size.ts';
import type { SqlClient } from '../platform/database.ts';
import type { Notification } from './log.ts';

export interface NewNotification {
  readonly kind: string;
  readonly severity: Severity;
  readonly title: string;
  readonly body: string;
  readonly resourceType?: string | null;
  readonly resourceId?: string | null;
  readonly data?: unknown;
}

/** The most bytes, as JSON, of notifications that are published together: any one that may be published alone fits. */
export const MAX_PUBLISHED_BYTES = 256 * 1024;

/** Throws a field error for notifications that exceed `MAX_PUBLISHED_BYTES` together. */
export function checkPublishedSize(inputs: readonly NewNotification[]): void {
  if (exceedsBytes(inputs, MAX_PUBLISHED_BYTES))
    throw Fault.invalidFields({ notifications: [`Ensure this field takes no more than ${MAX_PUBLISHED_BYTES} bytes.`] });
}

/**
 * Appends notifications to the project's log in the given order, by one statement. Throws a field error where they exceed
 * `MAX_PUBLISHED_BYTES` together, `permission_denied` below the role `admin`, and `conflict` where the log is as large as it may
 * be: the last publication, and those that are under way with it, may exceed that by their bytes.
 */
export async function publishNotifications(
  { database, projectId, ...scope }: ProjectScope<SqlClient>,
  { hubs, quotas }: Pick<Services, 'hubs' | 'quotas'>,
  inputs: readonly NewNotification[],
): Promise<Notification[]> {
  checkPublishedSize(inputs);
  requireRole(scope, 'admin');
  if (inputs.length === 0) return [];
  const limit = quotas.notificationBytesPerProject;
  const column = <Value>(read: (input: NewNotification) => Value) => inputs.map(read);
  // The JSON is passed as text: `encode` takes no objects.
  const rows = await database.query<Omit<Notification, 'read'>>`
    INSERT INTO notifications (project_id, kind, severity, title, body, resource_type, resource_id, data, created)
    SELECT ${projectId}::uuid, given.kind, given.severity::severity, given.title, given.body, given.resource_type, given.resource_id,
      given.data::json, now()
    FROM unnest(${column(({ kind }) => kind)}::text[], ${column(({ severity }) => severity)}::text[], ${column(({ title }) => title)}::text[],
      ${column(({ body }) => body)}::text[], ${column(({ resourceType }) => resourceType ?? null)}::text[],
      ${column(({ resourceId }) => resourceId ?? null)}::text[], ${column(({ data }) => stringifyJson(data ?? {}))}::text[])
      WITH ORDINALITY AS given (kind, severity, title, body, resource_type, resource_id, data, place)
    WHERE (SELECT (notification_bytes(${projectId}::uuid) >= ${limit}::bigint) IS NOT TRUE)
    ORDER BY given.place
    RETURNING id, sequence, kind, severity, title, body, resource_type AS "resourceType", resource_id AS "resourceId", data, created`;
  if (rows.length === 0)
    throw Fault.quotaReached('The notifications of the project take as many bytes as they may.', {
      quota: 'notification_bytes_per_project',
      limit,
    });
  database.afterCommit(() => hubs.wake({ projectId }));
  return rows.map((row) => ({ ...row, read: false })).sort((a, b) => a.sequence - b.sequence);
}
