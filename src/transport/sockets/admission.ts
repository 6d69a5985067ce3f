import type { IncomingMessage } from 'node:http';
import { type DocumentNode, Kind, type OperationDefinitionNode } from 'graphql';
import { GRAPHQL_TRANSPORT_WS_PROTOCOL } from 'graphql-ws';
import { type AdmissionDependencies, admit } from '../../access/admission.ts';
import { readBearer, readSessionCookie } from '../../access/credential.ts';
import { addRateLimitHeaders, RateLimitFault } from '../../access/ratelimits.ts';
import { openProject, type ProjectScope } from '../../access/scope.ts';
import type { Viewer } from '../../access/viewer.ts';
import type { Services } from '../../graph/context.ts';
import { listSelections } from '../../graph/parsedoperation.ts';
import { socketPaths } from '../../graph/socketpaths.ts';
import { Fault } from '../../kernel/fault.ts';
import { parseUuid } from '../../kernel/uuid.ts';
import { toFault } from '../../platform/errors.ts';
import { logCause } from '../../platform/faultlog.ts';
import type { Logger } from '../../platform/logger.ts';
import { type RedeemedTicket, redeemTicket } from '../../tickets/service.ts';
import type { ClientAddresses } from '../http/addresses.ts';
import { isBelowV1, pathPattern } from '../http/url.ts';
import type { BoundPlainFeed } from '../rest/plainfeed.ts';
import { closeCodes, Rejection } from './close.ts';
import type { SocketAccess } from './connection.ts';
import { checkHandshake } from './socket.ts';

export interface UpgradeDependencies extends AdmissionDependencies {
  readonly addresses: ClientAddresses;
  readonly services: Services;
  readonly log: Logger;
  readonly isAllowedOrigin: (origin: string, request: IncomingMessage) => boolean;
}

/** A request for an upgrade. */
export interface UpgradeRequest {
  readonly request: IncomingMessage;
  /** As it was sent: nothing in it is resolved or decoded. */
  readonly path: string;
  readonly query: URLSearchParams;
  /** The headers of its response beside those of every response: name, value, name, value. */
  readonly headers: string[];
  /** The user, as soon as it is known, for the log. */
  userId: string | null;
}

/** The target of an upgrade: GraphQL, a plain feed of one project, or a console. */
export interface UpgradeTarget {
  readonly kind: 'graphql' | 'feed' | 'console';
  readonly feed: BoundPlainFeed | null;
  /** The ids in its path, by the names of the parameters. */
  readonly ids: Readonly<Record<string, string>>;
}

export interface SocketAdmission extends SocketAccess {
  /** Null for GraphQL, where each operation opens its projects. */
  readonly scope: ProjectScope | null;
  /** Set by a ticket, with the console session that it names, if any; null without a ticket. */
  readonly ticket: { readonly sessionId: string | null } | null;
}

const consolePattern = pathPattern(socketPaths.console);

/** Finds the target of a path; null for a path without sockets. */
export function findTarget(bound: ReadonlyArray<{ feed: BoundPlainFeed; pattern: RegExp }>, path: string): UpgradeTarget | null {
  if (path === '/graphql') return { kind: 'graphql', feed: null, ids: {} };
  for (const { feed, pattern } of bound) {
    const ids = matchPath(pattern, path);
    if (ids) return { kind: 'feed', feed, ids };
  }
  const ids = matchPath(consolePattern, path);
  return ids && { kind: 'console', feed: null, ids };
}

/** The ids in a path; null if the path does not match the pattern. A malformed id stays as it is: it is that of no object. */
function matchPath(pattern: RegExp, path: string): Record<string, string> | null {
  const match = pattern.exec(path);
  if (!match) return null;
  return Object.fromEntries(Object.entries(match.groups ?? {}).map(([name, text]) => [name, readId(text)]));
}

function readId(text: string): string {
  try {
    return parseUuid(decodeURIComponent(text)) ?? text;
  } catch {
    return text;
  }
}

/**
 * Admits an upgrade: finds its viewer and the project that its socket may access. Each attempt is charged to a budget. Clients
 * can read the response to an upgrade, so a Fault is thrown; browsers cannot, so an upgrade with a ticket gets a Rejection. Throws
 * `invalid_request` for a malformed handshake, which leaves its ticket valid: a client may try again, as with another version of the
 * protocol (RFC 6455, §4.2.2).
 */
export async function admitUpgrade(
  dependencies: UpgradeDependencies,
  upgrade: UpgradeRequest,
  target: UpgradeTarget,
): Promise<SocketAdmission | Rejection> {
  const { request, query } = upgrade;
  const { origin } = request.headers;
  if (origin !== undefined && !dependencies.isAllowedOrigin(origin, request)) {
    await chargeAddress(dependencies, upgrade);
    throw Fault.permissionDenied('The origin is not allowed.');
  }
  const tickets = query.getAll('ticket');
  if (tickets.length > 0) {
    await checkTicketHandshake(dependencies, upgrade);
    return admitTicket(dependencies, upgrade, tickets, target);
  }
  const viewer = await admitCredential(dependencies, upgrade);
  const { organization_id: organizationId, project_id: projectId } = target.ids;
  if (!organizationId || !projectId) return { viewer, onlyProject: null, scope: null, ticket: null };
  if (!viewer && (target.kind === 'console' || !offersGraphql(request))) throw Fault.notAuthenticated();
  checkHandshake(request);
  const scope = viewer && (await openProject(dependencies.database, viewer, { organizationId, projectId }));
  return { viewer, onlyProject: { organizationId, projectId }, scope, ticket: null };
}

