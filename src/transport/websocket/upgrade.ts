import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import type { GraphQLSchema } from 'graphql';
import { type Server, type WebSocket, WebSocketServer } from 'ws';
import { readBearer, readSessionCookie } from '../../access/credential.ts';
import type { Limits } from '../../access/limits.ts';
import { openProject, type ProjectScope } from '../../access/scope.ts';
import { identify, type Viewer } from '../../access/viewer.ts';
import { Fault } from '../../kernel/fault.ts';
import { parseUuid } from '../../kernel/uuid.ts';
import type { Log } from '../../platform/log.ts';
import type { Metrics } from '../../platform/metrics.ts';
import { type Redemption, redeemTicket } from '../../tickets/service.ts';
import type { GetEnveloped } from '../graphql/door.ts';
import type { ClientAddresses } from '../peer.ts';
import { pathPattern } from '../query.ts';
import { consolePath, streams } from '../rest/routes.ts';
import { type BoundStream, bindStream } from '../rest/stream.ts';
import { answerRaw } from '../server.ts';
import { readTrace } from '../trace.ts';
import { closeCodes, Refusal } from './close.ts';
import { type Admission, Connection, type ConnectionParts, type LogNames, Peer } from './connection.ts';
import { createConsoleSockets } from './console.ts';
import { createGraphqlSockets } from './graphql.ts';
import { KeepAlive } from './keepalive.ts';
import { servePlain } from './plain.ts';

/** The part of a drain's window in which the balancer is to notice it. */
const DRAIN_START = 0.2;
const GRAPHQL_PROTOCOL = 'graphql-transport-ws';

export interface SocketParts extends Omit<ConnectionParts, 'keepAlive'> {
  readonly schema: GraphQLSchema;
  readonly limits: Limits;
  readonly metrics: Metrics;
  readonly getEnveloped: GetEnveloped;
  readonly addresses: ClientAddresses;
  readonly isAllowedOrigin: (origin: string, request: IncomingMessage) => boolean;
}

export interface SocketDoor {
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void;
  /** Closes every socket with a code that makes its client come back, at moments spread over the window. */
  drain(windowMs: number): Promise<void>;
  count(): number;
}

/** Where an upgrade leads: GraphQL, a stream of the v1 table for one project, or a console. */
interface Target {
  readonly kind: 'graphql' | 'stream' | 'console';
  readonly stream: BoundStream | null;
  readonly path: Readonly<Record<string, string>>;
}

interface SocketAdmission extends Admission {
  /** Null for GraphQL, which opens what is asked for. */
  readonly scope: ProjectScope | null;
  /** What a ticket says beside its target; null without one. */
  readonly ticket: { readonly sessionId: string | null } | null;
}

