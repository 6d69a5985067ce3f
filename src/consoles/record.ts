import type { ConsoleEnd, ConsoleKind, InstanceStatus } from '../generated/prisma/enums.ts';
import type { Database } from '../platform/database.ts';
import type { Query } from '../platform/query.ts';
import type { Endpoint } from './endpoint.ts';

/** A running session without a sign of life for so many seconds counts as abandoned by its process. */
export const SILENT_SECONDS = 60;
/** A session whose process has given no sign of life for so long does not count towards the quota of its user. */
const COUNTED_SECONDS = 20;

/** An instance as its console needs it. */
interface ConsoleInstance {
  readonly name: string;
  readonly status: InstanceStatus;
  /** Null: it has no console. */
  readonly endpoint: Endpoint | null;
}

/** The endpoint's columns are absent together. */
type EndpointRow = { readonly [Name in keyof Endpoint]: Endpoint[Name] | null };

function endpointOf({ kind, host, port, socketPath }: EndpointRow): Endpoint | null {
  return kind && { kind, host, port, socketPath };
}

/** Null where the project has no such instance, or it is deleted. */
export async function findInstance(database: Database, projectId: string, instanceId: string): Promise<ConsoleInstance | null> {
  const [row] = await database.query<EndpointRow & { name: string; status: InstanceStatus }>`
    SELECT instance.name, instance.status, endpoint.kind, endpoint.host, endpoint.port, endpoint.socket_path AS "socketPath"
    FROM instances AS instance LEFT JOIN console_endpoints AS endpoint ON endpoint.instance_id = instance.id
    WHERE instance.id = ${instanceId}::uuid AND instance.project_id = ${projectId}::uuid AND instance.status <> 'deleted'`;
  return row ? { name: row.name, status: row.status, endpoint: endpointOf(row) } : null;
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
  readonly owner: string;
}

/** Locks until the end of the transaction. The order is the same everywhere: the user first, then the instance. */
function lockConsolesOf(query: Query, whose: 'user' | 'instance', id: string): Promise<unknown> {
  const name = `console of ${whose} ${id}`;
  return query<{ lock: string | null }>`SELECT pg_advisory_xact_lock(hashtextextended(${name}, 0))::text AS lock`;
}

/**
 * Enters a session that begins, unless its user has so many already: then it is null. A serial console is one wire: who
 * begins takes it over, and the sessions that end by that are returned.
 */
export function insertSession(database: Database, session: NewSession, most: number): Promise<string[] | null> {
  const { id, projectId, instanceId, instanceName, userId, userEmail, kind, clientAddress, owner } = session;
  const takesWire = kind === 'serial';
  return database.transact(async (query) => {
    await lockConsolesOf(query, 'user', userId);
    await lockConsolesOf(query, 'instance', instanceId);
    const [row] = await query<{ count: number }>`
      SELECT count(*)::int AS count FROM console_sessions
      WHERE user_id = ${userId}::uuid AND ended IS NULL AND detached_at IS NULL
        AND seen > now() - make_interval(secs => ${COUNTED_SECONDS}::int)
        AND NOT (instance_id = ${instanceId}::uuid AND kind = 'serial' AND ${takesWire}::boolean)`;
    if ((row?.count ?? 0) >= most) return null;
    const over = await query<{ id: string }>`
      UPDATE console_sessions SET ended = now(), end_reason = 'taken_over'
      WHERE ended IS NULL AND instance_id = ${instanceId}::uuid AND kind = 'serial' AND ${takesWire}::boolean RETURNING id`;
    await query`
      INSERT INTO console_sessions (id, project_id, instance_id, instance_name, user_id, user_email, kind, client_addresses, owner)
      VALUES (${id}::uuid, ${projectId}::uuid, ${instanceId}::uuid, ${instanceName}, ${userId}::uuid, ${userEmail}, ${kind}::console_kind,
        ARRAY[${clientAddress}], ${owner}::uuid)`;
    return over.map((row) => row.id);
  });
}

/**
 * Makes a running session of the user this process's own, and returns the name of its former process, which learns of it at
 * its next poll. Null where no such session runs.
 */
export async function claimSession(
  database: Database,
  { id, projectId, instanceId, userId, owner }: Pick<NewSession, 'id' | 'projectId' | 'instanceId' | 'userId' | 'owner'>,
): Promise<string | null> {
  const [row] = await database.query<{ formerOwner: string }>`
    UPDATE console_sessions AS session SET owner = ${owner}::uuid, seen = now()
    FROM (SELECT id, owner FROM console_sessions WHERE id = ${id}::uuid FOR UPDATE) AS before
    WHERE session.id = before.id AND session.ended IS NULL AND session.user_id = ${userId}::uuid
      AND session.instance_id = ${instanceId}::uuid AND session.project_id = ${projectId}::uuid
    RETURNING before.owner AS "formerOwner"`;
  return row?.formerOwner ?? null;
}

/** Enters that its user is attached to a session, from an address, unless it is over, or they have so many already. */
export function enterAttachment(
  database: Database,
  { id, userId, clientAddress }: Pick<NewSession, 'id' | 'userId' | 'clientAddress'>,
  most: number,
): Promise<'entered' | 'too_many_consoles' | 'session_gone'> {
  return database.transact(async (query) => {
    await lockConsolesOf(query, 'user', userId);
    const [row] = await query<{ count: number }>`
      SELECT count(*)::int AS count FROM console_sessions
      WHERE user_id = ${userId}::uuid AND ended IS NULL AND detached_at IS NULL AND id <> ${id}::uuid
        AND seen > now() - make_interval(secs => ${COUNTED_SECONDS}::int)`;
    if ((row?.count ?? 0) >= most) return 'too_many_consoles';
    const entered = await query<{ id: string }>`
      UPDATE console_sessions SET detached_at = NULL, seen = now(),
        client_addresses = array_remove(client_addresses, ${clientAddress}) || ${clientAddress}::text
      WHERE id = ${id}::uuid AND ended IS NULL RETURNING id`;
    return entered.length > 0 ? 'entered' : 'session_gone';
  });
}

