import type { IncomingMessage } from 'node:http';
import type { WebSocket } from 'ws';
import { type ProjectScope, rebindScope } from '../../access/scope.ts';
import type { Closing, ConsoleClient, ConsoleOpening, ConsoleRejection } from '../../graph/console.ts';
import type { Services } from '../../graph/context.ts';
import { parseUuid } from '../../kernel/uuid.ts';
import { toFault } from '../../platform/errors.ts';
import { logCause } from '../../platform/faultlog.ts';
import type { Logger } from '../../platform/logger.ts';
import type { ClientAddresses } from '../http/addresses.ts';
import { type CloseCode, closeCodes, Rejection } from './close.ts';
import type { SocketConnection } from './connection.ts';
import { createSocketServer, type SocketServer } from './socket.ts';

/** The subprotocol of noVNC. */
const BINARY_PROTOCOL = 'binary';
/** A large paste fits in one frame; a stream consists of many frames. */
const MAX_FRAME_BYTES = 1024 * 1024;

/** The close code for each reason. */
const codeByReason: Readonly<Record<Closing | ConsoleRejection, CloseCode>> = {
  console_closed: closeCodes.normal,
  restart: closeCodes.restart,
  access_lost: closeCodes.forbidden,
  credential_expired: closeCodes.forbidden,
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

interface ConsoleSocketDependencies {
  readonly services: Services;
  readonly addresses: ClientAddresses;
  readonly log: Logger;
}

/** An admission to the project of a console. */
interface ConsoleAdmission {
  readonly scope: ProjectScope;
  /** Set by a ticket, with the console session that it names, if any. Null without one: then the query may name a session. */
  readonly ticket: { readonly sessionId: string | null } | null;
}

export interface ConsoleSockets {
  readonly server: SocketServer;
  /** Looks up the console to open. Throws a Fault for a client without a ticket, which can read the response to its upgrade. */
  prepare(
    request: IncomingMessage,
    query: URLSearchParams,
    instanceId: string,
    admission: ConsoleAdmission,
  ): Promise<ConsoleOpening | Rejection>;
  /** Attaches a socket to the session of an opening. */
  serve(connection: SocketConnection, opening: ConsoleOpening): Promise<void>;
}

/** Consoles over WebSockets: the payloads of frames are a stream of bytes, which passes unchanged. */
export function createConsoleSockets({ services, addresses, log }: ConsoleSocketDependencies): ConsoleSockets {
  const server = createSocketServer({
    maxPayload: MAX_FRAME_BYTES,
    maxBufferedChunks: 1024,
    protocol: BINARY_PROTOCOL,
  });
  return {
    server,
    async prepare(request, query, instanceId, { scope: admitted, ticket }) {
      // An upgrade needs no permit: any number of them wait for the statements of their own user.
      const scope = rebindScope(admitted, services.userDatabases.of(admitted.viewer.userId));
      const after = readParameter(query, 'after', parsePosition);
      const sessionId = ticket ? ticket.sessionId : readParameter(query, 'session_id', parseUuid);
      if (after === undefined) return new Rejection(closeCodes.badRequest, 'invalid_after');
      if (sessionId === undefined) return new Rejection(closeCodes.badRequest, 'invalid_session_id');
      try {
        const clientAddress = addresses.of(request);
        const opening = await services.consoles.prepare(scope, { instanceId, sessionId, after, clientAddress });
        if (typeof opening === 'string') return new Rejection(codeByReason[opening], opening);
        return opening;
      } catch (failure) {
        if (!ticket) throw failure;
        return rejectionOf(failure, log);
      }
    },
    async serve(connection, opening) {
      const { socket } = connection;
      // Input is not read before the console is attached.
      socket.pause();
      const attachment = await opening.attach(clientOf(connection)).catch((failure: unknown) => rejectionOf(failure, connection.log));
      if (attachment instanceof Rejection) {
        socket.resume();
        return connection.close(attachment.code, attachment.reason);
      }
      if (typeof attachment === 'string') return closeWith(connection, attachment);
      if (!connection.isOpen) return attachment.detach();
      connection.setProtocol({
        receive() {},
        receiveBytes(bytes, isBinary) {
          if (!isBinary && attachment.kind !== 'serial') connection.close(closeCodes.unsupportedData, 'binary_only');
          else attachment.receive(bytes);
        },
        stop: () => attachment.detach(),
      });
    },
  };
}

/** The headers of an accepted upgrade to a console: name, value, name, value. */
export function consoleHeaders({ sessionId, position }: ConsoleOpening): string[] {
  return ['X-Console-Session-Id', sessionId, 'X-Console-Offset', String(position)];
}

/** The rejection for a failure after the checks of the upgrade. */
function rejectionOf(failure: unknown, log: Logger): Rejection {
  const fault = toFault(failure);
  if (fault.code === 'not_found') return new Rejection(closeCodes.gone, 'instance_gone');
  if (fault.code === 'permission_denied') return new Rejection(closeCodes.forbidden, 'access_lost');
  logCause(fault, { log });
  return new Rejection(closeCodes.tryAgainLater, fault.code);
}

function clientOf(connection: SocketConnection): ConsoleClient {
  const { socket } = connection;
  return {
    get bufferedAmount() {
      return socket.bufferedAmount;
    },
    send(bytes, onSent) {
      socket.send(bytes, binary, onSent);
      connection.recordBuffered();
    },
    pause: () => socket.pause(),
    resume: () => socket.resume(),
    close: (closing) => closeWith(connection, closing),
  };
}

const binary: Parameters<WebSocket['send']>[1] = { binary: true };

function closeWith(connection: SocketConnection, closing: Closing | ConsoleRejection): void {
  // A paused socket would not read the peer's close frame.
  connection.socket.resume();
  connection.close(codeByReason[closing], closing);
}

/** The parsed value of a query parameter: null without the parameter, undefined if it is malformed or repeated. */
function readParameter<Value>(query: URLSearchParams, name: string, parse: (text: string) => Value | null): Value | null | undefined {
  const [text, ...others] = query.getAll(name);
  if (text === undefined) return null;
  return others.length === 0 ? (parse(text) ?? undefined) : undefined;
}

/** A position in the output, in bytes; null for a malformed one. Positions beyond it, of output that follows, are exact too. */
function parsePosition(text: string): number | null {
  const position = Number(text);
  return /^\d{1,16}$/.test(text) && position <= MAX_POSITION ? position : null;
}

const MAX_POSITION = 2 ** 52;
