import { closeSocket, countUnreceived, openSocket, sendBytes, takesHeaders, WebSocketImpl } from '#websocket';
import { PorticoError, readJson, readRejection } from './error.ts';
import { toSocketError } from './feed-socket.ts';
import type { Http } from './http.ts';
import { query } from './query.ts';
import { Recovery } from './recovery.ts';
import { type ConnectionState, StateHolder } from './state.ts';
import { abortable, wait } from './wait.ts';

export interface ConsoleOptions {
  /** The id of the instance. */
  readonly instance: string;
  readonly signal?: AbortSignal;
  readonly onState?: (state: ConnectionState) => void;
}

/**
 * The console of an instance as two streams of bytes, which resume the same session after each reconnection: each byte of a
 * serial line is delivered once, as long as the server still has it. `readable` closes when the console hangs up, and otherwise
 * fails with a `PorticoError`: `reader_too_slow` if more than 16 MiB of output are unread.
 */
export interface ConsoleStream {
  readonly readable: ReadableStream<Uint8Array>;
  readonly writable: WritableStream<Uint8Array>;
  readonly state: ConnectionState;
  /**
   * Resolves when the server has received what the writes that have resolved wrote (in a browser: when it was given to the network), as
   * does closing `writable` before it leaves. Rejects, from then on, with a `PorticoError`, `input_lost`, if some of it may be lost, because a connection has
   * broken, or the server takes no more.
   */
  flush(): Promise<void>;
  /** Leaves the console: both streams end, and input that was not sent is dropped. */
  close(): void;
}

interface Place {
  readonly organizationId: string;
  readonly projectId: string;
  readonly role: string;
}

interface Session {
  readonly place: Place;
  /** The newest session of the instance before this one; null if there was none. */
  readonly newestBefore: string | null;
  /** Null until the server was asked for it, which a session that is lost has to be. */
  id: string | null;
  hasBegun: boolean;
  /** Whether the server no longer has it. */
  isGone: boolean;
  /** How many bytes of its output were received. */
  received: number;
  /** Whether more than `MAX_UNREAD` bytes of output are unread. */
  isOverrun: boolean;
}

/** The timeout for opening a socket. */
const OPENING_MS = 10_000;
/** A socket that has been open for this long was accepted: the next failure is another matter than the one before. */
const LIVE_MS = 1_000;
/** The size of a frame of input: the server accepts up to 1 MiB. */
const FRAME_BYTES = 64 * 1024;
/** How many bytes may be buffered in the socket before the writer waits. */
const MAX_BUFFERED = 1024 * 1024;
/** The longest time in which no more input arrives, before the rest is given up. */
const STALLED_MS = 60_000;
/** How many bytes of output may be unread: a browser's WebSocket has no backpressure. */
const MAX_UNREAD = 16 * 1024 * 1024;
/** Close reasons after which the session, or its missed output, is lost: a new session begins. */
const LOST_SESSION_REASONS = ['after_not_kept', 'session_gone', 'console_moved', 'lost'];
/** How many of an instance's newest sessions are looked through for one's own. */
const SESSIONS_SEEN = 20;
/** Close codes after which the session goes on: those of a server that stops, and those of a proxy before it. */
const RETRYABLE_CODES = [1000, 1001, 1005, 1006, 1011, 1012, 1013, 1014, 4401, 4403];
/** Close reasons for which another ticket is all that is needed. */
const TICKET_REASONS = ['ticket_used', 'ticket_unknown'];

