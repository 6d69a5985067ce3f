import type { IncomingMessage } from 'node:http';
import { type Duplex, PassThrough } from 'node:stream';
import { type RawData, type Server, type ServerOptions, WebSocket, WebSocketServer } from 'ws';
import { Fault } from '../../kernel/fault.ts';
import type { Logger } from '../../platform/logger.ts';

/** How long the peer of a closing socket may leave the connection open. */
const CLOSE_TIMEOUT_MS = 1_000;
/**
 * How many messages of a socket are handled in an iteration of the event loop before the peer has to wait, and for how long. The loop reads
 * up to 2 MiB of a socket at a time, which may be 300,000 messages; those in the 64 KiB whose read exceeds the number are still handled.
 */
const MESSAGES_AT_ONCE = 1_000;
const FLOOD_PAUSE_MS = 100;
/** How many bytes of messages are handled in an iteration: what is behind them waits for the next one, after all other sockets. */
const BYTES_AT_ONCE = 64 * 1024;

/** The handler of a WebSocket's events. */
interface SocketListener {
  readonly log: Logger;
  receive(bytes: Buffer, isBinary: boolean): void;
  receivePing(payload: Buffer): void;
  countPong(): void;
  /** Runs when the socket is no longer open. */
  stop(): void;
  /** Runs when the network connection is closed. */
  onClosed(code: number): void;
}

/** The memory that a part of a message takes besides its bytes; parts are as small as they come from the network. */
const PART_BYTES = 600;

/** The parts that ws keeps of an incomplete message; they have no public names. Each part is a view into a chunk of up to 64 KiB. */
interface Receiver {
  /** The parts of a frame that is not complete yet. */
  readonly _buffers: readonly Buffer[];
  /** The frames of the message that are complete. */
  readonly _fragments: readonly Buffer[];
  /** Four bytes from the head of that frame. */
  readonly _mask: Buffer | undefined;
}

/**
 * A WebSocket with a reference to its listener, so that all sockets share the same functions as handlers of ws' events: without
 * functions of its own, an idle socket takes less memory.
 */
export class ServerSocket extends WebSocket {
  listener: SocketListener | null = null;
  declare readonly _receiver: Receiver | null;
  #messagesAtOnce = 0;
  #bytesAtOnce = 0;
  /** Whether the peer of too many messages has to wait. */
  #isFlooded = false;
  /** Whether the user of the socket has paused it. */
  #isHeld = false;
  /** Whether the sockets of its user have sent too many messages. */
  #isThrottled = false;

  /** Null for a socket that is closed at once: what it receives is counted, and ignored. */
  listen(listener: SocketListener | null): void {
    this.listener = listener;
    this.on('error', onError).on('ping', onPing).on('pong', onPong).on('message', onMessage).on('close', onClose);
  }

  /** The memory that a message takes of which only a part has arrived. */
  get incompleteBytes(): number {
    if (!this._receiver) return 0;
    const { _buffers, _fragments, _mask } = this._receiver;
    if (_buffers.length + _fragments.length === 0 && !_mask) return 0;
    const parts = [..._buffers, ..._fragments, ...(_mask ? [_mask] : [])];
    let bytes = PART_BYTES * parts.length;
    for (const chunk of new Set(parts.map(({ buffer }) => buffer))) bytes += chunk.byteLength;
    return bytes;
  }

  override pause(): void {
    this.#isHeld = true;
    super.pause();
  }

  override resume(): void {
    this.#isHeld = false;
    this.#continue();
  }

  /** Stops the reading of the socket until `endThrottle`, besides `pause`. */
  throttle(): void {
    this.#isThrottled = true;
    super.pause();
  }

  endThrottle(): void {
    this.#isThrottled = false;
    this.#continue();
  }

  /** Reads the socket again, unless there is another reason not to. */
  #continue(): void {
    if (!this.#isFlooded && this.#bytesAtOnce < BYTES_AT_ONCE && !this.#isHeld && !this.#isThrottled) super.resume();
  }

