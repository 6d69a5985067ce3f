import { setTimeout as sleep } from 'node:timers/promises';
import type { Lease } from '../access/revocation.ts';
import type { ProjectScope } from '../access/scope.ts';
import type { WatchAccess } from '../graph/context.ts';
import { Source } from '../graph/source.ts';
import { Fault } from '../kernel/fault.ts';
import type { Evictable } from '../kernel/memorybudget.ts';
import type { Database } from '../platform/database.ts';
import { toFault } from '../platform/errors.ts';
import { DeliveredState, type RetriedQueries, type SingleReadReplay } from './deliveredstate.ts';
import { loadEntries } from './entries.ts';
import type { FeedEvent } from './events.ts';
import type { Follower, Subscriber } from './follower.ts';
import type { Hubs } from './hubs.ts';
import { loadLastSequence } from './log.ts';
import { ID_BYTES } from './readstate.ts';

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
class Feed extends Source<FeedEvent> implements Evictable, Subscriber, RetriedQueries {
  readonly #scope: ProjectScope;
  readonly #hubs: Hubs;
  /** Joins the hub; null once that has begun. */
  #startJoin: (() => Promise<void>) | null;
  #follower: Follower | null = null;
  readonly #lease: Lease;
  /** The hub's position when the feed joined it. */
  #boundary = 0;
  #isReady = false;
  #fetching: Promise<void> | null = null;
  #batch: FetchedEvents | null = null;
  /** The limit of entries in the next batch: low until their sizes are known. */
  #limit: number = FIRST_LIMIT;
  readonly #delivered: DeliveredState;
  /** The last sequence that the log still has in common with what was delivered, after it went back; null if it has not. */
  #fork: number | null = null;

  constructor(scope: ProjectScope, { hubs, watchAccess }: FeedDependencies, after: number | null) {
    super();
    this.#scope = scope;
    this.#hubs = hubs;
    this.#delivered = new DeliveredState(scope, this);
    this.#startJoin = () => this.#join(after);
    // A client that does not read may put off the first event for minutes.
    this.#lease = watchAccess(scope, this);
  }

  override read(): FeedEvent | null {
    const event = this.#readNext();
    if (event) this.#delivered.recordEvent(event);
    return event;
  }

  #readNext(): FeedEvent | null {
    if (this.isEnded || this.#fetching) return null;
    if (this.#batch) return this.#readBatch(this.#batch);
    if (this.#fork !== null) return null;
    const follower = this.#follower;
    if (!this.#isReady || !follower) return null;
    const entry = follower.read();
    if (entry === null) return follower.isLagging ? null : this.#delivered.take(follower);
    follower.position = entry.sequence;
    return entry.event;
  }

  get turnKey(): string {
    return this.#scope.viewer.userId;
  }

  override get needsFetch(): boolean {
    if (this.isEnded) return false;
    // Events under way are not readable yet, even where they have arrived.
    if (this.#fetching) return true;
    if (this.#batch) return false;
    return !this.#isReady || this.#fork !== null || this.#follower?.isLagging === true || this.#delivered.lacksSingleReads(this.#follower);
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
    else if (singleReadReplay) this.#delivered.recordSingleReads(follower, singleReadReplay);
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
    await this.#delivered.beginReplay();
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
    const { projectId, viewer } = this.#scope;
    const readBy = this.#isReady ? undefined : viewer.userId;
    const range = { after: position, upTo, userId: readBy, limit: this.#limit, maxBytes: REPLAY_BATCH.maxBytes };
    const batch = await this.retryLimited((database) => loadEntries(database, projectId, range));
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
    const ready = await this.#delivered.loadReady(follower);
    this.#isReady = true;
    this.#setBatch([ready], null);
  }

  /** Fetches the events that reset the client's cursor to the fork. Then the feed ends, and the client reconnects with this cursor. */
  async #fetchFork(follower: Follower, fork: number): Promise<void> {
    const { position } = follower;
    if (position <= fork) throw Fault.tryLater('the log went back');
    const ready = await this.#delivered.loadFork(fork);
    follower.position = fork;
    const gap = { type: 'gap', from: fork + 1, to: position } as const;
    this.#batch = { events: [gap, ready], count: 2, isReplay: false, singleReadReplay: null };
  }

  async #fetchSingleReads(follower: Follower): Promise<void> {
    const loaded = await this.#delivered.loadSingleReads(follower);
    if (loaded) this.#setBatch([loaded.event], loaded.event.notificationIds.length * ID_BYTES, loaded.replay);
  }

  /** Runs a query that reads the log: few of a user run at once, so they do not wait for the user's other statements as well. */
  retryLimited<Result>(query: (database: Database) => Promise<Result>): Promise<Result> {
    const queryIfOpen = async () => {
      // The feed may have ended while it waited.
      if (this.isEnded) throw Fault.tryLater('the feed has ended');
      return query(this.#hubs.database);
    };
    return this.retry(() => this.#hubs.logQueries.run(this.#scope.viewer.userId, queryIfOpen));
  }

  /** Retries a query during an outage of the database: a feed that has begun continues when the database is back. */
  async retry<Result>(query: (database: Database) => Promise<Result>): Promise<Result> {
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
