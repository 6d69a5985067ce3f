import type { IncomingMessage } from 'node:http';
import type { WebSocket } from 'ws';
import type { ProjectScope } from '../../access/scope.ts';
import type { Services } from '../../graph/context.ts';
import { parseUuid } from '../../kernel/uuid.ts';
import { logMistake, toFault } from '../../platform/errors.ts';
import type { Logger } from '../../platform/logger.ts';
import type { ClientAddresses } from '../http/peer.ts';
import { type CloseCode, closeCodes, Rejection } from './close.ts';
import type { SocketConnection } from './connection.ts';
import { createPeerServer, type PeerServer } from './socket.ts';

/** The subprotocol of noVNC. */
const BINARY_PROTOCOL = 'binary';
/** A frame of this size is a large paste; a stream has many frames. */
const MAX_FRAME_BYTES = 1024 * 1024;

type Consoles = Services['consoles'];
export type ConsoleOpening = Exclude<Awaited<ReturnType<Consoles['prepare']>>, string>;
type Client = Parameters<ConsoleOpening['attach']>[0];
type Closing = Parameters<Client['close']>[0];
type ConsoleRejection = Extract<Awaited<ReturnType<Consoles['prepare']>>, string>;

/** The close code of each end; the reason is its own name. */
const codes: Readonly<Record<Closing | ConsoleRejection, CloseCode>> = {
  console_closed: closeCodes.normal,
  restart: closeCodes.restart,
  access_lost: closeCodes.comeBackWithFreshCredential,
  credential_expired: closeCodes.comeBackWithFreshCredential,
  instance_gone: closeCodes.gone,
  instance_not_running: closeCodes.gone,
  session_gone: closeCodes.gone,
  idle: closeCodes.idle,
  detached: closeCodes.idle,
  taken_over: closeCodes.takenOver,
  ended: closeCodes.ended,
  after_not_kept: closeCodes.notKept,
  too_many_consoles: closeCodes.tooManyMessages,
  console_unreachable: closeCodes.unreachable,
  console_moved: closeCodes.unreachable,
  lost: closeCodes.unreachable,
};

interface ConsoleParts {
  readonly services: Services;
  readonly addresses: ClientAddresses;
  readonly log: Logger;
}

/** An admission to the project of a console. */
interface ConsoleAdmission {
  readonly scope: ProjectScope;
  /** Set by a ticket; null without one: then the query may name the session. */
  readonly ticket: { readonly sessionId: string | null } | null;
}

interface ConsoleSockets {
  readonly server: PeerServer;
  /** Looks up the console to be opened. Throws a Fault for a client that can read the answer to its upgrade. */
  prepare(request: IncomingMessage, url: URL, instanceId: string, admission: ConsoleAdmission): Promise<ConsoleOpening | Rejection>;
  /** Attaches a socket to the session of an opening. */
  serve(connection: SocketConnection, opening: ConsoleOpening): Promise<void>;
}

/** Consoles over WebSockets: frames are pieces of a stream of bytes, which passes as it is. */
export function createConsoleSockets({ services, addresses, log }: ConsoleParts): ConsoleSockets {
  const server = createPeerServer({
    maxPayload: MAX_FRAME_BYTES,
    handleProtocols: (protocols) => (protocols.has(BINARY_PROTOCOL) ? BINARY_PROTOCOL : ([...protocols][0] ?? false)),
  });
  const prepared = new WeakMap<IncomingMessage, ConsoleOpening>();
  server.on('headers', (headers, request) => {
    const opening = prepared.get(request);
    if (opening) headers.push(`X-Console-Session-Id: ${opening.sessionId}`, `X-Console-Offset: ${opening.position}`);
  });

  return {
    server,
    async prepare(request, url, instanceId, { scope, ticket }) {
      const after = readAfter(url.searchParams);
      const sessionId = ticket ? ticket.sessionId : readSessionId(url.searchParams);
      if (after === undefined) return new Rejection(closeCodes.badRequest, 'invalid_after');
      if (sessionId === undefined) return new Rejection(closeCodes.badRequest, 'invalid_session_id');
      try {
        const wanted = { instanceId, sessionId, after, clientAddress: addresses.of(request) };
        const opening = await services.consoles.prepare(scope, wanted);
        if (typeof opening === 'string') return new Rejection(codes[opening], opening);
        prepared.set(request, opening);
        return opening;
      } catch (failure) {
        if (!ticket) throw failure;
        return rejectionOf(failure, log);
      }
    },
    async serve(connection, opening) {
      const { socket } = connection;
      // Input waits until the console is attached.
      socket.pause();
      const attachment = await opening.attach(clientOf(connection)).catch((failure: unknown) => rejectionOf(failure, connection.log));
      if (attachment instanceof Rejection) {
        socket.resume();
        return connection.close(attachment.code, attachment.reason);
      }
      if (typeof attachment === 'string') return closeWith(connection, attachment);
      if (!connection.isOpen) return attachment.detach();
      connection.speak({
        receive() {},
        receiveBytes(bytes, isBinary) {
          if (!isBinary && attachment.kind !== 'serial') connection.close(closeCodes.unsupportedData, 'binary_only');
          else attachment.receive(bytes);
        },
        finish: () => attachment.detach(),
      });
    },
  };
}

/** The rejection for a failure that came up after the checks. */
function rejectionOf(failure: unknown, log: Logger): Rejection {
  const fault = toFault(failure);
  if (fault.code === 'not_found') return new Rejection(closeCodes.gone, 'instance_gone');
  if (fault.code === 'permission_denied') return new Rejection(closeCodes.comeBackWithFreshCredential, 'access_lost');
  logMistake(fault, { log });
  return new Rejection(closeCodes.tryAgainLater, fault.code);
}

function clientOf(connection: SocketConnection): Client {
  const { socket } = connection;
  return {
    get waiting() {
      return socket.bufferedAmount;
    },
    send(bytes, onSent) {
      socket.send(bytes, binary, onSent);
      connection.noteBacklog();
    },
    pause: () => socket.pause(),
    resume: () => socket.resume(),
    close: (closing) => closeWith(connection, closing),
  };
}

const binary: Parameters<WebSocket['send']>[1] = { binary: true };

function closeWith(connection: SocketConnection, closing: Closing | ConsoleRejection): void {
  // A paused socket would not read the other side's close frame.
  connection.socket.resume();
  connection.close(codes[closing], closing);
}

/** Null: not given; undefined: no number of bytes. */
function readAfter(query: URLSearchParams): number | null | undefined {
  const values = query.getAll('after');
  if (values.length === 0) return null;
  const [text = ''] = values;
  const after = Number(text);
  return values.length === 1 && /^\d{1,16}$/.test(text) && Number.isSafeInteger(after) ? after : undefined;
}

/** Null: not given; undefined: no UUID. */
function readSessionId(query: URLSearchParams): string | null | undefined {
  const values = query.getAll('session_id');
  if (values.length === 0) return null;
  return values.length === 1 ? (parseUuid(values[0]) ?? undefined) : undefined;
}
