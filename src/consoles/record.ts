import { Prisma } from '../generated/prisma/client.ts';
import type { ConsoleEnd, ConsoleKind, InstanceStatus } from '../generated/prisma/enums.ts';
import type { Database } from '../platform/database.ts';
import type { Endpoint } from './endpoint.ts';

/** After how many seconds without a sign of life a running session counts as given up by its process. */
export const SILENT_SECONDS = 60;
/** Sessions of a process that has not been heard of for so long take no place among those that a user may have. */
const COUNTED_SECONDS = 20;

/** An instance as its console needs it. */
export interface ConsoleInstance {
  readonly name: string;
  readonly status: InstanceStatus;
  /** Null: it has no console. */
  readonly endpoint: Endpoint | null;
}

/** The endpoint's columns under the names of the interface. */
const endpointColumns = Prisma.sql`endpoint.kind::text, endpoint.host, endpoint.port, endpoint.socket_path AS "socketPath"`;

type EndpointRow = { readonly [Name in keyof Endpoint]: Endpoint[Name] | null };

function endpointOf({ kind, host, port, socketPath }: EndpointRow): Endpoint | null {
  return kind && { kind, host, port, socketPath };
}

/** Null where the project has no such instance, or it is deleted. */
export async function findInstance(database: Database, projectId: string, instanceId: string): Promise<ConsoleInstance | null> {
  const [row] = await database.query<EndpointRow & { name: string; status: InstanceStatus }>`
    SELECT instance.name, instance.status::text, ${endpointColumns}
    FROM instances AS instance LEFT JOIN console_endpoints AS endpoint ON endpoint.instance_id = instance.id
    WHERE instance.id = ${instanceId}::uuid AND instance.project_id = ${projectId}::uuid AND instance.status <> 'deleted'`;
  return row ? { name: row.name, status: row.status, endpoint: endpointOf(row) } : null;
}

