import type { IncomingMessage } from 'node:http';
import { type Server, type WebSocket, WebSocketServer } from 'ws';
import type { ProjectScope } from '../../access/scope.ts';
import type { Services } from '../../graph/context.ts';
import { Fault } from '../../kernel/fault.ts';
import { parseUuid } from '../../kernel/uuid.ts';
import type { Log } from '../../platform/log.ts';
import type { ClientAddresses } from '../peer.ts';
import { type CloseCode, closeCodes, Refusal } from './close.ts';
import { type Connection, Peer } from './connection.ts';

/** What noVNC asks for. */
const BINARY_PROTOCOL = 'binary';
/** A frame of this size is a large paste; whoever streams sends many. */
const MAX_FRAME_BYTES = 1024 * 1024;

type Consoles = Services['consoles'];
type Opening = Exclude<Awaited<ReturnType<Consoles['prepare']>>, string>;
type Client = Parameters<Opening['attach']>[0];
type Closing = Parameters<Client['close']>[0];
type ConsoleRefusal = Extract<Awaited<ReturnType<Consoles['prepare']>>, string>;

/** How each end is told; the reason is its own name. */
const codes: Readonly<Record<Closing | ConsoleRefusal, CloseCode>> = {
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
  readonly log: Log;
}

/** Who has been admitted to a console, and how. */
export interface ConsoleAdmission {
  readonly scope: ProjectScope;
  /** Set by a ticket; null without one: then the query may name the session. */
  readonly ticket: { readonly sessionId: string | null } | null;
}

export interface ConsoleSockets {
  readonly server: Server<typeof Peer>;
  /** Looks up what is to be opened. Throws what a client sees that reads the answer to its upgrade. */
  prepare(request: IncomingMessage, url: URL, instanceId: string, admission: ConsoleAdmission): Promise<Opening | Refusal>;
  /** Has the session of an opening carried by a socket. */
  serve(connection: Connection, opening: Opening): Promise<void>;
}

/** Consoles over WebSockets: frames are pieces of a stream of bytes, which passes as it is. */
export function createConsoleSockets({ services, addresses, log }: ConsoleParts): ConsoleSockets {
  const server = new WebSocketServer({
    noServer: true,
    WebSocket: Peer,
    clientTracking: false,
    perMessageDeflate: false,
    maxPayload: MAX_FRAME_BYTES,
    maxFragments: 16,
    maxBufferedChunks: 1024,
    handleProtocols: (protocols) => (protocols.has(BINARY_PROTOCOL) ? BINARY_PROTOCOL : ([...protocols][0] ?? false)),
  });
  const prepared = new WeakMap<IncomingMessage, Opening>();
  server.on('headers', (headers, request) => {
    const opening = prepared.get(request);
    if (opening) headers.push(`X-Console-Session-Id: ${opening.sessionId}`, `X-Console-Offset: ${opening.position}`);
  });

  return {
    server,
    async prepare(request, url, instanceId, { scope, ticket }) {
      const after = readAfter(url.searchParams);
      const sessionId = ticket ? ticket.sessionId : readSessionId(url.searchParams);
      if (after === undefined) return new Refusal(closeCodes.badRequest, 'invalid_after');
      if (sessionId === undefined) return new Refusal(closeCodes.badRequest, 'invalid_session_id');
      try {
        const wanted = { instanceId, sessionId, after, clientAddress: addresses.of(request) };
        const opening = await services.consoles.prepare(scope, wanted);
        if (typeof opening === 'string') return new Refusal(codes[opening], opening);
        prepared.set(request, opening);
        return opening;
      } catch (failure) {
        if (!ticket) throw failure;
        return refusalOf(failure, log);
      }
    },
    async serve(connection, opening) {
      const { socket } = connection;
      // What is typed waits until there is a console that takes it.
      socket.pause();
      const attachment = await opening.attach(clientOf(connection)).catch((failure: unknown) => refusalOf(failure, connection.log));
      if (attachment instanceof Refusal) {
        socket.resume();
        return connection.close(attachment.code, attachment.reason);
      }
      if (typeof attachment === 'string') return closeWith(connection, attachment);
      if (socket.readyState === socket.CLOSED) return attachment.detach();
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

/** What has come up after everything had been found good. */
function refusalOf(failure: unknown, log: Log): Refusal {
  const fault = Fault.from(failure);
  if (fault.code === 'not_found') return new Refusal(closeCodes.gone, 'instance_gone');
  if (fault.code === 'permission_denied') return new Refusal(closeCodes.comeBackWithFreshCredential, 'access_lost');
  if (fault.code === 'internal_error') log.error({ err: fault.cause }, 'internal error');
  return new Refusal(closeCodes.tryAgainLater, fault.code);
}

function clientOf(connection: Connection): Client {
  const { socket } = connection;
  return {
    get waiting() {
      return socket.bufferedAmount;
    },
    send: (bytes, onSent) => socket.send(bytes, binary, onSent),
    pause: () => socket.pause(),
    resume: () => socket.resume(),
    close: (closing) => closeWith(connection, closing),
  };
}

const binary: Parameters<WebSocket['send']>[1] = { binary: true };

function closeWith(connection: Connection, closing: Closing | ConsoleRefusal): void {
  // A socket that is not read would not hear the other side's goodbye.
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