/** The bytes that have passed in a session. */
export interface ByteCounts {
  readonly id: string;
  readonly bytesIn: number;
  readonly bytesOut: number;
}

/** Saves a sign of life of the process, and the byte counts of its sessions. */
export async function saveSessions(
  database: Database,
  owner: string,
  tallies: ReadonlyArray<ByteCounts & { readonly isDetached: boolean }>,
): Promise<void> {
  await database.query`
    UPDATE console_sessions AS session SET seen = now(), bytes_in = tally.bytes_in, bytes_out = tally.bytes_out,
      detached_at = CASE WHEN tally.is_detached THEN coalesce(session.detached_at, now()) END
    FROM unnest(${tallies.map(({ id }) => id)}::uuid[], ${tallies.map(({ bytesIn }) => bytesIn)}::bigint[],
      ${tallies.map(({ bytesOut }) => bytesOut)}::bigint[], ${tallies.map(({ isDetached }) => isDetached)}::boolean[])
      AS tally (id, bytes_in, bytes_out, is_detached)
    WHERE session.id = tally.id AND session.owner = ${owner}::uuid AND session.ended IS NULL`;
}

/** Enters that a session is over, with its last count: the first reason that was given stays. */
export async function saveEnd(database: Database, { id, bytesIn, bytesOut }: ByteCounts, reason: ConsoleEnd, ended: Date): Promise<void> {
  await database.query`
    UPDATE console_sessions SET ended = coalesce(ended, ${ended}), end_reason = coalesce(end_reason, ${reason}::console_end),
      bytes_in = ${bytesIn}, bytes_out = ${bytesOut}
    WHERE id = ${id}::uuid`;
}

/** The output of a session, for the process that goes on with it. */
export interface Handover {
  /** The position at the end of the scrollback. */
  readonly position: number;
  readonly scrollback: Uint8Array;
}

/** Stores the output of a session for the process that has claimed it, or will. */
export async function putHandover(
  database: Database,
  owner: string,
  { id, bytesIn, bytesOut }: ByteCounts,
  { position, scrollback }: Handover,
): Promise<void> {
  await database.query`
    WITH counted AS (
      UPDATE console_sessions SET bytes_in = ${bytesIn}, bytes_out = ${bytesOut}, seen = now(),
        detached_at = coalesce(detached_at, now())
      WHERE id = ${id}::uuid AND ended IS NULL RETURNING id
    )
    INSERT INTO console_handovers (session_id, owner, position, scrollback)
    SELECT id, ${owner}::uuid, ${position}, ${new Uint8Array(scrollback)} FROM counted
    ON CONFLICT (session_id, owner) DO UPDATE SET position = excluded.position, scrollback = excluded.scrollback, created = now()`;
}

/** Takes the output that the former process has stored; null as long as it has stored none. */
export async function takeHandover(database: Database, id: string, formerOwner: string): Promise<Handover | null> {
  const [row] = await database.query<{ position: number; scrollback: Uint8Array }>`
    DELETE FROM console_handovers WHERE session_id = ${id}::uuid AND owner = ${formerOwner}::uuid RETURNING position, scrollback`;
  return row ? { position: row.position, scrollback: row.scrollback } : null;
}

/** A session as the database has it, with all that it depends on. */
export interface SessionSnapshot {
  readonly id: string;
  readonly owner: string;
  readonly end: ConsoleEnd | null;
  /** Null: the instance is not in the session's project any more. */
  readonly status: InstanceStatus | null;
  readonly endpoint: Endpoint | null;
  readonly bytesIn: number;
  readonly bytesOut: number;
}

/** Snapshots of sessions, by one statement. A session that is not among them has gone with its project. */
export async function readSnapshots(database: Database, ids: readonly string[]): Promise<Map<string, SessionSnapshot>> {
  type Row = EndpointRow & Omit<SessionSnapshot, 'endpoint'>;
  const rows = await database.query<Row>`
    SELECT session.id, session.owner, session.end_reason AS end, instance.status,
      endpoint.kind, endpoint.host, endpoint.port, endpoint.socket_path AS "socketPath", session.bytes_in AS "bytesIn", session.bytes_out AS "bytesOut"
    FROM console_sessions AS session
    LEFT JOIN instances AS instance ON instance.id = session.instance_id AND instance.project_id = session.project_id
    LEFT JOIN console_endpoints AS endpoint ON endpoint.instance_id = instance.id
    WHERE session.id = ANY (${ids}::uuid[])`;
  return new Map(
    rows.map((row) => {
      const { id, owner, end, status } = row;
      return [id, { id, owner, end, status, endpoint: endpointOf(row), bytesIn: row.bytesIn, bytesOut: row.bytesOut }];
    }),
  );
}

/** Ends the sessions whose process gives no sign of life, or which no process has claimed; deletes their stored output. */
export async function endSilentSessions(database: Database): Promise<void> {
  await database.query`
    UPDATE console_sessions SET ended = seen,
      end_reason = CASE WHEN detached_at IS NULL THEN 'lost'::console_end ELSE 'detached'::console_end END
    WHERE ended IS NULL AND seen < now() - make_interval(secs => ${SILENT_SECONDS}::int)`;
  await database.query`DELETE FROM console_handovers WHERE created < now() - make_interval(secs => ${SILENT_SECONDS}::int)`;
}
