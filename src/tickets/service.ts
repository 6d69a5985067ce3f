import { randomBytes } from 'node:crypto';
import { hashSecret, toHex } from '../access/apikey.ts';
import { type ProjectScope, requireRole } from '../access/scope.ts';
import { requireSession, type Viewer } from '../access/viewer.ts';
import type { TicketTarget } from '../generated/prisma/enums.ts';
import { fillPath, socketPaths } from '../graph/socketpaths.ts';
import { Fault } from '../kernel/fault.ts';
import { pickRows } from '../kernel/rows.ts';
import { createSharedLoader } from '../kernel/sharedloader.ts';
import { deleteInBatches } from '../platform/cleanup.ts';
import type { Database, SqlClient } from '../platform/database.ts';
import type { UserDatabases } from '../platform/userdatabases.ts';

/** How long a ticket may be redeemed at most (§3.1), by PostgreSQL's clock: another replica may redeem it, whose own differs. */
const TICKET_SECONDS = 30;

interface TicketRequest {
  readonly target: TicketTarget;
  /** For a console, the schema requires it. */
  readonly instanceId?: string | null;
  readonly sessionId?: string | null;
}

/** The ticket's text is in the response and nowhere else: the database has its hash. */
interface WebsocketTicket {
  readonly ticket: string;
  readonly path: string;
  readonly expiresIn: number;
}

/**
 * A single-use ticket for one WebSocket of the project (§4.1). The instance of a console must be one of this project
 * (`not_found`), and the role `member` (`permission_denied`). Throws `session_required` for an API key (§5.5).
 */
export async function createTicket(scope: ProjectScope<SqlClient>, request: TicketRequest): Promise<WebsocketTicket> {
  const { database, organizationId, projectId } = scope;
  const instanceId = request.target === 'console' ? await findConsoleInstance(scope, request) : null;
  const session = requireSession(scope.viewer);
  requireRole(scope, request.target === 'console' ? 'member' : 'viewer');
  const ticket = randomBytes(32).toString('base64url');
  const [row] = await database.query<{ expiresIn: number | null }>`
    INSERT INTO websocket_tickets (ticket_hash, target, project_id, user_id, instance_id, session_id, created, expires, session_expires)
    VALUES (${hashSecret(ticket)}, ${request.target}::ticket_target, ${projectId}::uuid, ${session.userId}::uuid, ${instanceId}::uuid,
      ${instanceId && (request.sessionId ?? null)}::uuid, now(), now() + make_interval(secs => ${TICKET_SECONDS}::int),
      ${session.credential.expires})
    RETURNING greatest(0, floor(extract(epoch FROM least(expires, session_expires) - created)))::int AS "expiresIn"`;
  const ids = { organization_id: organizationId, project_id: projectId };
  const path = instanceId ? fillPath(socketPaths.console, { ...ids, instance_id: instanceId }) : fillPath(socketPaths.notifications, ids);
  return { ticket, path, expiresIn: row?.expiresIn ?? 0 };
}

/** A redeemed ticket. */
export interface RedeemedTicket {
  readonly target: TicketTarget;
  readonly organizationId: string;
  readonly projectId: string;
  readonly instanceId: string | null;
  readonly sessionId: string | null;
  /** The user who created the ticket, as they are at redemption, with the expiry of the session that created it. */
  readonly viewer: Viewer;
}

type TicketRejection = 'ticket_unknown' | 'ticket_used' | 'ticket_expired';

interface TicketDependencies {
  readonly database: Database;
  /** The database for the statements of a user. */
  readonly userDatabases: Pick<UserDatabases, 'of'>;
}

/**
 * Redeems a ticket. An attempt uses up the ticket even if it is for another target, but not if its user's budget is spent: `charge`
 * throws then. A ticket of a disabled user is unknown. It is looked up first: anybody can send any number of tickets, and those that
 * are not valid share few statements.
 */
