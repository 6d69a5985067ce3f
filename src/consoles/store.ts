import type { ConsoleEnd, ConsoleKind, InstanceStatus } from '../generated/prisma/enums.ts';
import type { Nullable } from '../kernel/rows.ts';
import { deleteInBatches } from '../platform/cleanup.ts';
import type { Database } from '../platform/database.ts';
import type { Query } from '../platform/query.ts';
import type { Endpoint } from './endpoint.ts';

/** A running session whose process has sent no heartbeat (the column `seen`) for this long is abandoned. */
const SILENT_SECONDS = 60;
/** The addresses of its clients that a session keeps: the last ones. */
const MAX_ADDRESSES = 20;
/** A session without a heartbeat for this long no longer counts towards the quota of its user. */
const QUOTA_SECONDS = 20;

interface ConsoleInstance {
  readonly name: string;
  readonly status: InstanceStatus;
  /** Null for an instance without a console. */
  readonly endpoint: Endpoint | null;
  /** The id of a session that is opened now: by PostgreSQL's clock, so that sessions of all processes sort by their beginning. */
  readonly newSessionId: string;
}

/** The columns of an endpoint, all null for an instance without one. */
type EndpointRow = Nullable<Endpoint>;

function endpointOf({ kind, host, port, socketPath }: EndpointRow): Endpoint | null {
  return kind && { kind, host, port, socketPath };
}

/** Finds an instance and the endpoint of its console; null where the project has no such instance, or it is deleted. */
export async function findConsole(database: Database, projectId: string, instanceId: string): Promise<ConsoleInstance | null> {
  const [row] = await database.query<EndpointRow & { name: string; status: InstanceStatus; newSessionId: string | null }>`
    SELECT instance.name, instance.status, endpoint.kind, endpoint.host, endpoint.port,
      endpoint.socket_path AS "socketPath", uuid_v7()::uuid AS "newSessionId"
    FROM instances AS instance LEFT JOIN console_endpoints AS endpoint ON endpoint.instance_id = instance.id
    WHERE instance.id = ${instanceId}::uuid AND instance.project_id = ${projectId}::uuid AND instance.status <> 'deleted'`;
  return row ? { name: row.name, status: row.status, endpoint: endpointOf(row), newSessionId: String(row.newSessionId) } : null;
}

interface NewSession {
  readonly id: string;
  readonly projectId: string;
  readonly instanceId: string;
  readonly instanceName: string;
  readonly userId: string;
  readonly userEmail: string;
  readonly kind: ConsoleKind;
  readonly clientAddress: string;
  /** The process that runs it. */
  readonly processId: string;
}

/** Takes an advisory lock until the end of the transaction. To avoid deadlocks, the user is locked before the instance. */
function lockConsoles(query: Query, kind: 'user' | 'instance', id: string): Promise<unknown> {
  const name = `console of ${kind} ${id}`;
  return query<{ lock: string | null }>`SELECT pg_advisory_xact_lock(hashtextextended(${name}, 0))::text AS lock`;
}

/**
 * Inserts a new session; returns null if its user already has `max` attached sessions. A serial console has one session at a
 * time: the new session ends the others, whose ids are returned. Of the user's sessions without a client, each of which keeps some
 * output in memory, the `max` that were left last stay.
 */
export function insertSession(database: Database, session: NewSession, max: number): Promise<string[] | null> {
  const { id, projectId, instanceId, instanceName, userId, userEmail, kind, clientAddress, processId } = session;
  const isExclusive = kind === 'serial';
  return database.transact(async (query) => {
    await lockConsoles(query, 'user', userId);
    await lockConsoles(query, 'instance', instanceId);
    const [row] = await query<{ count: number }>`
      SELECT count(*)::int AS count FROM console_sessions
      WHERE user_id = ${userId}::uuid AND ended IS NULL AND detached_at IS NULL
        AND seen > now() - make_interval(secs => ${QUOTA_SECONDS}::int)
        AND NOT (instance_id = ${instanceId}::uuid AND kind = 'serial' AND ${isExclusive}::boolean)`;
    if ((row?.count ?? 0) >= max) return null;
    const takenOver = await query<{ id: string }>`
      UPDATE console_sessions SET ended = now(), end_reason = 'taken_over'
      WHERE ended IS NULL AND instance_id = ${instanceId}::uuid AND kind = 'serial' AND ${isExclusive}::boolean RETURNING id`;
    await query`
      INSERT INTO console_sessions (id, project_id, instance_id, instance_name, user_id, user_email, kind, client_addresses, owner, runner)
      VALUES (${id}::uuid, ${projectId}::uuid, ${instanceId}::uuid, ${instanceName}, ${userId}::uuid, ${userEmail}, ${kind}::console_kind,
        ARRAY[${clientAddress}], ${processId}::uuid, ${processId}::uuid)`;
    await query`
      UPDATE console_sessions SET ended = now(), end_reason = 'detached' WHERE id IN (
        SELECT id FROM console_sessions WHERE user_id = ${userId}::uuid AND ended IS NULL AND detached_at IS NOT NULL
        ORDER BY detached_at DESC OFFSET ${max} FOR UPDATE SKIP LOCKED
      )`;
    return takenOver.map((row) => row.id);
  });
}