  /**
   * Counts a message, a ping or a pong, also on a socket that is closing. For a console, and for a socket whose messages are ignored,
   * no other limit counts them.
   */
  countMessage(bytes: number): void {
    if (this.#isFlooded) return;
    this.#messagesAtOnce += 1;
    this.#bytesAtOnce += bytes;
    if (this.#messagesAtOnce === 1) setImmediate(() => this.#endIteration());
    if (this.#messagesAtOnce > MESSAGES_AT_ONCE) this.#isFlooded = true;
    else if (this.#bytesAtOnce < BYTES_AT_ONCE) return;
    super.pause();
  }

  /** The pause begins when the messages have been handled, which may take longer than the pause. */
  #endIteration(): void {
    const isFull = this.#bytesAtOnce >= BYTES_AT_ONCE;
    this.#messagesAtOnce = 0;
    this.#bytesAtOnce = 0;
    const endFlood = () => {
      this.#isFlooded = false;
      this.#continue();
    };
    if (this.#isFlooded) setTimeout(endFlood, FLOOD_PAUSE_MS);
    else if (isFull) this.#continue();
  }
}

const listenerOf = (socket: WebSocket) => (socket as ServerSocket).listener;

/** Counts what a socket has received; returns its listener. */
function countReceived(socket: WebSocket, bytes: number): SocketListener | null {
  (socket as ServerSocket).countMessage(bytes);
  return listenerOf(socket);
}

/** ws closes a broken connection itself. Without a listener the error would end the process. */
function onError(this: WebSocket, failure: Error): void {
  const listener = listenerOf(this);
  listener?.log.debug({ err: failure }, 'socket');
  listener?.stop();
}

function onPing(this: WebSocket, payload: Buffer): void {
  countReceived(this, payload.length)?.receivePing(payload);
}

function onPong(this: WebSocket, payload: Buffer): void {
  countReceived(this, payload.length)?.countPong();
}

function onMessage(this: WebSocket, data: RawData, isBinary: boolean): void {
  const bytes = data as Buffer;
  countReceived(this, bytes.length)?.receive(bytes, isBinary);
}

function onClose(this: WebSocket, code: number): void {
  listenerOf(this)?.onClosed(code);
}

export type SocketServer = Server<typeof ServerSocket>;

/** The most characters of a subprotocol that is chosen, as the response repeats it: a proxy takes only some kilobytes of headers. */
const MAX_PROTOCOL_LENGTH = 255;

/** Creates a WebSocket server for upgraded connections, with the limits that all sockets share. */
export function createSocketServer({
  protocol,
  ...options
}: Pick<ServerOptions, 'maxPayload'> & {
  /** The subprotocol that is chosen wherever it is in the list. Otherwise it is the first, as a client may offer any. */
  readonly protocol: string;
  /** How many parts, as they come from the network, a message may have. Each takes 600 bytes, however small it is. */
  readonly maxBufferedChunks: number;
}): SocketServer {
  // A variable, as the types of ws do not know `closeTimeout`.
  const serverOptions = {
    noServer: true,
    WebSocket: ServerSocket,
    clientTracking: false,
    autoPong: false,
    perMessageDeflate: false,
    maxFragments: 16,
    closeTimeout: CLOSE_TIMEOUT_MS,
    handleProtocols: (offered: Set<string>) => {
      const [first = ''] = offered;
      return offered.has(protocol) ? protocol : first.length <= MAX_PROTOCOL_LENGTH && first;
    },
    ...options,
  };
  return new WebSocketServer(serverOptions);
}

/** The versions of the protocol that ws supports. */
export const protocolVersions = ['13', '8'];

export function hasSupportedVersion({ headers }: IncomingMessage): boolean {
  return protocolVersions.includes(headers['sec-websocket-version'] ?? '');
}

const malformedHandshake = (failure: Error): Fault => Fault.invalidRequest(`${failure.message}.`);

/** A server of ws that accepts nothing: it asks `verifyClient` about each well-formed handshake, and waits for ever. */
const handshakeChecker = new WebSocketServer({ noServer: true, clientTracking: false, verifyClient: (_info, _decide) => {} });
handshakeChecker.on('wsClientError', (failure) => {
  throw malformedHandshake(failure);
});

/** Throws `invalid_request` for a handshake that ws would reject when the upgrade is accepted. */
export function checkHandshake(request: IncomingMessage): void {
  handshakeChecker.handleUpgrade(request, new PassThrough(), Buffer.alloc(0), () => {});
}

interface UpgradeHandshake {
  readonly server: SocketServer;
  readonly request: IncomingMessage;
  /** The headers of the response beside those of the handshake: name, value, name, value. */
  readonly headers: readonly string[];
  readonly stream: Duplex;
  readonly head: Buffer;
}

/**
 * Accepts an upgrade; resolves with the result of `establish`, which runs before any event of the socket. Throws `invalid_request`
 * for a malformed handshake.
 */
export function acceptUpgrade<Established>(
  { server, request, headers, stream, head }: UpgradeHandshake,
  establish: (peer: ServerSocket) => Established,
): Promise<Established> {
  return new Promise((resolve, reject) => {
    const refuse = (failure: Error) => reject(malformedHandshake(failure));
    const addHeaders = (lines: string[]) => {
      for (let index = 0; index < headers.length; index += 2) lines.push(`${headers[index]}: ${headers[index + 1]}`);
    };
    // Without a listener, ws would answer in a format of its own. It calls both before `handleUpgrade` returns.
    server.once('wsClientError', refuse).once('headers', addHeaders);
    server.handleUpgrade(request, stream, head, (peer) => resolve(establish(peer)));
    server.off('wsClientError', refuse).off('headers', addHeaders);
  });
}
