import { hasRole, type ProjectScope, requireRole } from '../access/scope.ts';
import { type ConsoleSession, Prisma } from '../generated/prisma/client.ts';
import { inSlice, type Slice } from '../graph/connection.ts';
import { Fault } from '../kernel/fault.ts';
import { parseUuid } from '../kernel/uuid.ts';
import type { Consoles } from './consoles.ts';

export interface ConsoleSessionFilter {
  readonly instanceId?: string | null;
  readonly userId?: string | null;
  readonly running?: boolean | null;
}

/** The project's console sessions, the newest first: all for its admins, one's own for everybody else. */
export function listSessions(
  scope: ProjectScope,
  { instanceId, userId, running }: ConsoleSessionFilter,
  slice: Slice<string>,
): Promise<ConsoleSession[]> {
  const conditions = [
    visible(scope),
    instanceId ? Prisma.sql`session.instance_id = ${instanceId}::uuid` : null,
    userId ? Prisma.sql`session.user_id = ${userId}::uuid` : null,
    typeof running === 'boolean' ? Prisma.sql`(session.ended IS NULL) = ${running}` : null,
  ];
  const condition = Prisma.join(
    conditions.filter((one) => one !== null),
    ' AND ',
  );
  return scope.database.query<ConsoleSession>`
    SELECT ${columns} FROM console_sessions AS session WHERE ${condition} ${inSlice(slice, 'desc')}`;
}

/** For each instance its console sessions, as `listSessions` has them: one statement, however many instances. */
export async function listInstanceSessions(
  scope: ProjectScope,
  instanceIds: readonly string[],
  slice: Slice<string>,
): Promise<ConsoleSession[][]> {
  const rows = await scope.database.query<ConsoleSession>`
    SELECT listed.* FROM unnest(${instanceIds}::uuid[]) AS wanted (instance_id)
    CROSS JOIN LATERAL (
      SELECT ${columns} FROM console_sessions AS session
      WHERE session.instance_id = wanted.instance_id AND ${visible(scope)} ${inSlice(slice, 'desc')}
    ) AS listed`;
  return instanceIds.map((id) => rows.filter(({ instanceId }) => instanceId === id));
}

/**
 * Ends a running session, wherever it runs; one that is over stays as it is. Throws `not_found` for one that the viewer
 * does not see, `permission_denied` below the role `member`.
 */
export async function endSession(scope: ProjectScope, consoles: Consoles, { id }: { id: string }): Promise<ConsoleSession> {
  const session = await findSession(scope, id);
  requireRole(scope, 'member');
  if (session.ended) return session;
  await consoles.end(session.id, 'ended');
  await scope.database.query`
    UPDATE console_sessions SET ended = now(), end_reason = 'ended' WHERE id = ${session.id}::uuid AND ended IS NULL`;
  return findSession(scope, id);
}

async function findSession(scope: ProjectScope, id: string): Promise<ConsoleSession> {
  const sessionId = parseUuid(id);
  if (!sessionId) throw Fault.notFound();
  const [session] = await scope.database.query<ConsoleSession>`
    SELECT ${columns} FROM console_sessions AS session WHERE session.id = ${sessionId}::uuid AND ${visible(scope)}`;
  if (!session) throw Fault.notFound();
  return session;
}

/** What the viewer may know of: of the project, and their own unless they are its admin. */
function visible(scope: ProjectScope): Prisma.Sql {
  const own = hasRole(scope, 'admin') ? Prisma.empty : Prisma.sql`AND session.user_id = ${scope.viewer.userId}::uuid`;
  return Prisma.sql`session.project_id = ${scope.projectId}::uuid ${own}`;
}

const columns = Prisma.sql`session.id, session.project_id AS "projectId", session.instance_id AS "instanceId",
  session.instance_name AS "instanceName", session.user_id AS "userId", session.user_email AS "userEmail", session.kind::text,
  session.client_addresses AS "clientAddresses", session.created, session.ended, session.end_reason::text AS "endReason",
  session.bytes_in AS "bytesIn", session.bytes_out AS "bytesOut", session.detached_at AS "detachedAt", session.owner, session.seen`;
