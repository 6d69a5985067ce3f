import type { ProjectScope } from '../access/scope.ts';
import type { Fault } from '../kernel/fault.ts';
import type { Hubs, Subscription } from './hub.ts';
import { type Notification, type ReadState, readState } from './log.ts';
import { CLOSED, OVERFLOWED } from './queue.ts';
import { listEntries } from './service.ts';

/** What a feed tells, in the order of the log. */
export type FeedEvent =
  | { readonly type: 'ready'; readonly sequence: number; readonly readThrough: number; readonly unreadCount: number }
  | { readonly type: 'notification'; readonly sequence: number; readonly notification: Notification }
  | { readonly type: 'read'; readonly readThrough: number; readonly notificationIds: readonly string[]; readonly unreadCount: number }
  | { readonly type: 'gap'; readonly from: number; readonly to: number };

const REPLAY_SIZE = 200;

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
  readonly #events: AsyncGenerator<FeedEvent, undefined>;
  #subscription: Subscription | null = null;
  #cursor: number | null;
  /** The read state that was told last. */
  #version = -1;
  #prunedThrough = -1;
  #isClosed = false;
  #failure: Fault | null = null;

  constructor(scope: ProjectScope, sources: FeedSources, after: number | null) {
    this.#scope = scope;
    this.#sources = sources;
    this.#cursor = after;
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
    this.#subscription?.leave();
  }

  async *#tell(): AsyncGenerator<FeedEvent, undefined> {
    const stopWatching = this.#sources.watchAccess(this.#scope, (fault) => {
      this.#failure = fault;
      this.#close();
    });
    try {
      let subscription = await this.#subscribe();
      yield* this.#replay(subscription.boundary);
      const state = await this.#readState(subscription.boundary);
      subscription.startFrom(state.version);
      this.#note(state);
      if (this.#isClosed) return this.#end();
      yield { type: 'ready', sequence: subscription.boundary, readThrough: state.readThrough, unreadCount: state.unread };
      while (!this.#isClosed) {
        const item = await subscription.queue.take();
        if (item === CLOSED) break;
        if (item === OVERFLOWED) {
          subscription = await this.#subscribe();
          yield* this.#replay(subscription.boundary);
          yield* this.#tellState(await this.#readState(subscription.boundary, this.#version));
        } else if ('entry' in item) {
          yield* this.#tellEntry({ ...item.entry, read: false });
        } else {
          yield* this.#tellState(item.state);
        }
      }
      return this.#end();
    } finally {
      stopWatching();
      this.#subscription?.leave();
    }
  }

  #end(): undefined {
    if (this.#failure) throw this.#failure;
  }

  async #subscribe(): Promise<Subscription> {
    this.#subscription?.leave();
    const subscription = await this.#sources.hubs.join(this.#scope.projectId, this.#scope.viewer.userId, this.#cursor ?? 0);
    this.#subscription = subscription;
    if (this.#isClosed) subscription.leave();
    return subscription;
  }

  /** What the log has between the cursor and the boundary, behind which the queue goes on. */
  async *#replay(boundary: number): AsyncGenerator<FeedEvent> {
    this.#cursor ??= boundary;
    if (this.#cursor > boundary) {
      yield { type: 'gap', from: boundary + 1, to: this.#cursor };
      this.#cursor = boundary;
    }
    while (this.#cursor < boundary && !this.#isClosed) {
      const entries = await listEntries(this.#scope, { after: this.#cursor, upTo: boundary, limit: REPLAY_SIZE });
      for (const entry of entries) yield* this.#tellEntry(entry);
      if (entries.length === 0) {
        yield { type: 'gap', from: this.#cursor + 1, to: boundary };
        this.#cursor = boundary;
      }
    }
  }

  async *#tellEntry(notification: Notification): AsyncGenerator<FeedEvent> {
    const { sequence } = notification;
    const cursor = this.#cursor ?? 0;
    if (this.#isClosed || sequence <= cursor) return;
    if (sequence > cursor + 1) yield { type: 'gap', from: cursor + 1, to: sequence - 1 };
    this.#cursor = sequence;
    yield { type: 'notification', sequence, notification };
  }

  async #readState(upTo: number, sinceVersion = Number.MAX_SAFE_INTEGER): Promise<ReadState> {
    const { database, projectId, viewer } = this.#scope;
    const state = await readState(database, { projectId, userId: viewer.userId, sinceVersion, upTo });
    return state;
  }

  #note({ version, prunedThrough }: ReadState): void {
    this.#version = version;
    this.#prunedThrough = prunedThrough;
  }

  async *#tellState(state: ReadState): AsyncGenerator<FeedEvent> {
    const isNew = state.version > this.#version || (state.version === this.#version && state.prunedThrough > this.#prunedThrough);
    if (this.#isClosed || !isNew) return;
    this.#note(state);
    const { readThrough, notificationIds, unread } = state;
    yield { type: 'read', readThrough, notificationIds, unreadCount: unread };
  }
}