/** Charges an attempt to the client's address, not to the user whose cookie or ticket it has. */
async function chargeAddress({ rateLimits, addresses }: UpgradeDependencies, { request, headers }: UpgradeRequest): Promise<void> {
  addRateLimitHeaders(headers, await rateLimits.spendAnonymous(addresses.of(request)));
}

/** Throws `invalid_request` for a malformed handshake with a ticket, which is not looked up, so that its user is not known. */
async function checkTicketHandshake(dependencies: UpgradeDependencies, upgrade: UpgradeRequest): Promise<void> {
  try {
    checkHandshake(upgrade.request);
  } catch (failure) {
    await chargeAddress(dependencies, upgrade);
    throw failure;
  }
}

/** Throws `not_found` for a path without sockets; below /v1 only after the credential was checked, as for any request there. */
export async function refusePath(dependencies: UpgradeDependencies, upgrade: UpgradeRequest): Promise<never> {
  const viewer = await admitCredential(dependencies, upgrade);
  if (!viewer && isBelowV1(upgrade.path)) throw Fault.notAuthenticated();
  throw Fault.notFound();
}

async function admitTicket(
  dependencies: UpgradeDependencies,
  upgrade: UpgradeRequest,
  tickets: readonly string[],
  target: UpgradeTarget,
): Promise<SocketAdmission | Rejection> {
  const { rateLimits, database, services } = dependencies;
  const { headers } = upgrade;
  try {
    const [ticket = ''] = tickets;
    const charge = async (userId: string) => {
      upgrade.userId = userId;
      addRateLimitHeaders(headers, await rateLimits.spendUser(userId));
    };
    const { userDatabases } = services;
    const redeemed = tickets.length === 1 ? await redeemTicket({ database, userDatabases }, ticket, charge) : 'ticket_unknown';
    if (typeof redeemed === 'string') {
      if (!upgrade.userId) await chargeAddress(dependencies, upgrade);
      const code = redeemed === 'ticket_expired' ? closeCodes.forbidden : closeCodes.unauthorized;
      return new Rejection(code, redeemed);
    }
    const { viewer, organizationId, projectId, sessionId } = redeemed;
    if (!isTargetOf(redeemed, target)) return new Rejection(closeCodes.forbidden, 'ticket_target_mismatch');
    const scope = await openProject(database, viewer, { organizationId, projectId });
    return { viewer, onlyProject: { organizationId, projectId }, scope, ticket: { sessionId } };
  } catch (failure) {
    const fault = toFault(failure);
    if (fault instanceof RateLimitFault) addRateLimitHeaders(headers, fault.allowance);
    if (fault.code === 'not_found') return new Rejection(closeCodes.forbidden, 'access_lost');
    logCause(fault, dependencies);
    return new Rejection(closeCodes.tryAgainLater, fault.code);
  }
}

/** Whether a ticket is valid for the target. */
function isTargetOf({ target, organizationId, projectId, instanceId }: RedeemedTicket, { kind, ids }: UpgradeTarget): boolean {
  const isProject = ids.organization_id === organizationId && ids.project_id === projectId;
  return isProject && (target === 'console' ? kind === 'console' && ids.instance_id === instanceId : kind === 'feed');
}

/** The viewer by the header or the cookie; null without either. */
async function admitCredential(dependencies: UpgradeDependencies, upgrade: UpgradeRequest): Promise<Viewer | null> {
  const { request, headers } = upgrade;
  const { origin } = request.headers;
  // The cookie counts only with an allowed Origin: a client without one is not a browser, and has no cookie; a page of another origin
  // could spend the budget of whoever looks at it.
  const takesCookie = origin !== undefined && dependencies.isAllowedOrigin(origin, request);
  const { viewer, fault, allowance } = await admit(dependencies, {
    readCredential: () => readBearer(request) ?? (takesCookie ? readSessionCookie(request) : null),
    readAddress: () => dependencies.addresses.of(request),
    recordViewer: ({ userId }) => {
      upgrade.userId = userId;
    },
  });
  addRateLimitHeaders(headers, allowance);
  if (fault) throw fault;
  return viewer;
}

function offersGraphql(request: IncomingMessage): boolean {
  const offered = request.headers['sec-websocket-protocol'] ?? '';
  return offered.split(',').some((name) => name.trim() === GRAPHQL_TRANSPORT_WS_PROTOCOL);
}

const projectSocketFields = new Set(['notificationFeed', 'renewCredential', '__typename']);

/** A socket of one project carries its subscription and the renewal of the credential. Throws `permission_denied` otherwise. */
export function checkProjectSocketOperation(document: DocumentNode, { selectionSet }: OperationDefinitionNode): void {
  const selections = listSelections([selectionSet], document);
  const fields = selections.filter((selection) => selection.kind === Kind.FIELD);
  if (!fields.every(({ name }) => projectSocketFields.has(name.value)))
    throw Fault.permissionDenied('A socket of one project carries its feed and renewCredential only.');
}