export function openConsole(http: Http, { instance, signal, onState }: ConsoleOptions): ConsoleStream {
  const state = new StateHolder(onState);
  const leaving = new AbortController();
  if (signal?.aborted) leaving.abort();
  const leave = () => leaving.abort();
  signal?.addEventListener('abort', leave, { once: true });

  let socket: WebSocket | null = null;
  let isInputLost = false;
  let [wakeWriter, socketChange] = [() => {}, Promise.resolve()];
  const changeSocket = (next: WebSocket | null) => {
    if (socket && countUnreceived(socket) > 0) isInputLost = true;
    socket = next;
    wakeWriter();
    socketChange = new Promise((resolve) => {
      wakeWriter = resolve;
    });
  };
  changeSocket(null);

  const source: UnderlyingDefaultSource<Uint8Array> = {
    start(output) {
      const run = keepOpen(http, instance, { output, state, signal: leaving.signal, changeSocket });
      run.then(
        () => end(null, () => output.close()),
        (error) => end(error, () => output.error(error)),
      );
    },
    cancel: leave,
  };
  const end = (error: PorticoError | null, finish: () => void) => {
    signal?.removeEventListener('abort', leave);
    leaving.abort();
    changeSocket(null);
    state.enter({ name: 'ended', error });
    try {
      finish();
    } catch {
      // The reader has cancelled the stream.
    }
  };
  const whyClosed = () => (state.current.name === 'ended' ? state.current.error : null);
  const flush = async () => {
    let [before, since] = [0, performance.now()];
    for (;;) {
      if (isInputLost) throw new PorticoError('input_lost', 'The connection ended before all input had arrived: some of it may be lost.');
      const unreceived = socket ? countUnreceived(socket) : 0;
      if (!socket || unreceived === 0) return;
      const left = unreceived + socket.bufferedAmount;
      if (left !== before) [before, since] = [left, performance.now()];
      if (performance.now() - since > STALLED_MS)
        throw new PorticoError('input_lost', `No more input has arrived for ${STALLED_MS / 1000} s: some of it is lost.`);
      await wait(20);
    }
  };
  const writable = new WritableStream<Uint8Array>({
    async write(bytes) {
      for (let from = 0; from < bytes.length; from += FRAME_BYTES) {
        // A socket may be closed before its successor is opened.
        while (socket?.readyState !== WebSocketImpl.OPEN && !leaving.signal.aborted) await socketChange;
        if (leaving.signal.aborted || !socket) throw whyClosed() ?? new PorticoError('console_closed', 'The console is closed.');
        sendBytes(socket, bytes.slice(from, from + FRAME_BYTES));
        while (socket && socket.bufferedAmount > MAX_BUFFERED) await wait(20);
      }
    },
    // `abort` would be called only once the write that waits has ended.
    start: ({ signal }) => signal.addEventListener('abort', leave),
    close: () => flush().finally(leave),
  });
  return {
    readable: new ReadableStream(source, new ByteLengthQueuingStrategy({ highWaterMark: MAX_UNREAD })),
    writable,
    get state() {
      return state.current;
    },
    flush,
    close: leave,
  };
}

interface Line {
  readonly output: ReadableStreamDefaultController<Uint8Array>;
  readonly state: StateHolder;
  readonly signal: AbortSignal;
  changeSocket(socket: WebSocket | null): void;
}

interface Target {
  readonly instance: string;
  /** The session that is being opened, or was; null before the first, and after one that is lost. */
  session: Session | null;
  /** The last session that was lost. */
  lost: Session | null;
}

/** Opens one connection after another. Resolves when the console has hung up, or the signal aborts. */
async function keepOpen(http: Http, instance: string, line: Line): Promise<void> {
  const { state, signal } = line;
  const { credentials } = http.options;
  const recovery = new Recovery(credentials, state, signal);
  const target: Target = { instance, session: null, lost: null };
  while (!signal.aborted) {
    state.enter({ name: 'connecting' });
    let credential: string | null = null;
    try {
      credential = await abortable(credentials.get(), signal);
      return await openOnce(http, target, line, recovery);
    } catch (failure) {
      if (signal.aborted) return;
      if (failure instanceof Ended) throw failure.error;
      await recovery.prepareRetry(failure, credential);
    }
  }
}

/**
 * Opens one connection, and transfers bytes until it is closed. Resolves when the console has hung up; otherwise throws why the
 * connection was closed, as `Ended` if another would not help.
 */