export function createSocketDoor(given: SocketParts): SocketDoor {
  const parts = { ...given, keepAlive: new KeepAlive<Connection>() };
  const server = new WebSocketServer({
    noServer: true,
    WebSocket: Peer,
    clientTracking: false,
    perMessageDeflate: false,
    maxPayload: 64 * 1024,
    maxFragments: 16,
    maxBufferedChunks: 1024,
    // A plain client may offer any name of its own; GraphQL's is recognized wherever it stands.
    handleProtocols: (protocols) => (protocols.has(GRAPHQL_PROTOCOL) ? GRAPHQL_PROTOCOL : ([...protocols][0] ?? false)),
  });
  const consoles = createConsoleSockets(parts);
  const servers = [server, consoles.server];
  // Without a listener, ws would answer in words and a media type of its own.
  for (const one of servers) one.on('wsClientError', (failure, socket) => answerRaw(socket, Fault.invalidRequest(`${failure.message}.`)));
  const bound = streams.map((stream) => ({ stream: bindStream(parts.schema, stream), pattern: pathPattern(stream.path) }));
  const serveGraphql = createGraphqlSockets(parts);
  let isDraining = false;

  const accept = (by: Server<typeof Peer>, request: IncomingMessage, socket: Duplex, head: Buffer) =>
    new Promise<Peer>((resolve) => by.handleUpgrade(request, socket, head, resolve));
  const prepareConsole = async (request: IncomingMessage, url: URL, { kind, path }: Target, admission: SocketAdmission | Refusal) => {
    if (kind !== 'console' || admission instanceof Refusal || !admission.scope) return null;
    return consoles.prepare(request, url, path.instance_id ?? '', { scope: admission.scope, ticket: admission.ticket });
  };

  async function open(request: IncomingMessage, socket: Duplex, head: Buffer, names: LogNames): Promise<void> {
    const log = parts.log.child(names);
    const url = readUrl(request);
    const target = findTarget(bound, url.pathname);
    if (isDraining) throw Fault.unavailable('the sockets are being drained');
    const admission = await admit(parts, request, url, target);
    const opening = await prepareConsole(request, url, target, admission);
    if (socket.destroyed) return;
    const ws = await accept(target.kind === 'console' ? consoles.server : server, request, socket, head);
    socket.off('error', destroy);
    const isGraphql = ws.protocol === GRAPHQL_PROTOCOL;
    if (admission instanceof Refusal) return refuseOpened(parts, ws, admission, log);
    if (opening instanceof Refusal) return refuseOpened(parts, ws, opening, log);
    const connection = new Connection({ peer: ws, stream: socket, names }, parts, admission);
    const kind = opening ? 'console' : isGraphql ? 'graphql' : 'plain';
    log.info({ user_id: admission.viewer?.userId, kind, session_id: opening?.sessionId }, 'socket opened');
    if (isDraining) return connection.close(closeCodes.restart, 'restart');
    if (opening && !isGraphql) await consoles.serve(connection, opening);
    else if (isGraphql && !opening) serveGraphql(connection);
    else if (target.stream) await servePlain(connection, target.stream, target.path, url.searchParams);
    else connection.close(closeCodes.notAcceptable, 'subprotocol_not_acceptable');
  }

  return {
    upgrade(request, socket, head) {
      const names = { request_id: randomUUID(), ...readTrace(request) };
      socket.on('error', destroy);
      open(request, socket, head, names).catch((failure: unknown) => {
        const fault = Fault.from(failure);
        parts.metrics.upgradeRefusals.inc({ code: fault.code });
        refuse(socket, fault, parts.log.child(names));
      });
    },
    async drain(windowMs) {
      isDraining = true;
      const sockets = [...parts.keepAlive.open].map(({ socket }) => socket);
      // Not in the window's first part: a client that came back at once would be sent here again.
      const startMs = windowMs * DRAIN_START;
      const spreadMs = (windowMs - startMs) / sockets.length;
      await Promise.all(sockets.map((socket, index) => closeWithin(socket, startMs + spreadMs * (index + Math.random()))));
    },
    count: () => parts.keepAlive.open.size,
  };
}

/** What is wrong with a connection that is still on its way; afterwards ws listens for that. */
function destroy(this: Duplex): void {
  this.destroy();
}

/** Tells somebody who cannot read the answer to an upgrade why there is nothing for them. */
function refuseOpened({ metrics }: SocketParts, ws: WebSocket, { code, reason }: Refusal, log: Log): void {
  ws.on('error', () => {});
  metrics.upgradeRefusals.inc({ code: reason });
  log.info({ code, reason }, 'socket refused');
  ws.close(code, reason);
}

/** Waits, says goodbye, and gives the peer a moment to answer. */
async function closeWithin(socket: WebSocket, delayMs: number): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, delayMs));
  if (socket.readyState === socket.CLOSED) return;
  const closed = new Promise((resolve) => socket.once('close', resolve));
  socket.close(closeCodes.restart, 'restart');
  const timer = setTimeout(() => socket.terminate(), 1_000);
  await closed;
  clearTimeout(timer);
}

