import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import type { GraphQLSchema } from 'graphql';
import { type WebSocket, WebSocketServer } from 'ws';
import { readBearer, readSessionCookie } from '../../access/credential.ts';
import type { Limits } from '../../access/limits.ts';
import { openProject } from '../../access/scope.ts';
import { identify, type Viewer } from '../../access/viewer.ts';
import { Fault } from '../../kernel/fault.ts';
import { parseUuid } from '../../kernel/uuid.ts';
import type { Log } from '../../platform/log.ts';
import type { Metrics } from '../../platform/metrics.ts';
import { redeemTicket } from '../../tickets/service.ts';
import type { GetEnveloped } from '../graphql/door.ts';
import type { ClientAddresses } from '../peer.ts';
import { streams } from '../rest/routes.ts';
import { type BoundStream, bindStream } from '../rest/stream.ts';
import { answerRaw } from '../server.ts';
import { readTrace } from '../trace.ts';
import { type CloseCode, closeCodes } from './close.ts';
import { type Admission, Connection, type ConnectionParts } from './connection.ts';
import { createGraphqlSockets } from './graphql.ts';
import { servePlain } from './plain.ts';

/** The part of a drain's window in which the balancer is to notice it. */
const DRAIN_START = 0.2;
const GRAPHQL_PROTOCOL = 'graphql-transport-ws';

export interface SocketParts extends ConnectionParts {
  readonly schema: GraphQLSchema;
  readonly limits: Limits;
  readonly log: Log;
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

/** Where an upgrade leads: GraphQL, or a stream of the v1 table for one project. */
interface Target {
  readonly stream: BoundStream | null;
  readonly path: Readonly<Record<string, string>>;
}

/** A refusal that the client can read: the socket is opened for it, and closed at once. */
class Refusal {
  readonly code: CloseCode;
  readonly reason: string;