/**
 * Claims a running session for a process, which the column `owner` then names. The process that runs it notices that at its next
 * poll, and stores its output. Returns the processes that may be running it: the one that `owner` named before, and the runner, which
 * is another one if that had claimed the session in vain. Null if the user has no such running session. Not a heartbeat: only the
 * runner sends those.
 */
export async function claimSession(
  database: Database,
  { id, projectId, instanceId, userId, processId }: Pick<NewSession, 'id' | 'projectId' | 'instanceId' | 'userId' | 'processId'>,
): Promise<string[] | null> {
  const [row] = await database.query<{ formerId: string; runner: string | null }>`
    UPDATE console_sessions AS session SET owner = ${processId}::uuid, runner = coalesce(session.runner, before.owner)
    FROM (
      SELECT id, owner FROM console_sessions
      WHERE id = ${id}::uuid AND user_id = ${userId}::uuid AND instance_id = ${instanceId}::uuid AND project_id = ${projectId}::uuid
      FOR UPDATE
    ) AS before
    WHERE session.id = before.id AND session.ended IS NULL
    RETURNING before.owner AS "formerId", session.runner`;
  return row ? [row.formerId, row.runner ?? row.formerId] : null;
}

/**
 * Makes the process that has claimed a session its runner, and deletes the stored output. From now on the former runner neither
 * stores output nor ends the session. Returns the session's byte counts; null if it has ended, or another process has claimed it.
 */
export async function takeSession(database: Database, processId: string, id: string): Promise<ByteCounts | null> {
  const [taken] = await database.query<ByteCounts>`
    WITH taken AS (
      UPDATE console_sessions SET runner = ${processId}::uuid WHERE id = ${id}::uuid AND owner = ${processId}::uuid AND ended IS NULL
      RETURNING id, bytes_in, bytes_out
    ), deleted AS (
      DELETE FROM console_handovers WHERE session_id = ${id}::uuid AND EXISTS (SELECT FROM taken)
    )
    SELECT id, bytes_in AS "bytesIn", bytes_out AS "bytesOut" FROM taken`;
  return taken ?? null;
}

/**
 * Records that the user is attached, from an address, to a session that the process runs. It has the session again, if another
 * process has claimed it meanwhile. `lost` if the session has ended or another process runs it; `too_many_consoles` if the user has
 * `max` others attached.
 */
export function recordAttachment(
  database: Database,
  { id, userId, clientAddress, processId }: Pick<NewSession, 'id' | 'userId' | 'clientAddress' | 'processId'>,
  max: number,
): Promise<'attached' | 'too_many_consoles' | 'lost'> {
  return database.transact(async (query) => {
    await lockConsoles(query, 'user', userId);
    const [row] = await query<{ count: number }>`
      SELECT count(*)::int AS count FROM console_sessions
      WHERE user_id = ${userId}::uuid AND ended IS NULL AND detached_at IS NULL AND id <> ${id}::uuid
        AND seen > now() - make_interval(secs => ${QUOTA_SECONDS}::int)`;
    if ((row?.count ?? 0) >= max) return 'too_many_consoles';
    const updated = await query<{ id: string }>`
      UPDATE console_sessions SET detached_at = NULL, seen = now(), owner = ${processId}::uuid,
        client_addresses = (array_remove(client_addresses, ${clientAddress}))
          [greatest(cardinality(array_remove(client_addresses, ${clientAddress})) - ${MAX_ADDRESSES - 2}::int, 1):] || ${clientAddress}::text
      WHERE id = ${id}::uuid AND ended IS NULL AND runner = ${processId}::uuid RETURNING id`;
    return updated.length > 0 ? 'attached' : 'lost';
  });
}

