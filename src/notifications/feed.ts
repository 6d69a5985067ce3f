import { setTimeout as sleep } from 'node:timers/promises';
import type { Lease } from '../access/revocation.ts';
import type { ProjectScope } from '../access/scope.ts';
import type { WatchAccess } from '../graph/context.ts';
import { Source } from '../graph/source.ts';
import { Fault } from '../kernel/fault.ts';
import type { Evictable } from '../kernel/memorybudget.ts';
import type { Database } from '../platform/database.ts';
import { toFault } from '../platform/errors.ts';
import { loadEntries } from './entries.ts';
import type { Follower, Subscriber } from './follower.ts';
import type { Hubs } from './hubs.ts';
import {
  AFTER_ALL_VERSIONS,
  countSingleReads,
  ID_BYTES,
  listSingleReads,
  loadDeliveredVersion,
  loadLastSequence,
  loadReadState,
  loadVersion,
  MAX_EVENT_IDS,
  type NotificationEvent,
  type ReaderKey,
  type ReadState,
} from './log.ts';

/** The events of a feed, in the order of the log. */
export type FeedEvent =
  | { readonly type: 'ready'; readonly sequence: number; readonly readThrough: number; readonly unreadCount: number }
  | NotificationEvent
  | { readonly type: 'read'; readonly readThrough: number; readonly notificationIds: readonly string[]; readonly unreadCount: number }
  | { readonly type: 'gap'; readonly from: number; readonly to: number };

/** The limits of a replayed batch: with the envelopes of its messages it fits into one write. */
const REPLAY_BATCH = { limit: 50, maxBytes: 48 * 1024 } as const;
const FIRST_LIMIT = 4;
const RETRY_MS = 500;

/**
 * The project's notifications after a cursor, each once and in order: first the entries of the log, then one `ready`, then
 * live entries. Without a cursor the feed starts with `ready`. Entries that retention has removed, and a cursor beyond the
 * end of the log, are delivered as a `gap`. Access is watched from now on; nothing else is opened until the first event is fetched.
 */
export function openFeed(scope: ProjectScope, dependencies: FeedDependencies, after: number | null): Source<FeedEvent> {
  return new Feed(scope, dependencies, after);
}

interface FeedDependencies {
  readonly hubs: Hubs;
  /** Ends the feed when the scope no longer holds. */
  readonly watchAccess: WatchAccess;
}

/** The progress of single reads that are delivered in several events, in the order of the log. */
interface SingleReadReplay {
  /** The state that the last of these events completes. */
  readonly state: ReadState;
  /** The sequence of the last notification that was delivered as read. */
  readonly after: number;
  /** The number of reads that are still to be delivered. */
  readonly remaining: number;
}

/** Fetched events, of which at least one has not been read yet. */
interface FetchedEvents {
  /** The events that have not been read yet. */
  readonly events: FeedEvent[];
  /** The number of events when the batch was fetched. */
  readonly count: number;
  /** Whether the events are a replay, which can be fetched again. */
  readonly isReplay: boolean;
  /** The progress after the batch's single reads have been read; null for a batch of other events. */
  readonly singleReadReplay: SingleReadReplay | null;
}

/**
 * Live entries are read from the hub. All other events are fetched, a batch at a time: the log from the cursor up to the
 * boundary, then `ready`, and later the entries and the single reads that a slow reader has missed. A replayed batch can be
 * dropped at any time, as the feed's position moves only when an event is read.
 */
class Feed extends Source<FeedEvent> implements Evictable, Subscriber {
  readonly #scope: ProjectScope;
  readonly #hubs: Hubs;
  /** Joins the hub; null once that has begun. */
  #startJoin: (() => Promise<void>) | null;
  #follower: Follower | null = null;
  readonly #lease: Lease;
  /** The hub's position when the feed joined it. */
  #boundary = 0;
  /** The version of the read state when the replay up to the boundary began; null without such a replay. */
  #versionBefore: number | null = null;
  #isReady = false;
  #fetching: Promise<void> | null = null;
  #batch: FetchedEvents | null = null;
  /** Null while no single reads are being delivered in several events. */
  #singleReadReplay: SingleReadReplay | null = null;
  /** The limit of entries in the next batch: low until their sizes are known. */
  #limit: number = FIRST_LIMIT;
  /** Retention's watermark in the last delivered state. */
  #prunedThrough = 0;
  /** The unread count that the client has: the last that was delivered, and each unread entry since. */
  #clientUnread = 0;
  /** The last sequence that the log still has in common with what was delivered, after it went back; null if it has not. */
  #fork: number | null = null;

