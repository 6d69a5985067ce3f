import { generateKey } from '../access/apikey.ts';
import type { Session, Viewer } from '../access/viewer.ts';
import type { ApiKey, Organization } from '../generated/prisma/client.ts';
import type { OrganizationRole } from '../generated/prisma/enums.ts';
import { type Slice, sliceById } from '../graph/keyset.ts';
import { Fault } from '../kernel/fault.ts';
import { type Page, type PageRequest, resolvePage } from '../kernel/page.ts';
import { pickRows } from '../kernel/rows.ts';
import { parseUuid } from '../kernel/uuid.ts';
import { deleteInBatches } from '../platform/cleanup.ts';
import type { Database, SqlClient } from '../platform/database.ts';

/** An organization, as one of its members sees it. */
export interface Membership {
  readonly id: string;
  readonly name: string;
  readonly currency: string;
  readonly created: Date;
  readonly role: OrganizationRole;
}

/** The viewer's organizations, in the order of their ids. */
export async function listOrganizations(database: Database, viewer: Viewer, slice: Slice<string>): Promise<Membership[]> {
  const { where, orderBy, take } = sliceById(slice);
  const rows = await database.prisma.organizationMember.findMany({
    where: { userId: viewer.userId, organizationId: where.id },
    orderBy: { organizationId: orderBy.id },
    take,
    include: { organization: true },
  });
  return rows.map(toMembership);
}

export function countOrganizations(database: Database, { userId }: Viewer): Promise<number> {
  return database.prisma.organizationMember.count({ where: { userId } });
}

/** A page of the viewer's organizations, in the same order. Throws `not_found` past the end. */
export function pageOrganizations(database: Database, viewer: Viewer, paging: PageRequest): Promise<Page<Membership>> {
  return resolvePage(
    paging,
    () => countOrganizations(database, viewer),
    async ({ limit, offset }) => {
      const rows = await database.prisma.organizationMember.findMany({
        where: { userId: viewer.userId },
        orderBy: { organizationId: 'asc' },
        skip: offset,
        take: limit,
        include: { organization: true },
      });
      return rows.map(toMembership);
    },
  );
}

/** Throws `not_found` for a malformed id, and for an organization that the viewer is not a member of. */
export async function getOrganization(database: Database, viewer: Viewer, id: string): Promise<Membership> {
  const organizationId = parseUuid(id);
  const row =
    organizationId &&
    (await database.prisma.organizationMember.findUnique({
      where: { organizationId_userId: { organizationId, userId: viewer.userId } },
      include: { organization: true },
    }));
  if (!row) throw Fault.notFound();
  return toMembership(row);
}

/** Organizations by their ids; null for one that the viewer is not a member of. */
export async function findOrganizations(database: Database, { userId }: Viewer, ids: readonly string[]): Promise<Array<Membership | null>> {
  const rows = await database.prisma.organizationMember.findMany({
    where: { userId, organizationId: { in: [...ids] } },
    include: { organization: true },
  });
  return pickRows(ids, rows.map(toMembership), ({ id }) => id);
}

function toMembership({ organization, role }: { organization: Organization; role: OrganizationRole }): Membership {
  return { ...organization, role };
}

/** The viewer's keys by their ids; null for any other. A viewer with an API key may not see keys: all are null. */
export async function findApiKeys(
  database: Database,
  { userId, credential }: Viewer,
  ids: readonly string[],
): Promise<Array<ApiKey | null>> {
  if (credential.kind !== 'session') return ids.map(() => null);
  const rows = await database.prisma.apiKey.findMany({ where: { userId, id: { in: [...ids] } } });
  return pickRows(ids, rows, ({ id }) => id);
}

/** The viewer's keys, the newest first. */
export async function listApiKeys(database: Database, session: Session, slice: Slice<string>) {
  const { where, ...order } = sliceById(slice, 'desc');
  return database.prisma.apiKey.findMany({ where: { userId: session.userId, ...where }, ...order });
}

/** Includes expired and revoked keys. */
export function countApiKeys(database: Database, { userId }: Session): Promise<number> {
  return database.prisma.apiKey.count({ where: { userId } });
}

/** The ended keys of a user that are kept; the oldest are deleted as new keys are created. */
const ENDED_KEYS = 10_000;

/**
 * Makes a key; its text is in the response and nowhere else. `quota` is the number of valid keys that a user may have. Throws a field
 * error for an expiry in the past, `session_required` for an API key, and `conflict` for a user whose quota is used up.
 */
export async function createApiKey(
  { database, requireViewer, requireSession }: { database: SqlClient; requireViewer(): Viewer; requireSession(): Session },
  { name, expires = null }: { name: string; expires?: Date | null },
  quota: number,
) {
  requireViewer();
  if (expires && expires <= new Date()) throw Fault.invalidFields({ expires: ['Must be in the future.'] });
  const { userId } = requireSession();
  const { key, secretHash, hint } = generateKey();
  const [apiKey] = await database.query<ApiKey>`
    WITH deleted AS (
      DELETE FROM api_keys WHERE id = ANY (ARRAY(
        SELECT id FROM api_keys WHERE user_id = ${userId}::uuid AND least(revoked, expires) < now()
        ORDER BY id DESC LIMIT 10 OFFSET ${ENDED_KEYS}::int
      ))
    )
    INSERT INTO api_keys (user_id, name, hint, secret_hash, expires)
    SELECT ${userId}::uuid, ${name}::text, ${hint}::text, ${secretHash}::bytea, ${expires}::timestamptz
    WHERE has_key_room(${userId}::uuid, ${quota}::bigint)
    RETURNING id, user_id AS "userId", name, hint, secret_hash AS "secretHash", created, last_used AS "lastUsed", expires, revoked`;
  if (!apiKey) throw Fault.quotaReached('The user has as many API keys as they may have.', { quota: 'keys_per_user', limit: quota });
  return { key, apiKey };
}

/** Revokes one of the viewer's keys, from the next request on; a revoked one stays as it is. Throws `not_found` for any other. */
export async function revokeApiKey(database: Database, session: Session, id: string) {
  const keyId = parseUuid(id);
  if (!keyId) throw Fault.notFound();
  // By PostgreSQL's clock, which decides when the key is deleted.
  await database.query`
    UPDATE api_keys SET revoked = now() WHERE id = ${keyId}::uuid AND user_id = ${session.userId}::uuid AND revoked IS NULL`;
  return { apiKey: await getApiKey(database, session.userId, keyId) };
}

/** Throws `not_found` for a malformed id, and for the key of another user. */
export async function getApiKey({ prisma }: Database, userId: string, id: string): Promise<ApiKey> {
  const keyId = parseUuid(id);
  const apiKey = keyId && (await prisma.apiKey.findFirst({ where: { id: keyId, userId } }));
  if (!apiKey) throw Fault.notFound();
  return apiKey;
}

/** Deletes the keys that were revoked or expired 90 days ago: until then their user still finds them in the list. */
export function deleteEndedApiKeys(database: Database, signal?: AbortSignal): Promise<void> {
  return deleteInBatches(
    (limit) => database.query<{ deleted: number | null }>`
      DELETE FROM api_keys WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM api_keys WHERE least(revoked, expires) < now() - interval '90 days' ORDER BY least(revoked, expires) LIMIT ${limit}::int
      )) RETURNING 1 AS deleted`,
    signal,
  );
}
