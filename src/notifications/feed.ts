import { setTimeout as sleep } from 'node:timers/promises';
import type { ProjectScope } from '../access/scope.ts';
import type { Watched } from '../access/watch.ts';
import type { WatchAccess } from '../graph/context.ts';
import { Source } from '../graph/source.ts';
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
/** Of all feeds that have read nothing. */
const nothing: FeedEvent[] = [];

/**
 * The project's notifications from a cursor on, each once and in order: first what the log has, then one `ready`, then
 * what comes. Without a cursor it starts with `ready`. What retention has removed, and a cursor beyond the end of the
 * log, are told as a `gap`. Nothing is opened before the first event is asked for.
 */
export function openFeed(scope: ProjectScope, sources: FeedSources, after: number | null): Source<FeedEvent> {
  return new Feed(scope, sources, after);
}

interface FeedSources {
  readonly hubs: Hubs;
  /** Ends the feed when the scope no longer holds. */
  readonly watchAccess: WatchAccess;
}

interface Beginning {
  readonly watchAccess: WatchAccess;
  readonly after: number | null;
}

/**
 * What comes is taken from the hub. Whatever a hub does not have (the log from the cursor up to where the hub stood when
 * the feed joined it, the `ready` behind that, and what a slow reader has missed) is read a page at a time, and a page
 * only when the one before has been taken.
 */
class Feed extends Source<FeedEvent> {
  readonly #scope: ProjectScope;
  readonly #hubs: Hubs;
  /** What it begins with; null when it has begun. */
  #beginning: Beginning | null;
  #follower: Follower | null = null;
  #watched: Watched | null = null;
  /** Where the hub stood when the feed joined it. */
  #boundary = 0;
  #isReady = false;
  /** What has been read, and is still to be taken. */
  #page: FeedEvent[] = nothing;
  #isReading = false;
  /** Retention's watermark, as it was told last. */
  #prunedThrough = 0;

  constructor(scope: ProjectScope, { hubs, watchAccess }: FeedSources, after: number | null) {
    super();
    this.#scope = scope;
    this.#hubs = hubs;
    this.#beginning = { watchAccess, after };
  }

  override take(): FeedEvent | null {
    if (this.isEnded || this.#isReading) return null;
    const event = this.#page.shift();
    if (event) {
      if (this.#page.length === 0) this.#page = nothing;
      if (event.type === 'notification') this.#moveTo(event.sequence);
      return event;
    }
    const entry = this.#isReady && this.#follower ? this.#follower.take() : 'behind';
    if (entry === null) return this.#takeState();
    if (entry !== 'behind') {
      this.#moveTo(entry.sequence);
      return entry.event;
    }
    this.#isReading = true;
    this.#readPage().then(
      (page) => {
        this.#page = page;
        this.#isReading = false;
        this.hear();
      },
      (failure) => this.end(failure),
    );
    return null;
  }

  override end(failure: unknown = null): void {
    this.#watched?.stop();
    this.#follower?.leave();
    super.end(failure);
  }

  #moveTo(sequence: number): void {
    if (this.#follower) this.#follower.position = sequence;
  }

  /** What comes next, and is not to be had from the hub. */
  async #readPage(): Promise<FeedEvent[]> {
    if (this.#beginning) return this.#join(this.#beginning);
    if (!this.#follower) return [];
    if (this.#isReady) return this.#replay(this.#follower, this.#follower.horizon);
    if (this.#follower.position < this.#boundary) return this.#replay(this.#follower, this.#boundary);
    return this.#readReady(this.#follower);
  }

  /** Joins the hub, with the reader's cursor for a position; one beyond the end of the log is a gap. */
  async #join({ watchAccess, after }: Beginning): Promise<FeedEvent[]> {
    const { database, projectId, viewer } = this.#scope;
    this.#beginning = null;
    this.#watched = watchAccess(this.#scope, this);
    const follower = await this.#hubs.follow(projectId, viewer.userId, this);
    this.#follower = follower;
    if (this.isEnded) follower.leave();
    this.#boundary = follower.position;
    if (after === null) return [];
    follower.position = after;
    if (after <= this.#boundary) return [];
    // Another process may have shown the reader more than the hub has read so far.
    const last = await readLast(database, projectId);
    if (after <= last) return [];
    follower.position = last;
    return [{ type: 'gap', from: last + 1, to: after }];
  }

  /** The next of what the log has between the position and a number that is in it. */
  async #replay(follower: Follower, upTo: number): Promise<FeedEvent[]> {
    const { position } = follower;
    const range = { after: position, upTo, limit: REPLAY_SIZE };
    const entries = await this.#persist(() => this.#hubs.inTurn(() => listEntries(this.#scope, range)));
    const page: FeedEvent[] = [];
    let told = position;
    for (const notification of entries) {
      const { sequence } = notification;
      if (sequence > told + 1) page.push({ type: 'gap', from: told + 1, to: sequence - 1 });
      page.push({ type: 'notification', sequence, notification });
      told = sequence;
    }
    if (page.length > 0) return page;
    follower.position = upTo;
    return [{ type: 'gap', from: position + 1, to: upTo }];
  }

  async #readReady(follower: Follower): Promise<FeedEvent[]> {
    const { database, projectId, viewer } = this.#scope;
    const request = { projectId, userId: viewer.userId, sinceVersion: Number.MAX_SAFE_INTEGER, upTo: follower.position };
    const { version, prunedThrough, readThrough, unread } = await this.#persist(() => readState(database, request));
    follower.version = version;
    this.#prunedThrough = prunedThrough;
    this.#isReady = true;
    return [{ type: 'ready', sequence: follower.position, readThrough, unreadCount: unread }];
  }

  /** What the user has read, where that is news. */
  #takeState(): FeedEvent | null {
    const follower = this.#follower;
    const state = follower?.takeState();
    if (!follower || !state || state.version < follower.version) return null;
    if (state.version === follower.version && state.prunedThrough <= this.#prunedThrough) return null;
    follower.version = state.version;
    this.#prunedThrough = state.prunedThrough;
    // What has been told since the state was read is unread by it.
    const unreadCount = state.unread + (follower.position - state.last);
    return { type: 'read', readThrough: state.readThrough, notificationIds: state.notificationIds, unreadCount };
  }

  /** A feed that has begun outlives an outage of the database: it goes on when the database is back. */
  async #persist<Result>(work: () => Promise<Result>): Promise<Result> {
    for (;;) {
      try {
        return await work();
      } catch (failure) {
        if (this.isEnded || Fault.from(failure).code !== 'service_unavailable') throw failure;
        await sleep(RETRY_MS * (0.5 + Math.random()));
      }
    }
  }
}
