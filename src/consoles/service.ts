import { hasRole, type ProjectScope, requireRole } from '../access/scope.ts';
import type { ConsoleSession as ConsoleSessionRow } from '../generated/prisma/client.ts';
import { boundsOf, type Slice, sliceById } from '../graph/connection.ts';
import { groupRows, pickCounts } from '../graph/level.ts';
import { type InProject, pickInProject } from '../graph/node.ts';
import { Fault } from '../kernel/fault.ts';
import { parseUuid } from '../kernel/uuid.ts';
import type { Database } from '../platform/database.ts';
import type { Consoles } from './consoles.ts';

/** A console session, as those see it who may: nothing of where it is held. */
export interface ConsoleSession extends Omit<ConsoleSessionRow, 'bytesIn' | 'bytesOut' | 'owner' | 'seen'> {
  readonly bytesIn: number;
  readonly bytesOut: number;
}

export interface ConsoleSessionFilter {
  readonly instanceId?: string | null;
  readonly userId?: string | null;
  readonly running?: boolean | null;
}

/** The console sessions of each project, the newest first: all for its admins, one's own for everybody else. */
export async function listSessions(
  database: Database,
  scopes: readonly ProjectScope[],
  { instanceId, userId, running }: ConsoleSessionFilter,
  slice: Slice<string>,
): Promise<ConsoleSession[][]> {
  const { where, ...order } = sliceById(slice, 'desc');
  const ended = typeof running !== 'boolean' ? undefined : running ? null : { not: null };
  const filter = { instanceId: instanceId ?? undefined, userId: userId ?? undefined, ended };
  // Of all sessions and of one's own, each is found by an index of its own.
  const read = async (within: readonly ProjectScope[]) => {
    const [first] = within;
    if (!first) return [];
    const consoleSessions = { where: { AND: [visible(first), filter, where] }, ...order };
    const ids = within.map(({ projectId }) => projectId);
    return database.project.findMany({
      relationLoadStrategy: 'join',
      where: { id: { in: ids } },
      select: { id: true, consoleSessions },
    });
  };
  const isAdmin = (scope: ProjectScope) => hasRole(scope, 'admin');
  const rows = await Promise.all([read(scopes.filter(isAdmin)), read(scopes.filter((scope) => !isAdmin(scope)))]);
  const lists = new Map(rows.flat().map(({ id, consoleSessions }) => [id, consoleSessions.map(toSession)]));
  return scopes.map(({ projectId }) => lists.get(projectId) ?? []);
}

/** How many there are in each of the lists. */
export async function countSessions(
  database: Database,
  scopes: readonly ProjectScope[],
  { instanceId, userId, running }: ConsoleSessionFilter,
): Promise<number[]> {
  const ended = typeof running !== 'boolean' ? undefined : running ? null : { not: null };
  const filter = { instanceId: instanceId ?? undefined, userId: userId ?? undefined, ended };
  const isAdmin = (scope: ProjectScope) => hasRole(scope, 'admin');
  const read = async (within: readonly ProjectScope[]) => {
    const [first] = within;
    if (!first) return [];
    const projectId = { in: within.map((scope) => scope.projectId) };
    return database.consoleSession.groupBy({ by: 'projectId', where: { AND: [visible(first), filter], projectId }, _count: true });
  };
  const rows = await Promise.all([read(scopes.filter(isAdmin)), read(scopes.filter((scope) => !isAdmin(scope)))]);
  const counts = new Map(rows.flat().map(({ projectId, _count }) => [projectId, _count]));
  return scopes.map(({ projectId }) => counts.get(projectId) ?? 0);
}

/** An instance, and the scope in which its sessions are asked for. */
export interface OfInstance {
  readonly instanceId: string;
  readonly scope: ProjectScope;
}

