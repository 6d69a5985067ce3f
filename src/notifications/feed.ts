import { setTimeout as sleep } from 'node:timers/promises';
import type { ProjectScope } from '../access/scope.ts';
import { Fault } from '../kernel/fault.ts';
import type { Follower } from './hub.ts';
import type { Hubs } from './hubs.ts';
import { type NotificationEvent, readLast, readState } from './log.ts';
import { listEntries } from './service.ts';

/** What a feed tells, in the order of the log. */
export type FeedEvent =
  | { readonly type: 'ready'; readonly sequence: number; readonly readThrough: number; readonly unreadCount: number }
  | NotificationEvent
  | { readonly type: 'read'; readonly readThrough: number; readonly notificationIds: readonly string[]; readonly unreadCount: number }
  | { readonly type: 'gap'; readonly from: number; readonly to: number };

const REPLAY_SIZE = 50;
const RETRY_MS = 500;

/**
 * The project's notifications from a cursor on, each once and in order: first what the log has, then one `ready`, then
 * what comes. Without a cursor it starts with `ready`. What retention has removed, and a cursor beyond the end of the
 * log, are told as a `gap`. The caller ends it by `return()`, at any moment, also while a `next()` is waiting.
 */
export function openFeed(scope: ProjectScope, sources: FeedSources, after: number | null): AsyncIterableIterator<FeedEvent> {
  return new Feed(scope, sources, after);
}

interface FeedSources {
  readonly hubs: Hubs;
  /** Calls back when the scope no longer holds: the feed then ends with that fault. */
  readonly watchAccess: (scope: ProjectScope, onLost: (fault: Fault) => void) => () => void;
}

class Feed implements AsyncIterableIterator<FeedEvent> {
  readonly #scope: ProjectScope;
  readonly #sources: FeedSources;
  readonly #after: number | null;
  readonly #events: AsyncGenerator<FeedEvent, undefined>;
  #follower: Follower | null = null;
  /** Retention's watermark, as it was told last. */
  #prunedThrough = 0;
  #isClosed = false;
  #failure: Fault | null = null;

  constructor(scope: ProjectScope, sources: FeedSources, after: number | null) {
    this.#scope = scope;
    this.#sources = sources;
    this.#after = after;
    this.#events = this.#tell();
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<IteratorResult<FeedEvent, undefined>> {
    return this.#events.next();
  }

  /** Ends the feed now: a generator alone would first wait for the event that it is waiting for. */
  async return(): Promise<IteratorResult<FeedEvent, undefined>> {
    this.#close();
    return this.#events.return(undefined);
  }

  #close(): void {
    this.#isClosed = true;
    this.#follower?.leave();
  }

  async *#tell(): AsyncGenerator<FeedEvent, undefined> {
    const { hubs, watchAccess } = this.#sources;
    const stopWatching = watchAccess(this.#scope, (fault) => {
      this.#failure = fault;
      this.#close();
    });
    try {
      const follower = await hubs.follow(this.#scope.projectId, this.#scope.viewer.userId);
      this.#follower = follower;
      if (this.#isClosed) follower.leave();
      const boundary = follower.horizon;
      yield* this.#begin(follower, boundary);
      while (follower.position < boundary && !follower.isGone) yield* this.#replay(follower, boundary);
      yield* this.#tellReady(follower);
      while (!follower.isGone) {
        const entry = follower.take();
        if (entry === 'behind') {
          yield* this.#replay(follower, follower.horizon);
        } else if (entry) {
          follower.position = entry.sequence;
          yield entry.event;
        } else {
          yield* this.#tellState(follower);
          // What came while the last was being told has called already.
          if (follower.position >= follower.horizon && !this.#hasNewState(follower)) await follower.wait();
        }
      }
      if (this.#failure) throw this.#failure;
      return undefined;
    } finally {
      stopWatching();
      this.#follower?.leave();
    }
  }

  /** Sets the position to the reader's cursor; one beyond the end of the log is a gap. */
  async *#begin(follower: Follower, boundary: number): AsyncGenerator<FeedEvent> {
    follower.position = this.#after ?? boundary;
    if (follower.position <= boundary) return;
    // Another process may have shown the reader more than the hub has read so far.
    const last = await readLast(this.#scope.database, this.#scope.projectId);
    if (follower.position <= last) return;
    const to = follower.position;
    follower.position = last;
    yield { type: 'gap', from: last + 1, to };
  }

  /** The next of what the log has between the position and a number that is in it. */
  async *#replay(follower: Follower, upTo: number): AsyncGenerator<FeedEvent> {
    const range = { after: follower.position, upTo, limit: REPLAY_SIZE };
    const entries = await this.#persist(() => this.#sources.hubs.inTurn(() => listEntries(this.#scope, range)));
    for (const notification of entries) {
      if (follower.isGone) return;
      const { sequence } = notification;
      if (sequence > follower.position + 1) yield { type: 'gap', from: follower.position + 1, to: sequence - 1 };
      follower.position = sequence;
      yield { type: 'notification', sequence, notification };
    }
    if (entries.length === 0 && !follower.isGone) {
      yield { type: 'gap', from: follower.position + 1, to: upTo };
      follower.position = upTo;
    }
  }

  async *#tellReady(follower: Follower): AsyncGenerator<FeedEvent> {
    if (follower.isGone) return;
    const { database, projectId, viewer } = this.#scope;
    const request = { projectId, userId: viewer.userId, sinceVersion: Number.MAX_SAFE_INTEGER, upTo: follower.position };
    const { version, prunedThrough, readThrough, unread } = await this.#persist(() => readState(database, request));
    follower.version = version;
    this.#prunedThrough = prunedThrough;
    if (!follower.isGone) yield { type: 'ready', sequence: follower.position, readThrough, unreadCount: unread };
  }

  #hasNewState(follower: Follower): boolean {
    const state = follower.takeState();
    if (!state || state.version < follower.version) return false;
    return state.version > follower.version || state.prunedThrough > this.#prunedThrough;
  }

  async *#tellState(follower: Follower): AsyncGenerator<FeedEvent> {
    const state = follower.takeState();
    if (!state || !this.#hasNewState(follower)) return;
    follower.version = state.version;
    this.#prunedThrough = state.prunedThrough;
    // What has been told since the state was read is unread by it.
    const unreadCount = state.unread + (follower.position - state.last);
    yield { type: 'read', readThrough: state.readThrough, notificationIds: state.notificationIds, unreadCount };
  }

  /** A feed that has begun outlives an outage of the database: it goes on when the database is back. */
  async #persist<Result>(work: () => Promise<Result>): Promise<Result> {
    for (;;) {
      try {
        return await work();
      } catch (failure) {
        if (this.#isClosed || Fault.from(failure).code !== 'service_unavailable') throw failure;
        await sleep(RETRY_MS * (0.5 + Math.random()));
      }
    }
  }
}
