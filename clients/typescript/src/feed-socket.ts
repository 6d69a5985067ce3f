import { createClient } from 'graphql-ws/client';
import { closeSocket, WebSocketImpl } from '#websocket';
import { endedByServer, PorticoError, toError } from './error.ts';
import { type FeedEvent, type FeedRequest, feedDocument } from './events.ts';

/** The most unread events that are buffered, and their size as JSON. Beyond, the connection is closed, and reopened once they have been read. */
const MAX_WAITING = 1_000;
const MAX_WAITING_CHARACTERS = 4 * 2 ** 20;
const OPENING_MS = 10_000;
/** The interval of the client's pings, and how long it waits for a pong. */
const PING_MS = 15_000;
const PONG_MS = 10_000;

/** The connection never opened. Another transport may open, or give the reason why not. */
export class NotOpened extends Error {}

/** Nobody has answered for the time that a connection may take to open, as behind a proxy that drops WebSockets. */
export class NotAnswered extends NotOpened {}

/**
 * The events of one connection by graphql-transport-ws. Ends without an error if the caller should reconnect at once. Throws
 * `PorticoError`, or `NotOpened`.
 */
export async function* readSocket({ url, credential, variables, signal, rewrite }: FeedRequest): AsyncGenerator<FeedEvent, void> {
  const waiting: FeedEvent[] = [];
  let waitingCharacters = 0;
  let end: { readonly error: Error | null } | null = null;
  let wake = () => {};
  let hasAnswered = false;
  let pong: ReturnType<typeof setTimeout> | undefined;
  const finish = (error: Error | null) => {
    end ??= { error };
    wake();
  };
  let socket: WebSocket | null = null;
  // graphql-ws does not give away a socket that is connecting.
  const SocketOfFeed = class extends WebSocketImpl {
    constructor(address: string | URL, protocols?: string | string[]) {
      super(address, protocols);
      socket = this;
      if (rewrite) rewriteMessages(this, rewrite);
    }
  };
  const client = createClient({
    url: `${url.replace(/^http/, 'ws')}/graphql`,
    webSocketImpl: SocketOfFeed,
    connectionParams: { authorization: `Bearer ${credential}` },
    retryAttempts: 0,
    connectionAckWaitTimeout: OPENING_MS,
    keepAlive: PING_MS,
    on: {
      connected: () => {
        clearTimeout(opening);
        hasAnswered = true;
      },
      ping: (isReceived) => {
        if (!isReceived) pong = setTimeout(() => client.terminate(), PONG_MS);
      },
      pong: (isReceived) => {
        if (isReceived) clearTimeout(pong);
      },
      closed: (event) => {
        clearTimeout(pong);
        // After a normal closure graphql-ws would subscribe again itself, and not after the last event.
        if ((event as { readonly code?: number }).code !== 1000) return;
        finish(toClosed(event, hasAnswered));
        dispose();
      },
    },
  });
  const opening = setTimeout(() => finish(new NotAnswered('nobody answers')), OPENING_MS);
  const stop = () => finish(null);
  signal.addEventListener('abort', stop, { once: true });
  // While the client is connecting, `dispose` settles as the connection does: perhaps never, perhaps with an error.
  const dispose = () => {
    if (socket) closeSocket(socket, 1000, 'Normal Closure');
    Promise.resolve(client.dispose()).catch(() => {});
  };
  const giveUp = () => {
    finish(null);
    dispose();
  };
  client.subscribe<{ notificationFeed: FeedEvent }>(
    { query: feedDocument, variables },
    {
      next({ data, errors }) {
        // Events after the end are dropped: the next connection delivers them again, after the cursor.
        if (end) return;
        if (!data) return finish(toError(errors ?? []));
        waiting.push(data.notificationFeed);
        waitingCharacters += JSON.stringify(data.notificationFeed).length;
        if (waiting.length >= MAX_WAITING || waitingCharacters >= MAX_WAITING_CHARACTERS) giveUp();
        wake();
      },
      error: (failure) => finish(Array.isArray(failure) ? toError(failure) : toClosed(failure, hasAnswered)),
      complete: () => finish(endedByServer()),
    },
  );
  try {
    for (;;) {
      waitingCharacters = 0;
      for (const event of waiting.splice(0)) {
        if (signal.aborted) return;
        yield event;
      }
      // Events that arrived while these were being processed woke no reader.
      if (waiting.length > 0) continue;
      if (end) break;
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
    }
    const { error } = end as { readonly error: Error | null };
    if (error) throw error;
  } finally {
    signal.removeEventListener('abort', stop);
    clearTimeout(opening);
    clearTimeout(pong);
    dispose();
  }
}

/** Rewrites each message of a socket for `onmessage`, as graphql-ws parses the text itself. */
function rewriteMessages(socket: WebSocket, rewrite: (json: string) => string): void {
  let listener: ((message: { readonly data: string }) => void) | null = null;
  Object.defineProperty(socket, 'onmessage', {
    set(next: typeof listener) {
      listener = next;
    },
  });
  socket.addEventListener('message', ({ data }) => listener?.({ data: rewrite(String(data)) }));
}

/** The error of a socket that the client did not close. */
function toClosed(failure: unknown, hasAnswered: boolean): Error {
  const { code = 1006, reason = '' } = failure as { code?: number; reason?: string };
  const isOurs = code >= 1012 && code !== 1015 && reason !== '' && code !== 4499 && code !== 4504;
  if (!hasAnswered && !isOurs) return new NotOpened('the socket did not open');
  return toSocketError(code, reason);
}

/** The error of a socket that closed with this code and reason. */
export function toSocketError(code: number, reason: string): PorticoError {
  // 4499 is what this client closes a silent socket with.
  const isLost = code === 1006 || code === 4499;
  const name = isLost ? 'connection_lost' : reason || 'connection_closed';
  if (code === 4401 || code === 4403) {
    const known = name === 'access_lost' ? 'access_lost' : 'not_authenticated';
    return new PorticoError(known, `The server closed the connection: ${name}.`, code === 4401 ? 401 : 403);
  }
  const isMistake = [4400, 4406, 4409, 4429].includes(code);
  const message = `The connection was closed with ${code}${reason && ` (${reason})`}.`;
  return isMistake ? new PorticoError('invalid_request', message) : new PorticoError(name, message);
}
