import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import type { GraphQLSchema } from 'graphql';
import { GRAPHQL_TRANSPORT_WS_PROTOCOL } from 'graphql-ws';
import { addRateLimitHeaders, RateLimitFault } from '../../access/ratelimits.ts';
import type { ConsoleOpening } from '../../graph/console.ts';
import type { ConcurrencyLimit } from '../../kernel/concurrencylimit.ts';
import { Fault } from '../../kernel/fault.ts';
import type { ValidDocuments } from '../../pipeline/documents.ts';
import type { GetEnveloped } from '../../pipeline/operation.ts';
import type { TrustedDocuments } from '../../pipeline/trusted.ts';
import { toFault } from '../../platform/errors.ts';
import { logCause } from '../../platform/faultlog.ts';
import { LineLimit } from '../../platform/linelimit.ts';
import type { Logger } from '../../platform/logger.ts';
import { tooManySockets } from '../http/eventstreams.ts';
import { readRequestId } from '../http/exchange.ts';
import { standardHeaders } from '../http/headers.ts';
import { answerRaw, destroyOnError } from '../http/serverfaults.ts';
import { readTrace } from '../http/trace.ts';
import { pathPattern, queryText, readPath } from '../http/url.ts';
import { type BoundPlainFeed, bindPlainFeed } from '../rest/plainfeed.ts';
import { plainFeeds } from '../rest/plainfeeds.ts';
import {
  admitUpgrade,
  findTarget,
  refusePath,
  type SocketAdmission,
  type UpgradeDependencies,
  type UpgradeRequest,
  type UpgradeTarget,
} from './admission.ts';
import { closeCodes, Rejection, watchedCloses } from './close.ts';
import { type ConnectionDependencies, type LogFields, SocketConnection } from './connection.ts';
import { type ConsoleSockets, consoleHeaders, createConsoleSockets } from './consoleprotocol.ts';
import { createGraphqlSockets } from './graphqlprotocol.ts';
import { OpenConnections } from './openconnections.ts';
import { servePlain } from './plainprotocol.ts';
import { acceptUpgrade, createSocketServer, hasSupportedVersion, protocolVersions, type ServerSocket } from './socket.ts';

/** The share of a drain's window before the first close. Until then the load balancer might send a reconnecting client here again. */
const DRAIN_DELAY_RATIO = 0.2;

interface SocketUpgradesDependencies extends Omit<ConnectionDependencies, 'openConnections'>, UpgradeDependencies {
  readonly schema: GraphQLSchema;
  readonly getEnveloped: GetEnveloped;
  readonly trusted: TrustedDocuments;
  readonly documents: ValidDocuments;
}

/** An upgrade that is requested on a connection; `head` are the bytes that follow it there. */
interface RequestedUpgrade {
  readonly upgrade: UpgradeRequest;
  readonly socket: Duplex;
  readonly head: Buffer;
  readonly logFields: LogFields;
}

/** An upgrade that is about to be accepted. */
interface PreparedUpgrade {
  readonly admission: SocketAdmission;
  /** Null for a target that is not a console. */
  readonly opening: ConsoleOpening | null;
}

/** An upgrade that was accepted: its client reads WebSocket frames, and no HTTP any more. */
interface AcceptedUpgrade {
  readonly connection: SocketConnection;
  readonly opening: ConsoleOpening | null;
  readonly target: UpgradeTarget;
  readonly query: URLSearchParams;
}

