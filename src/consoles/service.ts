import { columnsOf, hasRole, type InProject, type ProjectScope, projectIdsOf, requireRole } from '../access/scope.ts';
import type { ConsoleSession as ConsoleSessionRow, Prisma } from '../generated/prisma/client.ts';
import { boundsFromStart, type Slice, sliceById } from '../graph/keyset.ts';
import { pickInProject } from '../graph/node.ts';
import { Fault } from '../kernel/fault.ts';
import { groupRows, pickCounts, pickLists } from '../kernel/rows.ts';
import { parseUuid } from '../kernel/uuid.ts';
import type { Database } from '../platform/database.ts';
import type { Consoles } from './consoles.ts';

/** A console session without the columns that are internal to the server processes. */
export interface ConsoleSession extends Omit<ConsoleSessionRow, 'bytesIn' | 'bytesOut' | 'owner' | 'runner' | 'seen'> {
  readonly bytesIn: number;
  readonly bytesOut: number;
}

interface ConsoleSessionFilter {
  readonly instanceId?: string | null;
  readonly userId?: string | null;
  readonly running?: boolean | null;
}

/** The console sessions of each project, the newest first: all for its admins, one's own for everybody else. */
export async function listSessions(
  database: Database,
  scopes: readonly ProjectScope[],
  filter: ConsoleSessionFilter,
  slice: Slice<string>,
): Promise<ConsoleSession[][]> {
  const { instanceId, userId, running } = filter;
  if (!instanceId && !userId && running !== true) return listAllSessions(database, scopes, running === false, slice);
  if (instanceId && !userId && running !== true) {
    const instances = scopes.map((scope) => ({ scope, id: instanceId }));
    return listInstanceSessions(database, instances, slice, running === false);
  }
  const { where, ...order } = sliceById(slice, 'desc');
  const projects = await readByRole(scopes, filter, (projectIds, conditions) => {
    const consoleSessions = { where: { AND: [...conditions, where] }, ...order };
    return database.prisma.project.findMany({
      relationLoadStrategy: 'join',
      where: { id: { in: projectIds } },
      select: { id: true, consoleSessions },
    });
  });
  return pickLists(projectIdsOf(scopes), projects, ({ consoleSessions }) => consoleSessions.map(toSession));
}

/**
 * The sessions of each project, or those that have ended, as `listSessions` does. Those of all users and one's own have a branch each,
 * whose order is that of its index: by ids alone, PostgreSQL takes the primary key where few projects have most sessions.
 */
async function listAllSessions(
  database: Database,
  scopes: readonly ProjectScope[],
  isEnded: boolean,
  slice: Slice<string>,
): Promise<ConsoleSession[][]> {
  const { above, below, limit, isAscending, within } = boundsFromStart(slice, 'desc');
  const userIds = scopes.map((scope) => visibleTo(scope).userId ?? null);
  const query = database.queryInOrder(isAscending);
  const rows = await query<ConsoleSession>`
    SELECT session.id, session.project_id AS "projectId", session.instance_id AS "instanceId",
      session.instance_name AS "instanceName", session.user_id AS "userId", session.user_email AS "userEmail", session.kind,
      session.client_addresses AS "clientAddresses", session.created, session.ended, session.end_reason AS "endReason",
      session.bytes_in AS "bytesIn", session.bytes_out AS "bytesOut", session.detached_at AS "detachedAt"
    FROM unnest(${projectIdsOf(scopes)}::uuid[], ${userIds}::uuid[]) AS wanted (project_id, user_id)
    CROSS JOIN LATERAL (
      (SELECT one.id FROM console_sessions AS one
      WHERE wanted.user_id IS NULL AND (NOT ${isEnded}::boolean OR one.ended IS NOT NULL)
        AND (one.project_id, one.id) > (wanted.project_id, ${above}::uuid)
        AND (one.project_id, one.id) < (wanted.project_id, ${below}::uuid)
      ORDER BY one.project_id DESC, one.id DESC LIMIT ${limit})
      UNION ALL
      (SELECT one.id FROM console_sessions AS one
      WHERE one.project_id = wanted.project_id AND (NOT ${isEnded}::boolean OR one.ended IS NOT NULL)
        AND (one.user_id, one.id) > (wanted.user_id, ${above}::uuid)
        AND (one.user_id, one.id) < (wanted.user_id, ${below}::uuid)
      ORDER BY one.user_id DESC, one.id DESC LIMIT ${limit})
    ) AS listed
    CROSS JOIN LATERAL (SELECT * FROM console_sessions WHERE console_sessions.id = listed.id LIMIT 1) AS session
    ORDER BY session.id DESC`;
  return groupRows(projectIdsOf(scopes), within(rows), ({ projectId }) => projectId);
}