/** For each instance its console sessions, as `listSessions` has them: one statement, however many instances. */
export async function listInstanceSessions(
  database: Database,
  instances: readonly OfInstance[],
  slice: Slice<string>,
): Promise<ConsoleSession[][]> {
  const { above, below, limit, isAscending } = boundsOf(slice, 'desc');
  const wanted = describeWanted(instances);
  const rows = isAscending
    ? await database.query<ConsoleSession>`
        SELECT listed.* FROM unnest(${wanted.instanceIds}::uuid[], ${wanted.projectIds}::uuid[], ${wanted.userIds}::uuid[])
          AS wanted (instance_id, project_id, user_id)
        CROSS JOIN LATERAL (
          SELECT session.id, session.project_id AS "projectId", session.instance_id AS "instanceId",
            session.instance_name AS "instanceName", session.user_id AS "userId", session.user_email AS "userEmail", session.kind,
            session.client_addresses AS "clientAddresses", session.created, session.ended, session.end_reason AS "endReason",
            session.bytes_in AS "bytesIn", session.bytes_out AS "bytesOut", session.detached_at AS "detachedAt"
          FROM console_sessions AS session
          WHERE session.instance_id = wanted.instance_id AND session.project_id = wanted.project_id
            AND (wanted.user_id IS NULL OR session.user_id = wanted.user_id)
            AND session.id > ${above}::uuid AND session.id < ${below}::uuid
          ORDER BY session.id LIMIT ${limit}
        ) AS listed
        ORDER BY listed.id`
    : await database.query<ConsoleSession>`
        SELECT listed.* FROM unnest(${wanted.instanceIds}::uuid[], ${wanted.projectIds}::uuid[], ${wanted.userIds}::uuid[])
          AS wanted (instance_id, project_id, user_id)
        CROSS JOIN LATERAL (
          SELECT session.id, session.project_id AS "projectId", session.instance_id AS "instanceId",
            session.instance_name AS "instanceName", session.user_id AS "userId", session.user_email AS "userEmail", session.kind,
            session.client_addresses AS "clientAddresses", session.created, session.ended, session.end_reason AS "endReason",
            session.bytes_in AS "bytesIn", session.bytes_out AS "bytesOut", session.detached_at AS "detachedAt"
          FROM console_sessions AS session
          WHERE session.instance_id = wanted.instance_id AND session.project_id = wanted.project_id
            AND (wanted.user_id IS NULL OR session.user_id = wanted.user_id)
            AND session.id > ${above}::uuid AND session.id < ${below}::uuid
          ORDER BY session.id DESC LIMIT ${limit}
        ) AS listed
        ORDER BY listed.id DESC`;
  return groupRows(wanted.instanceIds, rows, ({ instanceId }) => instanceId);
}

/** How many there are in each of these lists. */
export async function countInstanceSessions(database: Database, instances: readonly OfInstance[]): Promise<number[]> {
  const wanted = describeWanted(instances);
  const rows = await database.query<{ instanceId: string | null; count: number | null }>`
    SELECT wanted.instance_id AS "instanceId", (
        SELECT count(*) FROM console_sessions AS session
        WHERE session.instance_id = wanted.instance_id AND session.project_id = wanted.project_id
          AND (wanted.user_id IS NULL OR session.user_id = wanted.user_id)
      )::int AS count
    FROM unnest(${wanted.instanceIds}::uuid[], ${wanted.projectIds}::uuid[], ${wanted.userIds}::uuid[])
      AS wanted (instance_id, project_id, user_id)`;
  return pickCounts(wanted.instanceIds, rows, ({ instanceId }) => instanceId);
}

/** Whose sessions are seen: null where all are. */
function describeWanted(instances: readonly OfInstance[]) {
  return {
    instanceIds: instances.map(({ instanceId }) => instanceId),
    projectIds: instances.map(({ scope }) => scope.projectId),
    userIds: instances.map(({ scope }) => visible(scope).userId ?? null),
  };
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

/** Console sessions by their ids; null for one of another project, and for one of somebody else unless the viewer is an admin. */
export async function findSessions(database: Database, asked: readonly InProject[]): Promise<Array<ConsoleSession | null>> {
  const rows = await database.consoleSession.findMany({ where: { id: { in: asked.map(({ id }) => id) } } });
  return pickInProject(asked, rows).map((row, index) => {
    const scope = asked[index]?.scope;
    const isSeen = row && scope && (hasRole(scope, 'admin') || row.userId === scope.viewer.userId);
    return isSeen ? toSession(row) : null;
  });
}

async function findSession(scope: ProjectScope, id: string): Promise<ConsoleSession> {
  const sessionId = parseUuid(id);
  if (!sessionId) throw Fault.notFound();
  const where = { id: sessionId, projectId: scope.projectId, ...visible(scope) };
  const session = await scope.database.consoleSession.findFirst({ where });
  if (!session) throw Fault.notFound();
  return toSession(session);
}

/** What the viewer may know of within the project: their own, unless they are its admin. */
function visible(scope: ProjectScope) {
  return { userId: hasRole(scope, 'admin') ? undefined : scope.viewer.userId };
}

function toSession({ bytesIn, bytesOut, ...row }: ConsoleSessionRow): ConsoleSession {
  return { ...row, bytesIn: Number(bytesIn), bytesOut: Number(bytesOut) };
}
