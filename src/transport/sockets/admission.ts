import type { IncomingMessage } from 'node:http';
import { type AdmissionParts, admit } from '../../access/admission.ts';
import { readBearer, readSessionCookie } from '../../access/credential.ts';
import { openProject, type ProjectScope } from '../../access/scope.ts';
import type { Viewer } from '../../access/viewer.ts';
import { Fault } from '../../kernel/fault.ts';
import { parseUuid } from '../../kernel/uuid.ts';
import { logMistake, toFault } from '../../platform/errors.ts';
import type { Logger } from '../../platform/logger.ts';
import { type Redemption, redeemTicket } from '../../tickets/service.ts';
import type { ClientAddresses } from '../http/peer.ts';
import { pathPattern } from '../http/url.ts';
import type { BoundStream } from '../rest/stream.ts';
import { consolePath } from '../rest/streams.ts';
import { closeCodes, Rejection } from './close.ts';
import type { Grant } from './connection.ts';

export const GRAPHQL_PROTOCOL = 'graphql-transport-ws';

export interface UpgradeParts extends AdmissionParts {
  readonly addresses: ClientAddresses;
  readonly log: Logger;
  readonly isAllowedOrigin: (origin: string, request: IncomingMessage) => boolean;
}

/** The target of an upgrade: GraphQL, a stream of the v1 table for one project, or a console. */
export interface Target {
  readonly kind: 'graphql' | 'stream' | 'console';
  readonly stream: BoundStream | null;
  readonly path: Readonly<Record<string, string>>;
}

export interface SocketAdmission extends Grant {
  /** Null for GraphQL, which opens projects by operation. */
  readonly scope: ProjectScope | null;
  /** The console session that a ticket names; null without a ticket. */
  readonly ticket: { readonly sessionId: string | null } | null;
}

const consolePattern = pathPattern(consolePath);

/** Throws `not_found` where no socket is served. */
export function findTarget(bound: ReadonlyArray<{ stream: BoundStream; pattern: RegExp }>, pathname: string): Target {
  if (pathname === '/graphql') return { kind: 'graphql', stream: null, path: {} };
  for (const { stream, pattern } of bound) {
    const path = matchPath(pattern, pathname);
    if (path) return { kind: 'stream', stream, path };
  }
  const path = matchPath(consolePattern, pathname);
  if (path) return { kind: 'console', stream: null, path };
  throw Fault.notFound();
}

/** The ids in a path, or null for another path, and for one with an id that is malformed. */
function matchPath(pattern: RegExp, pathname: string): Record<string, string> | null {
  const match = pattern.exec(pathname);
  if (!match) return null;
  const ids = Object.entries(match.groups ?? {}).map(([name, text]) => [name, parseUuid(text)] as const);
  return ids.every(([, id]) => id !== null) ? (Object.fromEntries(ids) as Record<string, string>) : null;
}

/**
 * The viewer of an upgrade, and how far its socket reaches; each attempt is charged to a budget. Clients can read the
 * answer to an upgrade, so a fault is thrown; browsers cannot, so an upgrade with a ticket gets a Rejection instead.
 */
export async function admitUpgrade(
  parts: UpgradeParts,
  request: IncomingMessage,
  url: URL,
  target: Target,
): Promise<SocketAdmission | Rejection> {
  const { origin } = request.headers;
  if (origin !== undefined && !parts.isAllowedOrigin(origin, request)) throw Fault.permissionDenied('The origin is not allowed.');
  const tickets = url.searchParams.getAll('ticket');
  if (tickets.length > 0) return admitTicket(parts, request, tickets, target);
  const viewer = await admitCredential(parts, request);
  const { organization_id: organizationId, project_id: projectId } = target.path;
  if (!organizationId || !projectId) return { viewer, onlyProject: null, scope: null, ticket: null };
  if (!viewer && (target.kind === 'console' || !offersGraphql(request))) throw Fault.notAuthenticated();
  const scope = viewer && (await openProject(parts.database, viewer, { organizationId, projectId }));
  return { viewer, onlyProject: { organizationId, projectId }, scope, ticket: null };
}

async function admitTicket(
  parts: UpgradeParts,
  request: IncomingMessage,
  tickets: readonly string[],
  target: Target,
): Promise<SocketAdmission | Rejection> {
  const { limits, database, addresses } = parts;
  try {
    const [ticket = ''] = tickets;
    const redeemed = tickets.length === 1 ? await redeemTicket(database, ticket) : 'ticket_unknown';
    if (typeof redeemed === 'string') {
      await limits.spendAnonymous(addresses.of(request));
      const code = redeemed === 'ticket_expired' ? closeCodes.comeBackWithFreshCredential : closeCodes.unauthorized;
      return new Rejection(code, redeemed);
    }
    const { viewer, organizationId, projectId, sessionId } = redeemed;
    await limits.spendUser(viewer.userId);
    if (!isTargetOf(redeemed, target)) return new Rejection(closeCodes.comeBackWithFreshCredential, 'ticket_target_mismatch');
    const scope = await openProject(database, viewer, { organizationId, projectId });
    return { viewer, onlyProject: { organizationId, projectId }, scope, ticket: { sessionId } };
  } catch (failure) {
    const fault = toFault(failure);
    if (fault.code === 'not_found') return new Rejection(closeCodes.comeBackWithFreshCredential, 'access_lost');
    logMistake(fault, parts);
    return new Rejection(closeCodes.tryAgainLater, fault.code);
  }
}

/** Whether a ticket is for the target. */
function isTargetOf({ target, organizationId, projectId, instanceId }: Redemption, { kind, path }: Target): boolean {
  const isProject = path.organization_id === organizationId && path.project_id === projectId;
  return isProject && (target === 'console' ? kind === 'console' && path.instance_id === instanceId : kind === 'stream');
}

/** The viewer of the header or the cookie; null without either. */
async function admitCredential(parts: UpgradeParts, request: IncomingMessage): Promise<Viewer | null> {
  const { viewer, fault } = await admit(parts, {
    // An Origin has been checked before; a cookie without one comes from no browser, and does not count.
    readCredential: () => readBearer(request) ?? (request.headers.origin === undefined ? null : readSessionCookie(request)),
    readAddress: () => parts.addresses.of(request),
  });
  if (fault) throw fault;
  return viewer;
}

function offersGraphql(request: IncomingMessage): boolean {
  const offered = request.headers['sec-websocket-protocol'] ?? '';
  return offered.split(',').some((name) => name.trim() === GRAPHQL_PROTOCOL);
}