/** The number of sessions in each of the lists. */
export async function countSessions(database: Database, scopes: readonly ProjectScope[], filter: ConsoleSessionFilter): Promise<number[]> {
  const counts = await readByRole(scopes, filter, (projectIds, conditions) =>
    database.prisma.consoleSession.groupBy({ by: 'projectId', where: { AND: conditions, projectId: { in: projectIds } }, _count: true }),
  );
  const rows = counts.map(({ projectId, _count }) => ({ projectId, count: _count }));
  return pickCounts(projectIdsOf(scopes), rows, ({ projectId }) => projectId);
}

/** Reads the sessions of the viewer's projects by two statements: the sessions of all users and one's own have an index each. */
async function readByRole<Row>(
  scopes: readonly ProjectScope[],
  { instanceId, userId, running }: ConsoleSessionFilter,
  read: (projectIds: string[], conditions: Prisma.ConsoleSessionWhereInput[]) => Promise<Row[]>,
): Promise<Row[]> {
  const ended = typeof running !== 'boolean' ? undefined : running ? null : { not: null };
  const filter = { instanceId: instanceId ?? undefined, userId: userId ?? undefined, ended };
  const isAdmin = (scope: ProjectScope) => hasRole(scope, 'admin');
  const groups = [scopes.filter(isAdmin), scopes.filter((scope) => !isAdmin(scope))];
  const reads = groups.map((group) => (group[0] ? read(projectIdsOf(group), [visibleTo(group[0]), filter]) : []));
  return (await Promise.all(reads)).flat();
}

/**
 * The console sessions of each instance, or those that have ended, by one statement; visible and sorted as in `listSessions`. The
 * sessions of all users and one's own have a branch each, whose order is that of its index: by ids alone, PostgreSQL takes the primary
 * key where few instances have most sessions. Without `CASE` it expects one row in the project, and so sorts all of the instance.
 */
export async function listInstanceSessions(
  database: Database,
  instances: readonly InProject[],
  slice: Slice<string>,
  isEnded = false,
): Promise<ConsoleSession[][]> {
  const { above, below, limit, isAscending, within } = boundsFromStart(slice, 'desc');
  const wanted = listWanted(instances);
  const query = database.queryInOrder(isAscending);
  const rows = await query<ConsoleSession>`
    SELECT session.id, session.project_id AS "projectId", session.instance_id AS "instanceId",
      session.instance_name AS "instanceName", session.user_id AS "userId", session.user_email AS "userEmail", session.kind,
      session.client_addresses AS "clientAddresses", session.created, session.ended, session.end_reason AS "endReason",
      session.bytes_in AS "bytesIn", session.bytes_out AS "bytesOut", session.detached_at AS "detachedAt"
    FROM unnest(${wanted.instanceIds}::uuid[], ${wanted.projectIds}::uuid[], ${wanted.userIds}::uuid[])
      AS wanted (instance_id, project_id, user_id)
    CROSS JOIN LATERAL (
      (SELECT one.id FROM console_sessions AS one
      WHERE wanted.user_id IS NULL
        AND CASE WHEN one.project_id = wanted.project_id AND (NOT ${isEnded}::boolean OR one.ended IS NOT NULL) THEN true ELSE false END
        AND (one.instance_id, one.id) > (wanted.instance_id, ${above}::uuid)
        AND (one.instance_id, one.id) < (wanted.instance_id, ${below}::uuid)
      ORDER BY one.instance_id DESC, one.id DESC LIMIT ${limit})
      UNION ALL
      (SELECT one.id FROM console_sessions AS one
      WHERE one.instance_id = wanted.instance_id AND (one.project_id = wanted.project_id) IS TRUE
        AND (NOT ${isEnded}::boolean OR one.ended IS NOT NULL)
        AND (one.user_id, one.id) > (wanted.user_id, ${above}::uuid)
        AND (one.user_id, one.id) < (wanted.user_id, ${below}::uuid)
      ORDER BY one.user_id DESC, one.id DESC LIMIT ${limit})
    ) AS listed
    CROSS JOIN LATERAL (SELECT * FROM console_sessions WHERE console_sessions.id = listed.id LIMIT 1) AS session
    ORDER BY session.id DESC`;
  // An instance may have been in several of the projects.
  const keys = instances.map(({ scope, id }) => scope.projectId + id);
  return groupRows(keys, within(rows), ({ projectId, instanceId }) => projectId + instanceId);
}

/**
 * The number of sessions in each of these lists. The user is a range: for `=`, PostgreSQL takes another index where most sessions are of one
 * user.
 */