  constructor(code: CloseCode, reason: string) {
    this.code = code;
    this.reason = reason;
  }
}

export function createSocketDoor(parts: SocketParts): SocketDoor {
  const server = new WebSocketServer({
    noServer: true,
    clientTracking: true,
    perMessageDeflate: false,
    maxPayload: 64 * 1024,
    maxFragments: 16,
    maxBufferedChunks: 1024,
    // A plain client may offer any name of its own; GraphQL's is recognized wherever it stands.
    handleProtocols: (protocols) => (protocols.has(GRAPHQL_PROTOCOL) ? GRAPHQL_PROTOCOL : ([...protocols][0] ?? false)),
  });
  // Without a listener, ws would answer in words and a media type of its own.
  server.on('wsClientError', (failure, socket) => answerRaw(socket, Fault.invalidRequest(`${failure.message}.`)));
  const bound = streams.map((stream) => bindStream(parts.schema, stream));
  const serveGraphql = createGraphqlSockets(parts);
  let isDraining = false;

  const accept = (request: IncomingMessage, socket: Duplex, head: Buffer) =>
    new Promise<WebSocket>((resolve) => server.handleUpgrade(request, socket, head, resolve));

  async function open(request: IncomingMessage, socket: Duplex, head: Buffer, log: Log): Promise<void> {
    const url = readUrl(request);
    const target = findTarget(bound, url.pathname);
    if (isDraining) throw Fault.unavailable('the sockets are being drained');
    const admission = await admit(parts, request, url, target);
    if (socket.destroyed) return;
    const ws = await accept(request, socket, head);
    if (admission instanceof Refusal) {
      ws.on('error', () => {});
      parts.metrics.upgradeRefusals.inc({ code: admission.reason });
      log.info({ code: admission.code, reason: admission.reason }, 'socket refused');
      return ws.close(admission.code, admission.reason);
    }
    const connection = new Connection(ws, parts, log, admission);
    log.info({ user_id: admission.viewer?.userId, kind: ws.protocol === GRAPHQL_PROTOCOL ? 'graphql' : 'plain' }, 'socket opened');
    ws.once('close', (code) => {
      parts.metrics.socketCloses.inc({ code: knownCodes.has(code) ? code : 'other' });
      log.info({ code, user_id: connection.viewer?.userId }, 'socket closed');
    });
    if (isDraining) return connection.close(closeCodes.restart, 'restart');
    if (ws.protocol === GRAPHQL_PROTOCOL) serveGraphql(connection);
    else if (target.stream) await servePlain(connection, target.stream, target.path, url.searchParams);
    else connection.close(closeCodes.notAcceptable, 'subprotocol_not_acceptable');
  }

  return {
    upgrade(request, socket, head) {
      const log = parts.log.child({ request_id: randomUUID(), ...readTrace(request) });
      socket.on('error', () => socket.destroy());
      open(request, socket, head, log).catch((failure: unknown) => {
        const fault = Fault.from(failure);
        parts.metrics.upgradeRefusals.inc({ code: fault.code });
        refuse(socket, fault, log);
      });
    },
    async drain(windowMs) {
      isDraining = true;
      const sockets = [...server.clients];
      // Not in the window's first part: a client that came back at once would be sent here again.
      const startMs = windowMs * DRAIN_START;
      const spreadMs = (windowMs - startMs) / sockets.length;
      await Promise.all(sockets.map((socket, index) => closeWithin(socket, startMs + spreadMs * (index + Math.random()))));
    },
    count: () => server.clients.size,
  };
}

/** 1000, 1001, 1005 and 1006 are how clients go. */
const knownCodes = new Set<number>([1000, 1001, 1005, 1006, ...Object.values(closeCodes)]);

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

/** Throws `not_found` where no socket is served. */
function findTarget(bound: readonly BoundStream[], pathname: string): Target {
  if (pathname === '/graphql') return { stream: null, path: {} };
  for (const stream of bound) {
    const path = matchPath(stream.path, pathname);
    if (path) return { stream, path };
  }
  throw Fault.notFound();
}

function matchPath(pattern: string, pathname: string): Record<string, string> | null {
  const wanted = pattern.split('/');
  const given = pathname.split('/');
  if (wanted.length !== given.length) return null;
  const parameters: Record<string, string> = {};
  for (const [index, part] of wanted.entries()) {
    const value = given[index] ?? '';
    if (!part.startsWith(':')) {
      if (part !== value) return null;
      continue;
    }
    const id = parseUuid(value);
    if (!id) return null;
    parameters[part.slice(1)] = id;
  }
  return parameters;
}

/**
 * Who may open the socket, and how far it reaches; each try is paid for. Throws what a client sees that reads the
 * answer to its upgrade; a browser cannot, so whoever comes with a ticket gets a Refusal instead.
 */
async function admit(parts: SocketParts, request: IncomingMessage, url: URL, target: Target): Promise<Admission | Refusal> {
  const { origin } = request.headers;
  if (origin !== undefined && !parts.isAllowedOrigin(origin, request)) throw Fault.permissionDenied('The origin is not allowed.');
  const tickets = url.searchParams.getAll('ticket');
  if (tickets.length > 0) return admitTicket(parts, request, tickets, target);
  const viewer = await admitCredential(parts, request);
  const { organization_id: organizationId, project_id: projectId } = target.path;
  if (!organizationId || !projectId) return { viewer, onlyProject: null };
  if (viewer) await openProject(parts.database, viewer, { organizationId, projectId });
  else if (!offersGraphql(request)) throw Fault.notAuthenticated();
  return { viewer, onlyProject: { organizationId, projectId } };
}

async function admitTicket(
  parts: SocketParts,
  request: IncomingMessage,
  tickets: readonly string[],
  target: Target,
): Promise<Admission | Refusal> {
  const { limits, database, addresses } = parts;
  try {
    const [ticket = ''] = tickets;
    const redeemed = tickets.length === 1 ? await redeemTicket(database, ticket) : 'ticket_unknown';
    if (typeof redeemed === 'string') {
      await limits.spendAnonymous(addresses.of(request));
      const code = redeemed === 'ticket_expired' ? closeCodes.comeBackWithFreshCredential : closeCodes.unauthorized;
      return new Refusal(code, redeemed);
    }
    const { viewer, organizationId, projectId } = redeemed;
    await limits.spendUser(viewer.userId);
    const isTarget =
      redeemed.target === 'notifications' && target.path.organization_id === organizationId && target.path.project_id === projectId;
    if (!isTarget) return new Refusal(closeCodes.comeBackWithFreshCredential, 'ticket_target_mismatch');
    await openProject(database, viewer, { organizationId, projectId });
    return { viewer, onlyProject: { organizationId, projectId } };
  } catch (failure) {
    const fault = Fault.from(failure);
    if (fault.code === 'not_found') return new Refusal(closeCodes.comeBackWithFreshCredential, 'access_lost');
    if (fault.code === 'internal_error') parts.log.error({ err: fault.cause }, 'internal error');
    return new Refusal(closeCodes.tryAgainLater, fault.code);
  }
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