export interface NewSession {
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

/** Until the transaction is over, no other enters anything of the same. In this order everywhere: the user first, then the instance. */
function lockConsolesOf(transaction: Prisma.TransactionClient, whose: 'user' | 'instance', id: string): Promise<unknown> {
  return transaction.$queryRaw`SELECT pg_advisory_xact_lock(hashtextextended(${`console of ${whose} ${id}`}, 0))::text`;
}

/**
 * Enters a session that begins, unless its user has so many already: then it is null. A serial console is one wire: who
 * begins takes it over, and the sessions that end by that are returned.
 */
export function insertSession(database: Database, session: NewSession, most: number): Promise<string[] | null> {
  const { id, projectId, instanceId, instanceName, userId, userEmail, kind, clientAddress, owner } = session;
  return database.$transaction(async (transaction) => {
    await lockConsolesOf(transaction, 'user', userId);
    await lockConsolesOf(transaction, 'instance', instanceId);
    const wire = Prisma.sql`(instance_id = ${instanceId}::uuid AND kind = 'serial' AND ${kind} = 'serial')`;
    const [{ count } = { count: 0 }] = await transaction.$queryRaw<Array<{ count: number }>>`
      SELECT count(*)::int AS count FROM console_sessions
      WHERE user_id = ${userId}::uuid AND ended IS NULL AND detached_at IS NULL
        AND seen > now() - make_interval(secs => ${COUNTED_SECONDS}::int) AND NOT ${wire}`;
    if (count >= most) return null;
    const over = await transaction.$queryRaw<Array<{ id: string }>>`
      UPDATE console_sessions SET ended = now(), end_reason = 'taken_over' WHERE ended IS NULL AND ${wire} RETURNING id`;
    await transaction.$executeRaw`
      INSERT INTO console_sessions (id, project_id, instance_id, instance_name, user_id, user_email, kind, client_addresses, owner)
      VALUES (${id}::uuid, ${projectId}::uuid, ${instanceId}::uuid, ${instanceName}, ${userId}::uuid, ${userEmail}, ${kind}::console_kind,
        ARRAY[${clientAddress}], ${owner}::uuid)`;
    return over.map((row) => row.id);
  });
}

/**
 * Makes a running session of the user this process's own, and returns whose it was: who hears of it at the next look.
 * Null where there is none.
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
  return database.$transaction(async (transaction) => {
    await lockConsolesOf(transaction, 'user', userId);
    const [{ count } = { count: 0 }] = await transaction.$queryRaw<Array<{ count: number }>>`
      SELECT count(*)::int AS count FROM console_sessions
      WHERE user_id = ${userId}::uuid AND ended IS NULL AND detached_at IS NULL AND id <> ${id}::uuid
        AND seen > now() - make_interval(secs => ${COUNTED_SECONDS}::int)`;
    if (count >= most) return 'too_many_consoles';
    const entered = await transaction.$executeRaw`
      UPDATE console_sessions SET detached_at = NULL, seen = now(),
        client_addresses = array_remove(client_addresses, ${clientAddress}) || ${clientAddress}::text
      WHERE id = ${id}::uuid AND ended IS NULL`;
    return entered > 0 ? 'entered' : 'session_gone';
  });
}

/** What a session has counted. */
export interface Tally {
  readonly id: string;
  readonly bytesIn: number;
  readonly bytesOut: number;
}

/** Says that the process is alive, and what its sessions have counted. */
export async function saveSessions(
  database: Database,
  owner: string,
  tallies: ReadonlyArray<Tally & { readonly isDetached: boolean }>,
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
export async function saveEnd(database: Database, { id, bytesIn, bytesOut }: Tally, reason: ConsoleEnd, ended: Date): Promise<void> {
  await database.query`
    UPDATE console_sessions SET ended = coalesce(ended, ${ended}), end_reason = coalesce(end_reason, ${reason}::console_end),
      bytes_in = ${bytesIn}, bytes_out = ${bytesOut}
    WHERE id = ${id}::uuid`;
}

/** What is put down with a session. */
export interface Handover {
  /** Where the scrollback ends. */
  readonly position: number;
  readonly scrollback: Uint8Array;
}

/** Puts a session down, for whoever has claimed it or will. */
export async function putHandover(
  database: Database,
  owner: string,
  { id, bytesIn, bytesOut }: Tally,
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

/** Takes what the former owner has put down; null as long as that is nothing. */
export async function takeHandover(database: Database, id: string, formerOwner: string): Promise<Handover | null> {
  const [row] = await database.query<{ position: number; scrollback: Uint8Array }>`
    DELETE FROM console_handovers WHERE session_id = ${id}::uuid AND owner = ${formerOwner}::uuid RETURNING position, scrollback`;
  return row ? { position: row.position, scrollback: row.scrollback } : null;
}

/** How a session stands, and all that it depends on. */
export interface Standing {
  readonly id: string;
  readonly owner: string | null;
  readonly end: ConsoleEnd | null;
  /** Null: the instance is not in the session's project any more. */
  readonly status: InstanceStatus | null;
  readonly endpoint: Endpoint | null;
  readonly bytesIn: number;
  readonly bytesOut: number;
}

/** How the sessions stand, in one statement. One that is not among them has gone with its project. */
export async function readStandings(database: Database, ids: readonly string[]): Promise<Map<string, Standing>> {
  type Row = EndpointRow & Omit<Standing, 'endpoint'>;
  const rows = await database.query<Row>`
    SELECT session.id, session.owner, session.end_reason::text AS end, instance.status::text, ${endpointColumns},
      session.bytes_in AS "bytesIn", session.bytes_out AS "bytesOut"
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

/** Ends the sessions whose process has fallen silent, or which nobody has picked up; forgets what was put down with them. */
export async function endSilentSessions(database: Database): Promise<void> {
  await database.query`
    UPDATE console_sessions SET ended = seen,
      end_reason = CASE WHEN detached_at IS NULL THEN 'lost'::console_end ELSE 'detached'::console_end END
    WHERE ended IS NULL AND seen < now() - make_interval(secs => ${SILENT_SECONDS}::int)`;
  await database.query`DELETE FROM console_handovers WHERE created < now() - make_interval(secs => ${SILENT_SECONDS}::int)`;
}