export async function countInstanceSessions(database: Database, instances: readonly InProject[]): Promise<number[]> {
  const wanted = listWanted(instances);
  const rows = await database.query<{ instanceId: string | null; count: number | null }>`
    SELECT wanted.instance_id AS "instanceId", (CASE
        WHEN wanted.user_id IS NULL THEN (
          SELECT count(*) FROM console_sessions AS session
          WHERE session.instance_id = wanted.instance_id AND (session.project_id = wanted.project_id) IS TRUE)
        ELSE (
          SELECT count(*) FROM console_sessions AS session
          WHERE session.instance_id = wanted.instance_id AND session.user_id BETWEEN wanted.user_id AND wanted.user_id
            AND (session.project_id = wanted.project_id) IS TRUE)
      END)::int AS count
    FROM unnest(${wanted.instanceIds}::uuid[], ${wanted.projectIds}::uuid[], ${wanted.userIds}::uuid[])
      AS wanted (instance_id, project_id, user_id)`;
  return pickCounts(wanted.instanceIds, rows, ({ instanceId }) => instanceId);
}

/**
 * Whether somebody is attached to a serial console session of each instance now, by one statement. Every member may know this, also
 * of sessions that they may not see: whoever opens the console ends that session.
 */
export async function findOccupied(database: Database, instances: readonly InProject[]): Promise<boolean[]> {
  const { ids: instanceIds, projectIds } = columnsOf(instances);
  const rows = await database.query<{ instanceId: string | null; count: number | null }>`
    SELECT wanted.instance_id AS "instanceId", (
        SELECT count(*) FROM console_sessions AS session
        WHERE session.instance_id = wanted.instance_id AND session.ended IS NULL AND (session.project_id = wanted.project_id) IS TRUE
          AND session.detached_at IS NULL AND session.kind = 'serial'
      )::int AS count
    FROM unnest(${instanceIds}::uuid[], ${projectIds}::uuid[]) AS wanted (instance_id, project_id)`;
  return pickCounts(instanceIds, rows, ({ instanceId }) => instanceId).map((count) => count > 0);
}

/** The parameters of the statements of the lists above. A null in `userIds` stands for the sessions of all users. */
function listWanted(instances: readonly InProject[]) {
  const { ids: instanceIds, projectIds } = columnsOf(instances);
  return { instanceIds, projectIds, userIds: instances.map(({ scope }) => visibleTo(scope).userId ?? null) };
}

/**
 * Ends a running session, in whichever process it runs; a session that has ended does not change. Throws `not_found` for a
 * session that the viewer may not see, `permission_denied` below the role `member`.
 */
export async function endSession(scope: ProjectScope, consoles: Consoles, { id }: { id: string }): Promise<ConsoleSession> {
  const session = await getSession(scope, id);
  requireRole(scope, 'member');
  if (session.ended) return session;
  await consoles.end(session.id, 'ended');
  await scope.database.query`
    UPDATE console_sessions SET ended = now(), end_reason = 'ended' WHERE id = ${session.id}::uuid AND ended IS NULL`;
  return getSession(scope, id);
}

/** Finds sessions by id; null for a session of another project, or of another user unless the viewer is an admin. */
export async function findSessions(database: Database, requested: readonly InProject[]): Promise<Array<ConsoleSession | null>> {
  const rows = await database.prisma.consoleSession.findMany({ where: { id: { in: requested.map(({ id }) => id) } } });
  return pickInProject(requested, rows).map((row, index) => {
    const scope = requested[index]?.scope;
    const isVisible = row && scope && (hasRole(scope, 'admin') || row.userId === scope.viewer.userId);
    return isVisible ? toSession(row) : null;
  });
}

/** Throws `not_found` for a malformed id, and for a session that the viewer may not see. */
export async function getSession(scope: ProjectScope, id: string): Promise<ConsoleSession> {
  const sessionId = parseUuid(id);
  if (!sessionId) throw Fault.notFound();
  const where = { id: sessionId, projectId: scope.projectId, ...visibleTo(scope) };
  const session = await scope.database.prisma.consoleSession.findFirst({ where });
  if (!session) throw Fault.notFound();
  return toSession(session);
}

/** The condition for the sessions that the viewer may see: all for an admin of the project, otherwise their own. */
function visibleTo(scope: ProjectScope) {
  return { userId: hasRole(scope, 'admin') ? undefined : scope.viewer.userId };
}

function toSession({ owner, runner, seen, bytesIn, bytesOut, ...row }: ConsoleSessionRow): ConsoleSession {
  return { ...row, bytesIn: Number(bytesIn), bytesOut: Number(bytesOut) };
}