/** Admits upgrades, and serves the sockets that they open: each by the protocol of its target. */
export class SocketUpgrades {
  readonly #dependencies: ConnectionDependencies & SocketUpgradesDependencies;
  readonly #openConnections = new OpenConnections<SocketConnection>();
  /** For upgrades that no budget limits: of clients without a credential, and those beyond the budget of a user. */
  readonly #lineLimit = new LineLimit();
  readonly #plainFeeds: ReadonlyArray<{ readonly feed: BoundPlainFeed; readonly pattern: RegExp }>;
  readonly #serveGraphql: (connection: SocketConnection) => void;
  readonly #consoles: ConsoleSockets;
  readonly #messageServer = createSocketServer({
    maxPayload: 64 * 1024,
    // The smallest packets that networks carry have some 500 bytes.
    maxBufferedChunks: 128,
    protocol: GRAPHQL_TRANSPORT_WS_PROTOCOL,
  });
  #isDraining = false;

  constructor(dependencies: SocketUpgradesDependencies) {
    this.#dependencies = { ...dependencies, openConnections: this.#openConnections };
    const { metrics, schema } = dependencies;
    // From the start, so that Prometheus also sees the first of a code as an increase.
    for (const labels of watchedCloses) metrics.socketCloses.inc(labels, 0);
    metrics.upgradeRefusals.inc({ code: 'console_unreachable' }, 0);
    this.#plainFeeds = plainFeeds.map((feed) => ({ feed: bindPlainFeed(schema, feed), pattern: pathPattern(feed.path) }));
    this.#serveGraphql = createGraphqlSockets(this.#dependencies);
    this.#consoles = createConsoleSockets(this.#dependencies);
  }

  /** The number of open sockets. */
  get size(): number {
    return this.#openConnections.all.size;
  }

  /** Takes over the connection of a request for a WebSocket, and answers it where it is rejected. */
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    const logFields = { request_id: readRequestId(request), ...readTrace(request) };
    const headers: string[] = [];
    const { url = '' } = request;
    const upgrade: UpgradeRequest = { request, path: readPath(url), query: new URLSearchParams(queryText(url)), headers, userId: null };
    socket.on('error', destroyOnError);
    this.#admit({ upgrade, socket, head, logFields }).then(
      (accepted) => accepted && this.#serve(accepted),
      (failure) => this.#refuse(failure, upgrade, socket, logFields),
    );
  }

  /** Answers an upgrade that is not accepted. */
  #refuse(failure: unknown, { request, userId, headers }: UpgradeRequest, socket: Duplex, logFields: LogFields): void {
    const { metrics, log } = this.#dependencies;
    const fault = toFault(failure);
    if (fault instanceof RateLimitFault) addRateLimitHeaders(headers, fault.allowance);
    // So that a client with another version learns which ones it may try (RFC 6455, §4.2.2).
    if (fault.code === 'invalid_request' && !hasSupportedVersion(request))
      headers.push('Sec-WebSocket-Version', protocolVersions.join(', '));
    metrics.upgradeRefusals.inc({ code: fault.code });
    const ownLog = log.child(logFields);
    logCause(fault, { log: ownLog });
    const omitted = this.#countOmitted(userId, fault.code);
    const fields = { code: fault.code, reason: fault.reason, user_id: userId ?? undefined, omitted: omitted || undefined };
    if (omitted !== null) ownLog.info(fields, 'upgrade refused');
    answerRaw(socket, fault, { requestId: logFields.request_id, headers });
  }

  /** Closes a socket with the reason of its rejection, for a browser, which cannot read the response to an upgrade. */
  #closeRejected(ws: ServerSocket, { code, reason }: Rejection, userId: string | null, log: Logger): void {
    ws.listen(null);
    this.#dependencies.metrics.upgradeRefusals.inc({ code: reason });
    const omitted = this.#countOmitted(userId, reason);
    const fields = { user_id: userId ?? undefined, code, reason, omitted: omitted || undefined };
    if (omitted !== null) log.info(fields, 'socket refused');
    ws.close(code, reason);
  }

  /** How many lines about refusals were left out since the last one; null if that of this refusal is to be left out, too. */
  #countOmitted(userId: string | null, reason: string): number | null {
    return userId !== null && reason !== 'rate_limited' ? 0 : this.#lineLimit.spend();
  }

  /** Closes every socket with a code that makes its client reconnect, spread over the window. Resolves when all are closed. */
  async drain(windowMs: number): Promise<void> {
    this.#isDraining = true;
    const connections = [...this.#openConnections.all];
    const startMs = windowMs * DRAIN_DELAY_RATIO;
    const spreadMs = (windowMs - startMs) / connections.length;
    await Promise.all(connections.map((connection, index) => closeAfter(connection, startMs + spreadMs * (index + Math.random()))));
  }

  /** Accepts an upgrade; null where nothing is left to serve, as its client has gone or was rejected. */
  async #admit({ upgrade, socket, head, logFields }: RequestedUpgrade): Promise<AcceptedUpgrade | null> {
    const target = findTarget(this.#plainFeeds, upgrade.path) ?? (await refusePath(this.#dependencies, upgrade));
    if (this.#isDraining) throw Fault.tryLater('the sockets are being drained');
    const prepared = await this.#prepare(upgrade, target);
    let accepted: AcceptedUpgrade | null = null;
    try {
      // Of a client that has ended its half of the connection ws would destroy the socket, and call nobody back.
      const hasGone = !socket.readable || !socket.writable;
      if (hasGone) socket.destroy();
      else accepted = await this.#accept(prepared, target, { upgrade, socket, head, logFields });
      return accepted;
    } finally {
      if (!accepted && !(prepared instanceof Rejection)) prepared.opening?.cancel();
    }
  }

  async #accept(
    prepared: PreparedUpgrade | Rejection,
    target: UpgradeTarget,
    { upgrade, socket, head, logFields }: RequestedUpgrade,
  ): Promise<AcceptedUpgrade | null> {
    const { addresses, socketLimit } = this.#dependencies;
    const admitted = limitSockets(socketLimit, prepared);
    const server = target.kind === 'console' ? this.#consoles.server : this.#messageServer;
    const headers = ['X-Request-Id', logFields.request_id, ...standardHeaders, ...upgrade.headers];
    if (!(admitted instanceof Rejection) && admitted.opening) headers.push(...consoleHeaders(admitted.opening));
    const accept = <Established>(establish: (ws: ServerSocket) => Established) =>
      acceptUpgrade({ server, request: upgrade.request, headers, stream: socket, head }, (ws) => {
        socket.off('error', destroyOnError);
        return establish(ws);
      });
    const log = this.#dependencies.log.child(logFields);
    if (admitted instanceof Rejection) {
      await accept((ws) => this.#closeRejected(ws, admitted, upgrade.userId, log));
      return null;
    }
    const { admission, opening } = admitted;
    const address = addresses.of(upgrade.request);
    const connection = await accept(
      (ws) => new SocketConnection({ socket: ws, stream: socket as Socket, address, logFields, access: admission }, this.#dependencies),
    );
    const kind = opening ? 'console' : isGraphql(connection) ? 'graphql' : 'plain';
    log.info({ user_id: admission.viewer?.userId, kind, session_id: opening?.sessionId }, 'socket opened');
    return { connection, opening, target, query: upgrade.query };
  }

  /** Serves an open socket. Never rejects: from here on a failure closes the socket. */
  async #serve({ connection, opening, target, query }: AcceptedUpgrade): Promise<void> {
    try {
      if (this.#isDraining) connection.close(closeCodes.restart, 'restart');
      else if (opening) await this.#serveConsole(connection, opening);
      else await this.#serveMessages(connection, target, query);
    } catch (failure) {
      const fault = toFault(failure);
      logCause(fault, connection);
      connection.close(closeCodes.tryAgainLater, fault.code);
    } finally {
      opening?.cancel();
    }
  }

  async #prepare(upgrade: UpgradeRequest, target: UpgradeTarget): Promise<PreparedUpgrade | Rejection> {
    const { request, query } = upgrade;
    const admission = await admitUpgrade(this.#dependencies, upgrade, target);
    if (admission instanceof Rejection) return admission;
    const { scope, ticket } = admission;
    if (target.kind !== 'console' || !scope) return { admission, opening: null };
    const opening = await this.#consoles.prepare(request, query, target.ids.instance_id ?? '', { scope, ticket });
    return opening instanceof Rejection ? opening : { admission, opening };
  }

  async #serveConsole(connection: SocketConnection, opening: ConsoleOpening): Promise<void> {
    if (isGraphql(connection)) rejectProtocol(connection);
    else await this.#consoles.serve(connection, opening);
  }

  async #serveMessages(connection: SocketConnection, { feed, ids }: UpgradeTarget, query: URLSearchParams): Promise<void> {
    if (isGraphql(connection)) this.#serveGraphql(connection);
    else if (feed) await servePlain(connection, feed, ids, query);
    else rejectProtocol(connection);
  }
}

