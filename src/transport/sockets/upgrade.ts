import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { GraphQLSchema } from 'graphql';
import type { WebSocket } from 'ws';
import { Fault } from '../../kernel/fault.ts';
import type { GetEnveloped } from '../../pipeline/enveloped.ts';
import type { TrustedDocuments } from '../../pipeline/trusted.ts';
import { logMistake, toFault } from '../../platform/errors.ts';
import type { Logger } from '../../platform/logger.ts';
import type { Metrics } from '../../platform/metrics.ts';
import { ConcurrencyLimit } from '../http/concurrency.ts';
import { answerRaw } from '../http/raw.ts';
import { readTrace } from '../http/trace.ts';
import { pathPattern } from '../http/url.ts';
import { bindStream } from '../rest/stream.ts';
import { streams } from '../rest/streams.ts';
import { admitUpgrade, findTarget, GRAPHQL_PROTOCOL, type SocketAdmission, type Target, type UpgradeParts } from './admission.ts';
import { closeCodes, Rejection } from './close.ts';
import { type ConnectionParts, type LogNames, SocketConnection } from './connection.ts';
import { type ConsoleOpening, createConsoleSockets } from './console.ts';
import { createGraphqlSockets } from './graphql.ts';
import { KeepAlive } from './keepalive.ts';
import { servePlain } from './plain.ts';
import { acceptUpgrade, createPeerServer } from './socket.ts';

/** The share of a drain's window in which the balancer notices the drain. */
const DRAIN_START = 0.2;

interface SocketParts extends Omit<ConnectionParts, 'keepAlive' | 'quota'>, UpgradeParts {
  readonly schema: GraphQLSchema;
  readonly metrics: Metrics;
  readonly getEnveloped: GetEnveloped;
  readonly trusted: TrustedDocuments;
  readonly config: { readonly socketsPerUser: number };
}

export interface SocketDoor {
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void;
  /** Closes every socket with a code that makes its client come back, at moments spread over the window. */
  drain(windowMs: number): Promise<void>;
  count(): number;
}

/** An upgrade that is about to be accepted. */
interface Prepared {
  readonly admission: SocketAdmission;
  /** Null where it is no console. */
  readonly opening: ConsoleOpening | null;
}

export function createSocketDoor(given: SocketParts): SocketDoor {
  const parts = { ...given, keepAlive: new KeepAlive<SocketConnection>(), quota: new ConcurrencyLimit(given.config.socketsPerUser) };
  const feeds = createPeerServer({
    maxPayload: 64 * 1024,
    // A plain client may offer any name of its own; GraphQL's is recognized anywhere in the list.
    handleProtocols: (protocols) => (protocols.has(GRAPHQL_PROTOCOL) ? GRAPHQL_PROTOCOL : ([...protocols][0] ?? false)),
  });
  const consoles = createConsoleSockets(parts);
  const servers = [feeds, consoles.server];
  // Without a listener, ws would answer in a format of its own.
  for (const one of servers) one.on('wsClientError', (failure, socket) => answerRaw(socket, Fault.invalidRequest(`${failure.message}.`)));
  const bound = streams.map((stream) => ({ stream: bindStream(parts.schema, stream), pattern: pathPattern(stream.path) }));
  const serveGraphql = createGraphqlSockets(parts);
  let isDraining = false;

  async function prepare(request: IncomingMessage, url: URL, target: Target): Promise<Prepared | Rejection> {
    const admission = await admitUpgrade(parts, request, url, target);
    if (admission instanceof Rejection) return admission;
    const { scope, ticket } = admission;
    if (target.kind !== 'console' || !scope) return { admission, opening: null };
    const opening = await consoles.prepare(request, url, target.path.instance_id ?? '', { scope, ticket });
    return opening instanceof Rejection ? opening : { admission, opening };
  }

  async function open(request: IncomingMessage, socket: Duplex, head: Buffer, names: LogNames): Promise<void> {
    const log = parts.log.child(names);
    const url = readUrl(request);
    const target = findTarget(bound, url.pathname);
    if (isDraining) throw Fault.unavailable('the sockets are being drained');
    const prepared = await prepare(request, url, target);
    if (socket.destroyed) return;
    const admitted = limitSockets(parts, prepared);
    const address = parts.addresses.of(request);
    const server = target.kind === 'console' ? consoles.server : feeds;
    const connection = await acceptUpgrade(server, request, socket, head, (peer) => {
      socket.off('error', destroy);
      if (admitted instanceof Rejection) return rejectOpened(parts, peer, admitted, log);
      return new SocketConnection(peer, socket as Socket, address, names, parts, admitted.admission);
    });
    if (!connection || admitted instanceof Rejection) return;
    const { admission, opening } = admitted;
    const isGraphql = connection.socket.protocol === GRAPHQL_PROTOCOL;
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
        const fault = toFault(failure);
        parts.metrics.upgradeRefusals.inc({ code: fault.code });
        refuse(socket, fault, parts.log.child(names));
      });
    },
    async drain(windowMs) {
      isDraining = true;
      const connections = [...parts.keepAlive.open];
      // Not in the window's first part: a client that came back at once would be sent here again.
      const startMs = windowMs * DRAIN_START;
      const spreadMs = (windowMs - startMs) / connections.length;
      await Promise.all(connections.map((one, index) => closeWithin(one, startMs + spreadMs * (index + Math.random()))));
    },
    count: () => parts.keepAlive.open.size,
  };
}

/** The error listener of a connection until ws has its own. */
function destroy(this: Duplex): void {
  this.destroy();
}

/**
 * The quota of open sockets: one more is refused, by a Rejection where a browser came with a ticket, and otherwise by the
 * fault `conflict`.
 */
function limitSockets({ quota }: { quota: ConcurrencyLimit }, prepared: Prepared | Rejection): Prepared | Rejection {
  if (prepared instanceof Rejection) return prepared;
  const { viewer, ticket } = prepared.admission;
  if (!viewer || !quota.isFull(viewer.userId)) return prepared;
  if (ticket) return new Rejection(closeCodes.tryAgainLater, 'too_many_sockets');
  const detail = `A user may have ${quota.max} WebSockets open at once.`;
  throw new Fault('conflict', detail, { context: { quota: 'sockets_per_user', limit: quota.max } });
}

/** Closes a socket with the reason of its rejection, for a browser, which cannot read the answer to an upgrade. */
function rejectOpened({ metrics }: SocketParts, ws: WebSocket, { code, reason }: Rejection, log: Logger): null {
  ws.on('error', () => {});
  metrics.upgradeRefusals.inc({ code: reason });
  log.info({ code, reason }, 'socket refused');
  ws.close(code, reason);
  return null;
}

/** Closes a connection after a delay; resolves when it is closed. */
async function closeWithin(connection: SocketConnection, delayMs: number): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, delayMs));
  const { socket } = connection;
  if (socket.readyState === socket.CLOSED) return;
  const closed = new Promise((resolve) => socket.once('close', resolve));
  connection.close(closeCodes.restart, 'restart');
  await closed;
}

/** Throws `not_found` for a target that is no URL, such as `//`. */
function readUrl({ url = '/' }: IncomingMessage): URL {
  if (!URL.canParse(url, 'http://localhost')) throw Fault.notFound();
  return new URL(url, 'http://localhost');
}

/** The answer to an upgrade that is not granted: an HTTP response, as v1 words it. */
function refuse(socket: Duplex, fault: Fault, log: Logger): void {
  logMistake(fault, { log });
  log.info({ code: fault.code }, 'upgrade refused');
  answerRaw(socket, fault);
}
