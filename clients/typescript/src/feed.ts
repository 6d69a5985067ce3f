import { describeClock } from './clock.ts';
import { PorticoError } from './error.ts';
import { cursorOf, type FeedEvent, type FeedRequest } from './events.ts';
import { NotAnswered, NotOpened, readSocket } from './feed-socket.ts';
import { readServerSentEvents } from './feed-sse.ts';
import type { Http } from './http.ts';
import { query } from './query.ts';
import { Recovery } from './recovery.ts';
import { type ConnectionState, StateHolder } from './state.ts';
import { abortable } from './wait.ts';

/** How long no WebSocket is tried after one was dropped on the way, and server-sent events were not. */
const DROPPED_MS = 5 * 60_000;

/** Persists the cursor of a feed across restarts. */
export interface CursorStore {
  /** The last saved cursor, or null. */
  load(): number | null | Promise<number | null>;
  /** Called when the event of this cursor has been processed: when the consumer asks for the next one. */
  save(cursor: number): void | Promise<void>;
}

export interface FeedOptions {
  /** The id of the project. */
  readonly project: string;
  /** The last `sequence` that you have, used if the store has none; without either the feed begins with `ready`. */
  readonly after?: number | null;
  readonly store?: CursorStore;
  readonly signal?: AbortSignal;
  /** Called each time the state changes. */
  readonly onState?: (state: ConnectionState) => void;
}

/** A project's notifications: each once and in order, across reconnections. Throws a `PorticoError` when retrying cannot help. */
export interface Feed extends AsyncIterable<FeedEvent> {
  readonly state: ConnectionState;
}

/**
 * The connection opens when the first event is requested, and closes when the consumer stops reading or the signal aborts.
 * `rewrite` is given the JSON of each message before it is parsed.
 */
export function openFeed(http: Http, options: FeedOptions, rewrite?: FeedRequest['rewrite']): Feed {
  const state = new StateHolder(options.onState);
  return {
    get state() {
      return state.current;
    },
    [Symbol.asyncIterator]() {
      const leaving = new AbortController();
      const leave = () => leaving.abort();
      options.signal?.addEventListener('abort', leave, { once: true, signal: leaving.signal });
      if (options.signal?.aborted) leave();
      const events = follow(http, options, { state, leaving, rewrite });
      return {
        next: () => events.next(),
        // The generator's own `return` waits for the next event, which may never come on a quiet project.
        return() {
          leave();
          return events.return();
        },
      };
    },
  };
}

interface Following {
  readonly state: StateHolder;
  readonly leaving: AbortController;
  readonly rewrite: FeedRequest['rewrite'];
}

/** The events of all connections. Ends when `leaving` is aborted, and aborts it when it ends. */
async function* follow(http: Http, options: FeedOptions, following: Following): AsyncGenerator<FeedEvent, void> {
  const { state, leaving } = following;
  try {
    yield* readConnections(http, options, following);
  } catch (failure) {
    if (!(failure instanceof PorticoError)) throw failure;
    const error = await explain(failure, http, options.project, leaving.signal);
    state.enter({ name: 'ended', error });
    throw error;
  } finally {
    state.enter({ name: 'ended', error: null });
    leaving.abort();
  }
}

async function* readConnections(
  http: Http,
  { store, after, project }: FeedOptions,
  { state, leaving: { signal }, rewrite }: Following,
): AsyncGenerator<FeedEvent, void> {
  const { credentials } = http.options;
  const recovery = new Recovery(credentials, state, signal);
  const connect = makeConnect(http.options.fetch);
  let organizationId: string | null = null;
  let cursor = checkCursor((await store?.load()) ?? after ?? null);
  while (!signal.aborted) {
    state.enter({ name: 'connecting' });
    let credential: string | null = null;
    try {
      organizationId ??= await findOrganization(http, project, signal);
      credential = await abortable(credentials.get(), signal);
      const variables = { organizationId, projectId: project, after: cursor };
      const request = { url: http.options.url, credential, variables, signal, rewrite };
      for await (const [event, over] of connect(request)) {
        recovery.reset();
        state.enter({ name: 'live', over });
        // A newer server may send events of other types, of which the document selects no field.
        if (!event.type) continue;
        const next = cursorOf(event);
        // Skips events that were delivered before the connection broke.
        if (event.type === 'notification' && cursor !== null && event.sequence <= cursor) continue;
        cursor = next ?? cursor;
        yield event;
        if (next !== null) await store?.save(next);
      }
    } catch (failure) {
      if (signal.aborted) break;
      await recovery.prepareRetry(failure, credential);
    }
  }
}

/** Refuses, in the server's words, what JSON would make null of, as of NaN: the feed would begin with what is new. */
function checkCursor(cursor: number | null): number | null {
  if (cursor === null || Number.isSafeInteger(cursor)) return cursor;
  const problem = 'A valid integer is required.';
  throw new PorticoError('validation_failed', `after: ${problem}`, null, null, [], { fields: { after: [problem] } });
}

/**
 * The events of one connection: by WebSocket, or by server-sent events if none opens, whose response gives the reason if it fails too.
 * Where each WebSocket is dropped on the way, not every connection waits for one.
 */
function makeConnect(fetchImpl: typeof fetch) {
  let droppedUntil = 0;
  return async function* connect(request: FeedRequest): AsyncGenerator<[FeedEvent, 'websocket' | 'server-sent events'], void> {
    if (performance.now() >= droppedUntil) {
      try {
        for await (const event of readSocket(request)) yield [event, 'websocket'];
        return;
      } catch (failure) {
        if (!(failure instanceof NotOpened)) throw failure;
        if (failure instanceof NotAnswered) droppedUntil = performance.now() + DROPPED_MS;
      }
    }
    let isOpen = false;
    try {
      for await (const event of readServerSentEvents(request, fetchImpl)) {
        isOpen = true;
        yield [event, 'server-sent events'];
      }
    } finally {
      // The whole server does not answer: a WebSocket may open when it does.
      if (!isOpen) droppedUntil = 0;
    }
  };
}

async function findOrganization(http: Http, project: string, signal: AbortSignal): Promise<string> {
  const document = 'query ($id: ID!) { project(id: $id) { organizationId } }';
  const { data, error } = await query<{ project: { organizationId: string } | null }, { id: string }>(
    http.once,
    document,
    { id: project },
    signal,
  );
  if (error) throw error;
  if (!data.project) throw new PorticoError('not_found', 'Not found.');
  return data.project.organizationId;
}

/** A final error in words for people; for a rejected credential, also whether the clock of this machine may be the reason. */
async function explain(error: PorticoError, http: Http, project: string, signal: AbortSignal): Promise<PorticoError> {
  const say = (message: string) => new PorticoError(error.code, message, error.status, null, error.errors, { cause: error });
  if (error.code === 'not_found') return say(`There is no project ${project} that this credential may see.`);
  if (error.code !== 'not_authenticated') return error;
  return say(`The credential was refused: it is wrong, revoked or expired.${await describeClock(http, signal)}`);
}