export async function redeemTicket(
  { database, userDatabases }: TicketDependencies,
  ticket: string,
  charge: (userId: string) => Promise<void>,
): Promise<RedeemedTicket | TicketRejection> {
  const ticketHash = hashSecret(ticket);
  const known = await findTicket(database, ticketHash);
  if (!known?.isActive || known.isUsed || known.hasExpired) return rejectionOf(known);
  await charge(known.userId);
  return (await consumeTicket(userDatabases.of(known.userId), ticketHash)) ?? rejectionOf(await findTicket(database, ticketHash));
}

interface TicketRow {
  readonly hash: Uint8Array;
  readonly userId: string;
  readonly hasExpired: boolean | null;
  readonly isUsed: boolean;
  /** Whether its user is not disabled. */
  readonly isActive: boolean;
}

const findTicket = createSharedLoader(async (database: Database, hashes: ReadonlyArray<Uint8Array>) => {
  const rows = await database.query<TicketRow>`
    SELECT ticket.ticket_hash AS hash, ticket.user_id AS "userId", least(ticket.expires, ticket.session_expires) <= now() AS "hasExpired",
      ticket.used_at IS NOT NULL AS "isUsed", users.disabled_at IS NULL AS "isActive"
    FROM websocket_tickets AS ticket JOIN users ON users.id = ticket.user_id WHERE ticket.ticket_hash = ANY (${hashes}::bytea[])`;
  return pickRows(hashes.map(toHex), rows, ({ hash }) => toHex(hash));
});

function rejectionOf(known: TicketRow | null): TicketRejection {
  if (known?.isUsed) return 'ticket_used';
  return known?.isActive ? 'ticket_expired' : 'ticket_unknown';
}

/** Uses up a ticket, by one statement: only one of several attempts succeeds, on whichever replica. Null for all others. */
export async function consumeTicket(database: Database, ticketHash: Uint8Array): Promise<RedeemedTicket | null> {
  const [row] = await database.query<RedeemedRow>`
    UPDATE websocket_tickets AS ticket SET used_at = now()
    FROM users, projects AS project
    WHERE ticket.ticket_hash = ${ticketHash} AND ticket.used_at IS NULL AND least(ticket.expires, ticket.session_expires) > now()
      AND users.id = ticket.user_id AND users.disabled_at IS NULL AND project.id = ticket.project_id
    RETURNING ticket.target, project.organization_id AS "organizationId", ticket.project_id AS "projectId",
      ticket.instance_id AS "instanceId", ticket.session_id AS "sessionId",
      ticket.session_expires AS "sessionExpires", users.id AS "userId", users.email, users.name, users.created`;
  if (!row) return null;
  const { target, organizationId, projectId, instanceId, sessionId, sessionExpires, ...user } = row;
  const viewer: Viewer = { ...user, credential: { kind: 'session', expires: sessionExpires } };
  return { target, organizationId, projectId, instanceId, sessionId, viewer };
}

type RedeemedRow = Omit<RedeemedTicket, 'viewer'> & Omit<Viewer, 'credential'> & { readonly sessionExpires: Date };

/** Deletes tickets that expired an hour ago: until then a used one is reported as used, not as unknown. */
export function deleteOldTickets(database: Database, signal?: AbortSignal): Promise<void> {
  return deleteInBatches(
    (limit) => database.query<{ deleted: number | null }>`
      DELETE FROM websocket_tickets WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM websocket_tickets WHERE expires < now() - interval '1 hour' ORDER BY expires LIMIT ${limit}::int
      )) RETURNING 1 AS deleted`,
    signal,
  );
}

async function findConsoleInstance({ database, projectId }: ProjectScope<SqlClient>, { instanceId }: TicketRequest): Promise<string> {
  const [instance] = await database.query<{ id: string }>`
    SELECT id FROM instances WHERE id = ${instanceId ?? null}::uuid AND project_id = ${projectId}::uuid AND status <> 'deleted'`;
  if (!instance) throw Fault.notFound();
  return instance.id;
}