  constructor(scope: ProjectScope, { hubs, watchAccess }: FeedDependencies, after: number | null) {
    super();
    this.#scope = scope;
    this.#hubs = hubs;
    this.#startJoin = () => this.#join(after);
    // A client that does not read may put off the first event for minutes.
    this.#lease = watchAccess(scope, this);
  }

  override read(): FeedEvent | null {
    const event = this.#readNext();
    if (event?.type === 'notification') this.#clientUnread += event.notification.read ? 0 : 1;
    else if (event && event.type !== 'gap') this.#clientUnread = event.unreadCount;
    return event;
  }

  #readNext(): FeedEvent | null {
    if (this.isEnded || this.#fetching) return null;
    if (this.#batch) return this.#readBatch(this.#batch);
    if (this.#fork !== null) return null;
    const follower = this.#follower;
    if (!this.#isReady || !follower) return null;
    const entry = follower.read();
    if (entry === null) return follower.isLagging ? null : this.#takeReadState(follower);
    follower.position = entry.sequence;
    return entry.event;
  }

  get owner(): string {
    return this.#scope.viewer.userId;
  }

  override get needsFetch(): boolean {
    if (this.isEnded) return false;
    // Events under way are not readable yet, even where they have arrived.
    if (this.#fetching) return true;
    if (this.#batch) return false;
    return !this.#isReady || this.#fork !== null || this.#follower?.isLagging === true || this.#lacksSingleReads;
  }

  get #reader(): ReaderKey {
    return { projectId: this.#scope.projectId, userId: this.#scope.viewer.userId };
  }

  get #lacksSingleReads(): boolean {
    return this.#singleReadReplay !== null || this.#follower?.lacksSingleReads === true;
  }

  override fetch(): Promise<void> {
    this.#fetching ??= this.#fetchNext()
      .catch((failure) => this.end(failure))
      .finally(() => {
        this.#fetching = null;
      });
    return this.#fetching;
  }

  override release(): void {
    if (this.#batch?.isReplay) this.#hubs.replays.release(this);
    this.evict();
  }

  evict(): void {
    const batch = this.#batch;
    if (!batch?.isReplay) return;
    // A consumer that has read part of a replayed batch gets a batch of that length the next time.
    if (!batch.singleReadReplay) this.#limit = Math.max(1, batch.count - batch.events.length);
    this.#batch = null;
  }

  goBack(fork: number): void {
    this.#fork = fork;
    this.#dropBatch();
    this.notify();
  }

  override end(failure: unknown = null): void {
    this.#lease.stop();
    this.#follower?.leave();
    this.#dropBatch();
    super.end(failure);
  }

  #dropBatch(): void {
    this.#hubs.replays.release(this);
    this.#batch = null;
  }

  #readBatch(batch: FetchedEvents): FeedEvent | null {
    const event = batch.events.shift() ?? null;
    if (event && batch.isReplay && this.#follower) this.#advance(event, batch.singleReadReplay, this.#follower);
    if (batch.events.length > 0) return event;
    this.#batch = null;
    if (batch.isReplay) this.#hubs.replays.release(this);
    return event;
  }

  /** Moves the feed's position past an event of a replay. */
  #advance(event: FeedEvent, singleReadReplay: SingleReadReplay | null, follower: Follower): void {
    if (event.type === 'gap') follower.position = event.to;
    else if (event.type !== 'read') follower.position = event.sequence;
    else if (singleReadReplay) {
      this.#singleReadReplay = singleReadReplay.remaining > 0 ? singleReadReplay : null;
      if (singleReadReplay.remaining === 0) this.#recordDelivered(follower, singleReadReplay.state);
    }
  }

  #recordDelivered(follower: Follower, { version, prunedThrough }: ReadState): void {
    follower.version = version;
    this.#prunedThrough = prunedThrough;
  }

  /** Fetches the next events that the hub does not have. */
  async #fetchNext(): Promise<void> {
    if (this.#startJoin) return this.#startJoin();
    const follower = this.#follower;
    if (!follower) return;
    if (this.#fork !== null) return this.#fetchFork(follower, this.#fork);
    if (this.#isReady && follower.isLagging) return this.#replay(follower, follower.highWatermark);
    if (this.#isReady) return this.#fetchSingleReads(follower);
    if (follower.position >= this.#boundary) return this.#fetchReady(follower);
    this.#versionBefore ??= await this.#query((database) => loadVersion(database, this.#reader));
    return this.#replay(follower, this.#boundary);
  }

  /** Stores fetched events. `replayBytes`: the size of a replay; null for events that cannot be fetched again. */
  #setBatch(events: FeedEvent[], replayBytes: number | null, singleReadReplay: SingleReadReplay | null = null): void {
    // A batch that was requested before the log went back is out of date.
    if (this.isEnded || this.#fork !== null) return;
    this.#batch = { events, count: events.length, isReplay: replayBytes !== null, singleReadReplay };
    if (replayBytes !== null) this.#hubs.replays.reserve(this, replayBytes);
  }

  /** Joins the hub, with the client's cursor as the position; a cursor beyond the end of the log is a gap. */
  async #join(after: number | null): Promise<void> {
    const { database, projectId, viewer } = this.#scope;
    this.#startJoin = null;
    const follower = await this.#hubs.follow(projectId, viewer.userId, this);
    this.#follower = follower;
    if (this.isEnded) return follower.leave();
    this.#boundary = follower.position;
    if (after === null) return;
    follower.position = after;
    if (after <= this.#boundary) return;
    // Another process may have delivered entries to the client that this hub has not read yet.
    const last = await loadLastSequence(database, projectId);
    if (after <= last) return;
    follower.position = last;
    this.#setBatch([{ type: 'gap', from: last + 1, to: after }], null);
  }

  /**
   * Fetches the next entries of the log after the position, up to a sequence that the log has reached. Once the feed is ready they are
   * unread, as live entries are: the read states that follow say which of them were read.
   */
  async #replay(follower: Follower, upTo: number): Promise<void> {
    const { position } = follower;
    const { projectId, userId } = this.#reader;
    const readBy = this.#isReady ? undefined : userId;
    const range = { after: position, upTo, userId: readBy, limit: this.#limit, maxBytes: REPLAY_BATCH.maxBytes };
    const batch = await this.#limitedQuery((database) => loadEntries(database, projectId, range));
    const events: FeedEvent[] = [];
    let last = position;
    for (const notification of batch.entries) {
      const { sequence } = notification;
      if (sequence > last + 1) events.push({ type: 'gap', from: last + 1, to: sequence - 1 });
      events.push({ type: 'notification', sequence, notification });
      last = sequence;
    }
    if (events.length === 0) events.push({ type: 'gap', from: position + 1, to: upTo });
    this.#limit = Math.min(2 * this.#limit, REPLAY_BATCH.limit);
    this.#setBatch(events, batch.bytes);
  }

  async #fetchReady(follower: Follower): Promise<void> {
    const { position } = follower;
    const request = { ...this.#reader, sinceVersion: AFTER_ALL_VERSIONS, upTo: position };
    const state = await this.#query((database) => loadReadState(database, request));
    const sinceVersion = this.#versionBefore ?? state.version;
    const version = await this.#query((database) => loadDeliveredVersion(database, state, { ...this.#reader, position, sinceVersion }));
    this.#recordDelivered(follower, { ...state, version });
    this.#isReady = true;
    this.#setBatch([{ type: 'ready', sequence: position, readThrough: state.readThrough, unreadCount: state.unread }], null);
  }

  /** Fetches the events that reset the client's cursor to the fork. Then the feed ends, and the client reconnects with this cursor. */
  async #fetchFork(follower: Follower, fork: number): Promise<void> {
    const { position } = follower;
    if (position <= fork) throw Fault.tryLater('the log went back');
    const request = { ...this.#reader, sinceVersion: AFTER_ALL_VERSIONS, upTo: fork };
    const { readThrough, unread } = await this.#query((database) => loadReadState(database, request));
    follower.position = fork;
    const gap = { type: 'gap', from: fork + 1, to: position } as const;
    const ready = { type: 'ready', sequence: fork, readThrough, unreadCount: unread } as const;
    this.#batch = { events: [gap, ready], count: 2, isReplay: false, singleReadReplay: null };
  }

  /** Fetches the next single reads that the shared state lacks. The unread count matches the events that were delivered so far. */
  async #fetchSingleReads(follower: Follower): Promise<void> {
    const state = this.#singleReadReplay?.state ?? follower.dueReadState();
    if (!state) return;
    const range = { ...this.#reader, sinceVersion: follower.version, upToVersion: state.version };
    const after = this.#singleReadReplay?.after ?? 0;
    const total = this.#singleReadReplay?.remaining ?? (await this.#limitedQuery((database) => countSingleReads(database, range)));
    const reads = await this.#limitedQuery((database) => listSingleReads(database, { ...range, after }));
    // A read that the watermark has passed meanwhile is no longer stored: a later state covers it.
    const remaining = reads.length < MAX_EVENT_IDS ? 0 : Math.max(total - reads.length, 0);
    const unreadCount = this.#countUnread(follower, state) + remaining;
    const notificationIds = reads.map(({ id }) => id);
    const event: FeedEvent = { type: 'read', readThrough: state.readThrough, notificationIds, unreadCount };
    const progress = { state: { ...state, notificationIds: null }, after: reads.at(-1)?.sequence ?? after, remaining };
    this.#setBatch([event], notificationIds.length * ID_BYTES, progress);
  }

  /** The event of the user's read state; null if the feed has delivered that state, or cannot deliver it yet. */
  #takeReadState(follower: Follower): FeedEvent | null {
    const state = follower.dueReadState();
    if (!state || state.version < follower.version || this.#lacksSingleReads) return null;
    const isNewer = state.version > follower.version;
    if (!isNewer && state.prunedThrough <= this.#prunedThrough) return null;
    this.#recordDelivered(follower, state);
    const unreadCount = this.#countUnread(follower, state);
    // What retention removes is mostly read already.
    if (!isNewer && unreadCount === this.#clientUnread) return null;
    const { readThrough, notificationIds: ids } = state;
    return { type: 'read', readThrough, notificationIds: ids ?? [], unreadCount };
  }

  /** Entries that were delivered after the state was read count as unread. */
  #countUnread({ position }: Follower, { unread, last }: ReadState): number {
    return unread + (position - last);
  }

  /** A query that reads the log: few of a user run at once, so they do not wait for the user's other statements as well. */
  #limitedQuery<Result>(query: (database: Database) => Promise<Result>): Promise<Result> {
    const queryIfOpen = async () => {
      // The feed may have ended while it waited.
      if (this.isEnded) throw Fault.tryLater('the feed has ended');
      return query(this.#hubs.database);
    };
    return this.#query(() => this.#hubs.logQueries.run(this.#scope.viewer.userId, queryIfOpen));
  }

  /** A query that is retried during an outage of the database: a feed that has begun continues when the database is back. */
  async #query<Result>(query: (database: Database) => Promise<Result>): Promise<Result> {
    for (;;) {
      try {
        return await query(this.#scope.database);
      } catch (failure) {
        if (this.isEnded || toFault(failure).code !== 'service_unavailable') throw failure;
        await sleep(RETRY_MS * (0.5 + Math.random()));
        if (this.isEnded) throw failure;
      }
    }
  }
}