/** Whether a session of the user runs, in any process. */
export async function isSessionRunning(
  database: Database,
  { id, projectId, instanceId, userId }: Pick<NewSession, 'id' | 'projectId' | 'instanceId' | 'userId'>,
): Promise<boolean> {
  const rows = await database.query<{ id: string }>`
    SELECT id FROM console_sessions WHERE id = ${id}::uuid AND ended IS NULL AND user_id = ${userId}::uuid
      AND instance_id = ${instanceId}::uuid AND project_id = ${projectId}::uuid`;
  return rows.length > 0;
}

/** The numbers of bytes to and from a console in a session so far. */
export interface ByteCounts {
  readonly id: string;
  readonly bytesIn: number;
  readonly bytesOut: number;
}

/** Saves the heartbeat of a process's sessions, their byte counts, and whether a client is attached. */
export async function saveSessions(
  database: Database,
  processId: string,
  sessions: ReadonlyArray<ByteCounts & { readonly isDetached: boolean }>,
): Promise<void> {
  await database.query`
    UPDATE console_sessions AS session SET seen = now(), bytes_in = tally.bytes_in, bytes_out = tally.bytes_out,
      detached_at = CASE WHEN tally.is_detached THEN coalesce(session.detached_at, now()) END
    FROM unnest(${sessions.map(({ id }) => id)}::uuid[], ${sessions.map(({ bytesIn }) => bytesIn)}::bigint[],
      ${sessions.map(({ bytesOut }) => bytesOut)}::bigint[], ${sessions.map(({ isDetached }) => isDetached)}::boolean[])
      AS tally (id, bytes_in, bytes_out, is_detached)
    WHERE session.id = tally.id AND session.owner = ${processId}::uuid AND session.ended IS NULL`;
}

/** The end of a session, with its final byte counts. */
interface SavedEnd extends ByteCounts {
  readonly reason: ConsoleEnd;
  readonly secondsAgo: number;
}

/** Saves the ends of sessions that the process runs; an end that is already saved keeps its time and reason. */
export async function saveEnds(database: Database, processId: string, ends: readonly SavedEnd[]): Promise<void> {
  await database.query`
    UPDATE console_sessions AS session SET ended = coalesce(session.ended, now() - make_interval(secs => final.seconds_ago)),
      end_reason = coalesce(session.end_reason, final.reason), bytes_in = final.bytes_in, bytes_out = final.bytes_out
    FROM unnest(${ends.map(({ id }) => id)}::uuid[], ${ends.map(({ secondsAgo }) => secondsAgo)}::float8[],
      ${ends.map(({ reason }) => reason)}::console_end[], ${ends.map(({ bytesIn }) => bytesIn)}::bigint[],
      ${ends.map(({ bytesOut }) => bytesOut)}::bigint[]) AS final (id, seconds_ago, reason, bytes_in, bytes_out)
    WHERE session.id = final.id AND session.runner = ${processId}::uuid`;
}

/** The output of a session, for the process that continues it. */
export interface Handover {
  /** The position at the end of the scrollback. */
  readonly position: number;
  readonly scrollback: Uint8Array;
}

/** Stores the output of a session that the process runs for the one that has claimed it, or will, as its last heartbeat. */
export async function saveHandover(
  database: Database,
  processId: string,
  { id, bytesIn, bytesOut }: ByteCounts,
  { position, scrollback }: Handover,
): Promise<void> {
  await database.query`
    WITH counted AS (
      UPDATE console_sessions SET bytes_in = ${bytesIn}, bytes_out = ${bytesOut}, seen = now(),
        detached_at = coalesce(detached_at, now())
      WHERE id = ${id}::uuid AND ended IS NULL AND runner = ${processId}::uuid RETURNING id
    )
    INSERT INTO console_handovers (session_id, owner, position, scrollback)
    SELECT id, ${processId}::uuid, ${position}, ${new Uint8Array(scrollback)} FROM counted
    ON CONFLICT (session_id, owner) DO UPDATE SET position = excluded.position, scrollback = excluded.scrollback, created = now()`;
}

