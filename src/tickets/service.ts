import { randomBytes } from 'node:crypto';
import { hashSecret } from '../access/apikey.ts';
import { type ProjectScope, requireRole } from '../access/scope.ts';
import { requireSession } from '../access/viewer.ts';
import type { TicketTarget } from '../generated/prisma/enums.ts';
import { Fault } from '../kernel/fault.ts';

/** How long a ticket may be redeemed (§3.1). */
const TICKET_SECONDS = 30;

export interface TicketRequest {
  readonly target: TicketTarget;
  readonly instanceId?: string | null;
  readonly sessionId?: string | null;
}

/** The ticket's text is in the answer and nowhere else: the database has its hash. */
export interface WebsocketTicket {
  readonly ticket: string;
  readonly path: string;
  readonly expiresIn: number;
}

/** Throws a field error for a console without an instance: that needs no look at the database. */
export function checkTicketRequest({ target, instanceId }: TicketRequest): void {
  if (target === 'console' && !instanceId) throw Fault.invalidFields({ instanceId: ['This field is required for a console.'] });
}

/**
 * A single-use ticket for one WebSocket of the project (§4.1). The instance of a console must be one of this project
 * (`not_found`), and the role `member` (`permission_denied`). Throws `session_required` for an API key (§5.5).
 */
export async function createTicket(scope: ProjectScope, request: TicketRequest): Promise<WebsocketTicket> {
  const { database, organizationId, projectId } = scope;
  const instanceId = request.target === 'console' ? await findConsoleInstance(scope, request) : null;
  const session = requireSession(scope.viewer);
  requireRole(scope, request.target === 'console' ? 'member' : 'viewer');
  const ticket = randomBytes(32).toString('base64url');
  const created = new Date();
  await database.websocketTicket.create({
    data: {
      ticketHash: hashSecret(ticket),
      target: request.target,
      projectId,
      userId: session.userId,
      instanceId,
      sessionId: instanceId && (request.sessionId ?? null),
      created,
      expires: new Date(created.getTime() + TICKET_SECONDS * 1000),
      sessionExpires: session.credential.expires,
    },
    select: { target: true },
  });
  const project = `/v1/organizations/${organizationId}/projects/${projectId}`;
  const path = instanceId ? `${project}/compute/instances/${instanceId}/console/ws` : `${project}/notifications/ws`;
  return { ticket, path, expiresIn: TICKET_SECONDS };
}

async function findConsoleInstance({ database, projectId }: ProjectScope, { instanceId }: TicketRequest): Promise<string> {
  const instance = instanceId && (await database.instance.findFirst({ where: { id: instanceId, projectId }, select: { id: true } }));
  if (!instance) throw Fault.notFound();
  return instance.id;
}