async function openOnce(http: Http, target: Target, line: Line, recovery: Recovery): Promise<void> {
  const { signal } = line;
  const session = await settleSession(http, target, signal);
  const socket = await open(http, target.instance, session, line);
  const before = session.received;
  const openedAt = performance.now();
  const { code, reason } = await pass(socket, session, line);
  if (signal.aborted || (code === 1000 && reason === 'console_closed')) return;
  if (session.isOverrun) throw new Ended(new PorticoError('reader_too_slow', `More than ${MAX_UNREAD} bytes of output were not read.`));
  // A console may be quiet for as long as a token is valid.
  if (session.received > before || performance.now() - openedAt > LIVE_MS) recovery.reset();
  const error = toConsoleError(code, reason);
  if (LOST_SESSION_REASONS.includes(reason)) {
    session.isGone = reason === 'session_gone';
    target.lost = session;
    target.session = null;
  } else if (!RETRYABLE_CODES.includes(code) || reason === 'access_lost') throw new Ended(error);
  throw error;
}

/** The session that goes on, or a new one. Throws `Ended` where a new one would end somebody's at the serial line. */
async function settleSession(http: Http, target: Target, signal: AbortSignal): Promise<Session> {
  if (target.session?.id) return target.session;
  const seen = await look(http, target.instance, signal);
  const newestId = seen.sessions[0]?.id ?? null;
  // A server that takes no consoles opens the socket to give its reason, and begins no session.
  const hasBegun = target.session?.hasBegun && newestId !== target.session.newestBefore;
  const begun = hasBegun ? target.session : target.lost;
  if (begun) begun.id ??= findFirstAfter(begun.newestBefore, seen.sessions);
  if (begun?.id && begun === target.session) return begun;
  if (begun && isTakenOver(seen, begun))
    throw new Ended(new PorticoError('taken_over', 'The session has ended, and somebody is at the console by now.'));
  target.lost = begun;
  target.session = { place: seen.place, newestBefore: newestId, id: null, hasBegun: false, isGone: false, received: 0, isOverrun: false };
  return target.session;
}

/** The console ended for a reason that reconnecting would not mend. */
class Ended {
  constructor(readonly error: PorticoError) {}
}

function toConsoleError(code: number, reason: string): PorticoError {
  const isForeign = code === 4409 || code === 4410 || code === 4429;
  if (isForeign || !reason || TICKET_REASONS.includes(reason))
    return new PorticoError(reason || 'connection_lost', `The console was closed with ${code} (${reason || 'no reason'}).`);
  return toSocketError(code, reason);
}

/** The state of a console, as the server tells it. */
interface Seen {
  readonly place: Place;
  /** Whether somebody is at the serial line. */
  readonly isOccupied: boolean;
  /** The newest of its sessions that the credential may see, the newest first. */
  readonly sessions: readonly SeenSession[];
}

interface SeenSession {
  readonly id: string;
  readonly state: string;
}

async function look(http: Http, instance: string, signal: AbortSignal): Promise<Seen> {
  const document = `query ($id: ID!) { node(id: $id) { ... on Instance {
    project { id organizationId role } consoleOccupied consoleSessions(first: ${SESSIONS_SEEN}) { nodes { id state } }
  } } }`;
  type Found = {
    node: {
      project?: { id: string; organizationId: string; role: string };
      consoleOccupied: boolean;
      consoleSessions: { nodes: SeenSession[] };
    } | null;
  };
  const { data, error } = await query<Found, { id: string }>(http.once, document, { id: instance }, signal);
  if (error) throw error;
  const { node } = data;
  if (!node?.project) throw new PorticoError('not_found', `There is no instance ${instance} that this credential may see.`);
  const { id: projectId, organizationId, role } = node.project;
  return { place: { organizationId, projectId, role }, isOccupied: node.consoleOccupied, sessions: node.consoleSessions.nodes };
}

/** The session that was the first to begin after another; null where they cannot be told apart, as there are too many. */
function findFirstAfter(earlierId: string | null, sessions: readonly SeenSession[]): string | null {
  const count = earlierId === null ? sessions.length : sessions.findIndex(({ id }) => id === earlierId);
  return earlierId === null && count === SESSIONS_SEEN ? null : (sessions[count - 1]?.id ?? null);
}