/** Reads the output that one of the processes that may have run a session has stored; null as long as none has. */
export async function readHandover(database: Database, id: string, formerProcessIds: readonly string[]): Promise<Handover | null> {
  const [handover] = await database.query<Handover>`
    SELECT position, scrollback FROM console_handovers WHERE session_id = ${id}::uuid AND owner = ANY (${formerProcessIds}::uuid[])
    ORDER BY created DESC LIMIT 1`;
  return handover ?? null;
}

/** A session as far as its record and its instance are found by it. */
type SessionKey = Pick<NewSession, 'id' | 'projectId' | 'instanceId'>;

/** The state of a session in the database, with the instance and endpoint that it depends on. */
export interface SessionSnapshot {
  /** The process that has claimed it last, or else runs it; null when the database has no record of the session. */
  readonly claimedBy: string | null;
  readonly end: ConsoleEnd | null;
  /** Null when the instance is no longer in the session's project. */
  readonly status: InstanceStatus | null;
  readonly endpoint: Endpoint | null;
}

/**
 * Reads snapshots of sessions by one statement, one for each. The instance of a session tells why its record is missing: it was deleted
 * with its project, or a standby that lacked the record was promoted.
 */
export async function readSnapshots(database: Database, sessions: readonly SessionKey[]): Promise<Map<string | null, SessionSnapshot>> {
  const rows = await database.query<EndpointRow & Omit<SessionSnapshot, 'endpoint'> & { id: string | null }>`
    SELECT running.id, session.owner AS "claimedBy", session.end_reason AS end, instance.status,
      endpoint.kind, endpoint.host, endpoint.port, endpoint.socket_path AS "socketPath"
    FROM unnest(${sessions.map(({ id }) => id)}::uuid[], ${sessions.map(({ projectId }) => projectId)}::uuid[],
      ${sessions.map(({ instanceId }) => instanceId)}::uuid[]) AS running (id, project_id, instance_id)
    LEFT JOIN console_sessions AS session ON session.id = running.id
    LEFT JOIN LATERAL (
      SELECT found.id, found.status
      FROM (SELECT id, project_id, status FROM instances WHERE instances.id = running.instance_id LIMIT 1) AS found
      WHERE found.project_id = running.project_id
    ) AS instance ON true
    LEFT JOIN console_endpoints AS endpoint ON endpoint.instance_id = instance.id`;
  return new Map(rows.map((row) => [row.id, { ...row, endpoint: endpointOf(row) }]));
}

/** The time by the database's clock. */
export async function readClock(database: Database): Promise<Date> {
  const [clock] = await database.query<{ now: Date }>`SELECT now() AS now`;
  if (!clock) throw new Error('the database has not told the time');
  return clock.now;
}

/**
 * Ends the sessions whose process had been silent for too long at a moment that was read before, or which no process had claimed by then;
 * deletes stored output of that age. By the clock at its execution, a statement that a suspended database executes only when it continues
 * would find every session silent.
 */
export async function endSilentSessions(database: Database, asOf: Date): Promise<void> {
  await database.query`
    UPDATE console_sessions SET ended = seen,
      end_reason = CASE WHEN detached_at IS NULL THEN 'lost'::console_end ELSE 'detached'::console_end END
    WHERE ended IS NULL AND seen < ${asOf}::timestamptz - make_interval(secs => ${SILENT_SECONDS}::int)`;
  await database.query`
    DELETE FROM console_handovers WHERE created < ${asOf}::timestamptz - make_interval(secs => ${SILENT_SECONDS}::int)`;
}

/** Deletes the records of sessions that ended more than `days` ago, by PostgreSQL's clock. */
export function deleteOldRecords(database: Database, days: number, signal?: AbortSignal): Promise<void> {
  return deleteInBatches(
    (limit) => database.query<{ deleted: number | null }>`
      DELETE FROM console_sessions WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM console_sessions WHERE ended < now() - ${days}::float8 * interval '24 hours' ORDER BY ended LIMIT ${limit}::int
      )) RETURNING 1 AS deleted`,
    signal,
  );
}