/** Throws `not_found` for a target that is no URL, such as `//`. */
function readUrl({ url = '/' }: IncomingMessage): URL {
  if (!URL.canParse(url, 'http://localhost')) throw Fault.notFound();
  return new URL(url, 'http://localhost');
}

const consolePattern = pathPattern(consolePath);

/** Throws `not_found` where no socket is served. */
function findTarget(bound: ReadonlyArray<{ stream: BoundStream; pattern: RegExp }>, pathname: string): Target {
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
 * Who may open the socket, and how far it reaches; each try is paid for. Throws what a client sees that reads the
 * answer to its upgrade; a browser cannot, so whoever comes with a ticket gets a Refusal instead.
 */
async function admit(parts: SocketParts, request: IncomingMessage, url: URL, target: Target): Promise<SocketAdmission | Refusal> {
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
  parts: SocketParts,
  request: IncomingMessage,
  tickets: readonly string[],
  target: Target,
): Promise<SocketAdmission | Refusal> {
  const { limits, database, addresses } = parts;
  try {
    const [ticket = ''] = tickets;
    const redeemed = tickets.length === 1 ? await redeemTicket(database, ticket) : 'ticket_unknown';
    if (typeof redeemed === 'string') {
      await limits.spendAnonymous(addresses.of(request));
      const code = redeemed === 'ticket_expired' ? closeCodes.comeBackWithFreshCredential : closeCodes.unauthorized;
      return new Refusal(code, redeemed);
    }
    const { viewer, organizationId, projectId, sessionId } = redeemed;
    await limits.spendUser(viewer.userId);
    if (!isTargetOf(redeemed, target)) return new Refusal(closeCodes.comeBackWithFreshCredential, 'ticket_target_mismatch');
    const scope = await openProject(database, viewer, { organizationId, projectId });
    return { viewer, onlyProject: { organizationId, projectId }, scope, ticket: { sessionId } };
  } catch (failure) {
    const fault = Fault.from(failure);
    if (fault.code === 'not_found') return new Refusal(closeCodes.comeBackWithFreshCredential, 'access_lost');
    if (fault.code === 'internal_error') parts.log.error({ err: fault.cause }, 'internal error');
    return new Refusal(closeCodes.tryAgainLater, fault.code);
  }
}

/** Whether a ticket is for this very socket. */
function isTargetOf({ target, organizationId, projectId, instanceId }: Redemption, { kind, path }: Target): boolean {
  const isPlace = path.organization_id === organizationId && path.project_id === projectId;
  return isPlace && (target === 'console' ? kind === 'console' && path.instance_id === instanceId : kind === 'stream');
}

/** The viewer of the header or the cookie; null without either. */
async function admitCredential({ database, tokens, limits, addresses }: SocketParts, request: IncomingMessage): Promise<Viewer | null> {
  // Where an Origin is sent it has been found good; a cookie without one comes from no browser, and does not count.
  const credential = () => readBearer(request) ?? (request.headers.origin === undefined ? null : readSessionCookie(request));
  try {
    const given = credential();
    const viewer = given === null ? null : await identify(database, tokens, given);
    await (viewer ? limits.spendUser(viewer.userId) : limits.spendAnonymous(addresses.of(request)));
    return viewer;
  } catch (failure) {
    if (failure instanceof Fault && failure.code === 'not_authenticated') await limits.spendAnonymous(addresses.of(request));
    throw failure;
  }
}

function offersGraphql(request: IncomingMessage): boolean {
  const offered = request.headers['sec-websocket-protocol'] ?? '';
  return offered.split(',').some((name) => name.trim() === GRAPHQL_PROTOCOL);
}

/** The answer to an upgrade that is not granted: an HTTP response, as v1 words it. */
function refuse(socket: Duplex, fault: Fault, log: Log): void {
  if (fault.code === 'internal_error') log.error({ err: fault.cause }, 'internal error');
  log.info({ code: fault.code }, 'upgrade refused');
  answerRaw(socket, fault);
}