/** Whether a new session would end somebody's at the serial line. The lost session may be recorded as attached for a moment. */
function isTakenOver({ isOccupied, sessions: [newest] }: Seen, lost: Session): boolean {
  return isOccupied && (lost.isGone || newest?.id !== lost.id || newest?.state !== 'attached');
}

/** Opens a socket. Rejects with a `PorticoError` that gives the reason if it does not open. */
async function open(http: Http, instance: string, session: Session, { output, signal }: Line): Promise<WebSocket> {
  const { place } = session;
  const project = http.address(`/v1/organizations/${place.organizationId}/projects/${place.projectId}/`);
  let address = new URL(`compute/instances/${encodeURIComponent(instance)}/console/ws`, project);
  const headers: Record<string, string> = {};
  const body = JSON.stringify({ target: 'console', instance_id: instance, ...(session.id && { session_id: session.id }) });
  const init = { method: 'POST', headers: { 'content-type': 'application/json' }, body, signal };
  const response = await http.once.send(new Request(new URL('websocket-tickets', project), init), 'never');
  const received = response.ok ? await readJson(response) : await readRejection(response);
  if (!(received instanceof PorticoError)) {
    address = http.address(received.path);
    address.searchParams.set('ticket', received.ticket);
  } else if (received.code === 'session_required' && takesHeaders) {
    // An API key cannot get a ticket: it is sent in a header, where that is possible.
    headers.authorization = `Bearer ${await http.options.credentials.get()}`;
    if (session.id) address.searchParams.set('session_id', session.id);
  } else {
    throw received;
  }
  if (session.id) address.searchParams.set('after', String(session.received));
  address.protocol = address.protocol.replace('http', 'ws');
  const socket = openSocket(address.href, ['binary'], headers);
  socket.binaryType = 'arraybuffer';
  // Set before the socket opens: the server sends its scrollback at once.
  socket.onmessage = ({ data }) => {
    const bytes = new Uint8Array(data as ArrayBuffer);
    session.received += bytes.length;
    output.enqueue(bytes);
    if ((output.desiredSize ?? 0) >= 0) return;
    session.isOverrun = true;
    socket.onmessage = null;
    closeSocket(socket);
  };
  let giveUp = () => {};
  const opening = setTimeout(() => giveUp(), OPENING_MS);
  const isOpen = await new Promise<boolean>((resolve) => {
    giveUp = () => resolve(false);
    socket.onopen = () => resolve(true);
    socket.onclose = giveUp;
    socket.onerror = giveUp;
    signal.addEventListener('abort', giveUp, { once: true });
    if (signal.aborted) giveUp();
  });
  clearTimeout(opening);
  signal.removeEventListener('abort', giveUp);
  if (isOpen) return socket;
  closeSocket(socket);
  if (place.role === 'viewer') throw new PorticoError('permission_denied', 'A console takes the role member in the project.', 403);
  // A WebSocket does not expose why its upgrade was rejected.
  throw new PorticoError('connection_lost', 'The server did not open the console.');
}

/** Transfers bytes until the socket is closed. */
async function pass(socket: WebSocket, session: Session, { state, signal, changeSocket }: Line): Promise<{ code: number; reason: string }> {
  let leave = () => {};
  const closing = new Promise<{ code: number; reason: string }>((resolve) => {
    socket.onclose = ({ code, reason }) => resolve({ code, reason });
    // Nobody waits for the server to confirm it, which on a dead connection takes long.
    leave = () => {
      socket.onmessage = null;
      closeSocket(socket, 1000, 'left');
      resolve({ code: 1000, reason: 'left' });
    };
  });
  if (signal.aborted) leave();
  signal.addEventListener('abort', leave, { once: true });
  changeSocket(socket);
  state.enter({ name: 'live', over: 'websocket' });
  session.hasBegun = true;
  const closed = await closing;
  changeSocket(null);
  signal.removeEventListener('abort', leave);
  return closed;
}
