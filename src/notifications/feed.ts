import { setTimeout as sleep } from 'node:timers/promises';
import type { ProjectScope } from '../access/scope.ts';
import type { Lease } from '../access/watch.ts';
import type { WatchAccess } from '../graph/context.ts';
import { Source } from '../graph/source.ts';
import type { Evictable } from '../kernel/budget.ts';
import { toFault } from '../platform/errors.ts';
import { nextLimit } from './batch.ts';
import type { Follower } from './hub.ts';
import type { Hubs } from './hubs.ts';
import {
  countReads,
  listReads,
  MAX_EVENT_IDS,
  type NotificationEvent,
  type ReadState,
  readLast,
  readState,
  readToldVersion,
  readVersion,
} from './log.ts';
import { listEntries } from './service.ts';

/** The events of a feed, in the order of the log. */
export type FeedEvent =
  | { readonly type: 'ready'; readonly sequence: number; readonly readThrough: number; readonly unreadCount: number }
  | NotificationEvent
  | { readonly type: 'read'; readonly readThrough: number; readonly notificationIds: readonly string[]; readonly unreadCount: number }
  | { readonly type: 'gap'; readonly from: number; readonly to: number };

/** A replayed batch of the log: less than one write takes, also with the envelopes of its messages. */
const REPLAY_BATCH = { limit: 50, maxBytes: 48 * 1024 } as const;
const FIRST_LIMIT = 4;
const RETRY_MS = 500;
/** What an id takes in memory. */
const ID_BYTES = 64;
/** The array is shared by all feeds that hold no events. */
const noEvents: FeedEvent[] = [];

/**
 * The project's notifications from a cursor on, each once and in order: first the entries of the log, then one `ready`,
 * then live entries. Without a cursor the feed starts with `ready`. Entries that retention has removed, and a cursor beyond
 * the end of the log, are delivered as a `gap`. Nothing is opened before the first event is fetched.
 */
export function openFeed(scope: ProjectScope, sources: FeedSources, after: number | null): Source<FeedEvent> {
  return new Feed(scope, sources, after);
}

interface FeedSources {
  readonly hubs: Hubs;
  /** Ends the feed when the scope no longer holds. */
  readonly watchAccess: WatchAccess;
}

/** The state of a feed that has not joined its hub yet. */
interface Beginning {
  readonly watchAccess: WatchAccess;
  readonly after: number | null;
}

/** The progress of a delivery of single reads in several events, in the order of the log. */
interface ReadReplay {
  /** The state that the last of these events completes. */
  readonly state: ReadState;
  /** The number of the last notification that was delivered as read. */
  readonly after: number;
  /** The count of the reads that are still to be delivered. */
  readonly left: number;
}

/**
 * Live entries are read from the hub. All other events are fetched, a batch at a time: the log from the cursor up to the
 * hub's position when the feed joined it, the `ready` behind that, and the entries and the single reads that a slow reader
 * has missed. Such a batch can be dropped at any time, as the feed's place moves only with the events that are read.
 */
class Feed extends Source<FeedEvent> implements Evictable {
  readonly #scope: ProjectScope;
  readonly #hubs: Hubs;
  /** Null once the feed has joined its hub. */
  #beginning: Beginning | null;
  #follower: Follower | null = null;
  #lease: Lease | null = null;
  /** The hub's position when the feed joined it. */
  #boundary = 0;
  /** The version of the read state when the replay up to there began; null without one. */
  #versionBefore: number | null = null;
  #isReady = false;
  #fetching: Promise<void> | null = null;
  /** The events that were fetched and are still to be read. */
  #fetched: FeedEvent[] = noEvents;
  /** How many events were fetched. */
  #fetchedCount = 0;
  /** Whether the fetched events can be fetched again. */
  #isReplay = false;
  /** Null while no single reads are being delivered in several events. */
  #readReplay: ReadReplay | null = null;
  /** The progress once the fetched event has been read. */
  #nextReadReplay: ReadReplay | null = null;
  /** How many entries the next batch may have: few, until it is known how large they are. */
  #limit: number = FIRST_LIMIT;
  /** Retention's watermark, as it was delivered last. */
  #prunedThrough = 0;