/** Whether the client has chosen GraphQL's subprotocol. */
function isGraphql({ socket }: SocketConnection): boolean {
  return socket.protocol === GRAPHQL_TRANSPORT_WS_PROTOCOL;
}

/** Closes a socket whose target does not have the subprotocol that its client has chosen. */
function rejectProtocol(connection: SocketConnection): void {
  connection.close(closeCodes.notAcceptable, 'subprotocol_not_acceptable');
}

/** Limits the open sockets of a user: a Rejection for a browser with a ticket, otherwise it throws `conflict`. */
function limitSockets(socketLimit: ConcurrencyLimit, prepared: PreparedUpgrade | Rejection): PreparedUpgrade | Rejection {
  if (prepared instanceof Rejection) return prepared;
  const { viewer, ticket } = prepared.admission;
  if (!viewer || !socketLimit.isFull(viewer.userId)) return prepared;
  if (ticket) return new Rejection(closeCodes.tryAgainLater, 'too_many_sockets');
  throw tooManySockets(socketLimit);
}

/** Closes a connection after a delay; resolves when it is closed. */
async function closeAfter(connection: SocketConnection, delayMs: number): Promise<void> {
  await sleep(delayMs);
  const { socket } = connection;
  if (socket.readyState === socket.CLOSED) return;
  const closed = new Promise((resolve) => socket.once('close', resolve));
  connection.close(closeCodes.restart, 'restart');
  await closed;
}