  constructor(scope: ProjectScope, { hubs, watchAccess }: FeedSources, after: number | null) {
    super();
    this.#scope = scope;
    this.#hubs = hubs;
    this.#beginning = { watchAccess, after };
  }

  override read(): FeedEvent | null {
    if (this.isEnded || this.#fetching) return null;
    if (this.#fetched.length > 0) return this.#readFetched();
    const follower = this.#follower;
    if (!this.#isReady || !follower) return null;
    const entry = follower.read();
    if (entry === null) return follower.isLagging ? null : this.#readState(follower);
    follower.position = entry.sequence;
    return entry.event;
  }

  override get needsFetch(): boolean {
    if (this.isEnded || this.#fetched.length > 0) return false;
    return !this.#isReady || this.#follower?.isLagging === true || this.#lacksReads;
  }

  get #reader() {
    return { projectId: this.#scope.projectId, userId: this.#scope.viewer.userId };
  }

  get #lacksReads(): boolean {
    return this.#readReplay !== null || this.#follower?.lacksReads === true;
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
    if (this.#fetched.length > 0 && this.#isReplay) this.#hubs.replays.release(this);
    this.evict();
  }

  evict(): void {
    if (this.#fetched.length === 0 || !this.#isReplay) return;
    // A reader that reads part of a batch of the log gets a batch of that length the next time.
    if (this.#fetched[0]?.type !== 'read') this.#limit = Math.max(1, this.#fetchedCount - this.#fetched.length);
    this.#fetched = noEvents;
  }

  override end(failure: unknown = null): void {
    this.#lease?.stop();
    this.#follower?.leave();
    this.#hubs.replays.release(this);
    this.#fetched = noEvents;
    super.end(failure);
  }

  #readFetched(): FeedEvent | null {
    const event = this.#fetched.shift() ?? null;
    if (event && this.#isReplay && this.#follower) this.#moveTo(event, this.#follower);
    if (this.#fetched.length > 0) return event;
    this.#fetched = noEvents;
    if (this.#isReplay) this.#hubs.replays.release(this);
    return event;
  }

  #moveTo(event: FeedEvent, follower: Follower): void {
    if (event.type === 'gap') follower.position = event.to;
    else if (event.type !== 'read') follower.position = event.sequence;
    else if (this.#nextReadReplay) this.#moveReadsTo(follower, this.#nextReadReplay);
  }

  #moveReadsTo(follower: Follower, replay: ReadReplay): void {
    this.#readReplay = replay.left > 0 ? replay : null;
    if (replay.left === 0) this.#reach(follower, replay.state);
  }

  #reach(follower: Follower, { version, prunedThrough }: ReadState): void {
    follower.version = version;
    this.#prunedThrough = prunedThrough;
  }

  /** The next events that cannot be had from the hub. */
  async #fetchNext(): Promise<void> {
    if (this.#beginning) return this.#join(this.#beginning);
    const follower = this.#follower;
    if (!follower) return;
    if (this.#isReady && follower.isLagging) return this.#replay(follower, follower.highWatermark);
    if (this.#isReady) return this.#fetchReads(follower);
    if (follower.position >= this.#boundary) return this.#fetchReady(follower);
    this.#versionBefore ??= await this.#persist(() => readVersion(this.#scope.database, this.#reader));
    return this.#replay(follower, this.#boundary);
  }

  #setFetched(events: FeedEvent[], isReplay: boolean): void {
    if (this.isEnded) return;
    this.#fetched = events;
    this.#fetchedCount = events.length;
    this.#isReplay = isReplay;
  }

  /** Joins the hub, with the reader's cursor as the position; a cursor beyond the end of the log is a gap. */
  async #join({ watchAccess, after }: Beginning): Promise<void> {
    const { database, projectId, viewer } = this.#scope;
    this.#beginning = null;
    this.#lease = watchAccess(this.#scope, this);
    const follower = await this.#hubs.follow(projectId, viewer.userId, this);
    this.#follower = follower;
    if (this.isEnded) follower.leave();
    this.#boundary = follower.position;
    if (after === null) return;
    follower.position = after;
    if (after <= this.#boundary) return;
    // Another process may have shown the reader more than the hub has read so far.
    const last = await readLast(database, projectId);
    if (after <= last) return;
    follower.position = last;
    this.#setFetched([{ type: 'gap', from: last + 1, to: after }], false);
  }

  /** The next entries of the log between the position and a number that is in it. */
  async #replay(follower: Follower, upTo: number): Promise<void> {
    const { position } = follower;
    const range = { after: position, upTo, ...REPLAY_BATCH, limit: this.#limit };
    const batch = await this.#persist(() => this.#hubs.inTurn(() => listEntries(this.#scope, range)));
    const events: FeedEvent[] = [];
    let last = position;
    for (const notification of batch.entries) {
      const { sequence } = notification;
      if (sequence > last + 1) events.push({ type: 'gap', from: last + 1, to: sequence - 1 });
      events.push({ type: 'notification', sequence, notification });
      last = sequence;
    }
    if (events.length === 0) events.push({ type: 'gap', from: position + 1, to: upTo });
    this.#limit = Math.min(2 * this.#limit, nextLimit(batch, REPLAY_BATCH));
    this.#setFetched(events, true);
    if (!this.isEnded) this.#hubs.replays.hold(this, batch.bytes);
  }

  async #fetchReady(follower: Follower): Promise<void> {
    const [{ database }, { position }] = [this.#scope, follower];
    const asked = { ...this.#reader, sinceVersion: Number.MAX_SAFE_INTEGER, upTo: position };
    const state = await this.#persist(() => readState(database, asked));
    const sinceVersion = this.#versionBefore ?? state.version;
    const version = await this.#persist(() => readToldVersion(database, state, { ...this.#reader, position, sinceVersion }));
    this.#reach(follower, { ...state, version });
    this.#isReady = true;
    this.#setFetched([{ type: 'ready', sequence: position, readThrough: state.readThrough, unreadCount: state.unread }], false);
  }

  /** The next single reads that no shared state has for this feed. The unread count agrees with what has been delivered so far. */
  async #fetchReads(follower: Follower): Promise<void> {
    const state = this.#readReplay?.state ?? follower.readState();
    if (!state) return;
    const range = { ...this.#reader, sinceVersion: follower.version, upToVersion: state.version };
    const inTurn = <Result>(work: () => Promise<Result>) => this.#persist(() => this.#hubs.inTurn(work));
    const { after, left } = this.#readReplay ?? { after: 0, left: await inTurn(() => countReads(this.#scope.database, range)) };
    const reads = await inTurn(() => listReads(this.#scope.database, { ...range, after }));
    // A read that has fallen below the watermark meanwhile is no longer there: a later state covers it.
    const stillLeft = reads.length < MAX_EVENT_IDS ? 0 : Math.max(left - reads.length, 0);
    const unreadCount = this.#countUnread(follower, state) + stillLeft;
    const notificationIds = reads.map(({ id }) => id);
    this.#nextReadReplay = { state: { ...state, notificationIds: null }, after: reads.at(-1)?.sequence ?? after, left: stillLeft };
    this.#setFetched([{ type: 'read', readThrough: state.readThrough, notificationIds, unreadCount }], true);
    if (!this.isEnded) this.#hubs.replays.hold(this, notificationIds.length * ID_BYTES);
  }

  /** The user's read state, where the feed has not delivered it yet. */
  #readState(follower: Follower): FeedEvent | null {
    const state = follower.readState();
    if (!state || state.version < follower.version || this.#lacksReads) return null;
    if (state.version === follower.version && state.prunedThrough <= this.#prunedThrough) return null;
    this.#reach(follower, state);
    const { readThrough, notificationIds: ids } = state;
    return { type: 'read', readThrough, notificationIds: ids ?? [], unreadCount: this.#countUnread(follower, state) };
  }

  /** An entry that was delivered since the state was read is unread by it. */
  #countUnread({ position }: Follower, { unread, last }: ReadState): number {
    return unread + (position - last);
  }

  /** A feed that has begun outlives an outage of the database: it goes on when the database is back. */
  async #persist<Result>(work: () => Promise<Result>): Promise<Result> {
    for (;;) {
      try {
        return await work();
      } catch (failure) {
        if (this.isEnded || toFault(failure).code !== 'service_unavailable') throw failure;
        await sleep(RETRY_MS * (0.5 + Math.random()));
      }
    }
  }
}
