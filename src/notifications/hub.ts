import { setImmediate } from 'node:timers/promises';
import type { LimitFunction } from 'p-limit';
import { coalesceCalls } from '../kernel/coalesce.ts';
import { getOrInsert } from '../kernel/map.ts';
import type { Evictable, MemoryBudget } from '../kernel/memorybudget.ts';
import type { Database } from '../platform/database.ts';
import { loadEntries } from './entries.ts';
import {
  AFTER_ALL_VERSIONS,
  ID_BYTES,
  type LogCheckpoint,
  loadEnd,
  loadReadState,
  MAX_SEQUENCE,
  type Position,
  type ReaderKey,
  type ReadState,
} from './log.ts';
import type { Throttle } from './throttle.ts';
import { BATCH, type LiveEntry, Window } from './window.ts';

/** A broadcast yields to the event loop after this time. */
const BROADCAST_SLICE_MS = 0.5;
/** Only events that are rendered for one subscriber alone, and are large, take as long. */
const SLOW_SLICE_MS = 2;
/** How long the next batch waits for followers that are still reading the window. Slower ones start to lag. */
const MAX_ROOM_WAIT_MS = 100;
/** How often it looks whether there is room: that visits each follower. */
const ROOM_INTERVAL_MS = 10;

/**
 * Of the entries that have left the window, a hub remembers one in `CHECKPOINT_INTERVAL`, and at most `MAX_CHECKPOINTS` of them, to find
 * out how far the log went back: they cover some 8,000 entries.
 */
const CHECKPOINT_INTERVAL = 128;
const MAX_CHECKPOINTS = 64;

/** A user whose read state is followed by one feed or several. */
class Reader implements Evictable {
  /** The newest state that was read; null before the first one. */
  state: ReadState | null = null;
  readonly followers = new Set<Follower>();
  isRefreshing = false;
  /** Whether a refresh waits for those of other readers. */
  isQueued = false;
  /** Whether the state has to be read, or read again. */
  isStale = false;

  constructor(readonly userId: string) {}

  /** Drops the ids of single reads in favour of other readers: a feed that still needs them fetches them itself. */
  evict(): void {
    if (this.state) this.state = { ...this.state, notificationIds: null };
  }
}

/** A feed, as its hub calls it. */
export interface Subscriber {
  /** Called when entries, or a read state, are available. */
  notify(): void;
  /** Called at shutdown. */
  end(): void;
  /**
   * Called when the log went back: the database was restored from a backup, or a standby that lacked entries was promoted. The entries
   * after the sequence `fork` are no longer in the log, or have other numbers.
   */
  goBack(fork: number): void;
}

/**
 * One feed's position in a hub. It stores no entries, as the hub's window is shared. A feed that lags behind the window reads
 * the log, so a slow reader costs neither memory nor events.
 */
export class Follower {
  /** The last sequence that the feed has delivered. */
  position: number;
  /** The version of the read state that the feed has delivered; -1 before its first. */
  version = -1;

  constructor(
    private readonly hub: Hub,
    readonly reader: Reader,
    readonly subscriber: Subscriber,
  ) {
    this.position = hub.position;
  }

  /** The last sequence that the hub has read. */
  get highWatermark(): number {
    return this.hub.position;
  }

  /** Whether the next entry is no longer in the window, so that it has to be read from the log. */
  get isLagging(): boolean {
    return this.hub.isLagging(this.position);
  }

  /** The entry after the position; null at the high watermark, and where the feed is lagging. */
  read(): LiveEntry | null {
    return this.hub.entryAfter(this.position);
  }

  /** The user's read state; null while it counts entries that the feed has not delivered yet. */
  dueReadState(): ReadState | null {
    const { state } = this.reader;
    return state && state.last <= this.position ? state : null;
  }

  /**
   * Whether the feed has to fetch the single reads of that state itself: they are too many for one event, or the feed has
   * missed an earlier state.
   */
  get lacksSingleReads(): boolean {
    const state = this.dueReadState();
    if (!state || state.version <= this.version) return false;
    return state.notificationIds === null || state.sinceVersion > this.version;
  }

  leave(): void {
    this.hub.remove(this);
  }
}

interface HubDependencies {
  readonly database: Database;
  readonly projectId: string;
  readonly throttle: Throttle;
  /** The budget of the windows of all hubs. */
  readonly windows: MemoryBudget;
  /** The budget of the single reads in the states of all readers. */
  readonly singleReads: MemoryBudget;
  /** Limits the reads of states that concern all readers, of all hubs together. */
  readonly limitRefreshes: LimitFunction;
  readonly onFailure: (failure: unknown) => void;
  /** Called when the log no longer has the entry at the hub's position. */
  readonly onReplaced: () => void;
  /** Called when the last follower has left. */
  readonly onEmpty: (hub: Hub) => void;
}

/**
 * Reads one project's log once for all feeds that follow it. The next batch is read when most of the followers that keep up have
 * room for it, or after `MAX_ROOM_WAIT_MS`: followers slower than that start to lag.
 */
export class Hub implements Evictable {
  readonly projectId: string;
  /** The last sequence that was read from the log. */
  position = 0;
  /** The id of the entry at the position; null where there is none. */
  #lastId: string | null = null;
  /** Entries that the window no longer has: the first that is known, and one in `CHECKPOINT_INTERVAL` of the newest. */
  readonly #olderCheckpoints: LogCheckpoint[] = [];
  /** The number of followers that are waiting for the hub to open. */
  joining = 0;
  readonly followers = new Set<Follower>();
  readonly #readers = new Map<string, Reader>();
  /** The users whose read state went back, although it may have as many changes again. */
  readonly lostReaders = new Set<string>();
  /** The newest entries, up to the position. */
  readonly #window = new Window();
  /** Whether the log has, or may have, entries after the position. */
  #hasMore = false;
  /** The number of announcements of entries. */
  #announced = 0;
  /** Whether the log had more entries than fitted into the last batch. */
  #isCatchingUp = false;
  /** The last sequence of the log at the last poll. */
  #logPosition = 0;
  /** The last sequence that retention has removed, at the last poll. */
  #prunedThrough = 0;
  #opening: Promise<void> | null = null;
  /** Whether a batch is being read or broadcast. */
  #isReading = false;
  /** Looks for room again; null while no batch waits for it. */
  #roomTimer: NodeJS.Timeout | null = null;
  readonly #readBatch = coalesceCalls(() => this.#read());

  constructor(private readonly dependencies: HubDependencies) {
    this.projectId = dependencies.projectId;
  }

  /** Reads the end of the log as the hub's position, once; after a failure the next call tries again. */
  open(): Promise<void> {
    this.#opening ??= loadEnd(this.dependencies.database, this.projectId).then(
      ({ last, id, prunedThrough }) => {
        this.position = last;
        this.#lastId = id;
        this.#prunedThrough = prunedThrough;
        this.#remember();
      },
      (failure) => {
        this.#opening = null;
        throw failure;
      },
    );
    return this.#opening;
  }

  follow(userId: string, subscriber: Subscriber): Follower {
    const reader = getOrInsert(this.#readers, userId, () => new Reader(userId));
    const follower = new Follower(this, reader, subscriber);
    reader.followers.add(follower);
    this.followers.add(follower);
    return follower;
  }

  remove(follower: Follower): void {
    const { reader } = follower;
    this.followers.delete(follower);
    reader.followers.delete(follower);
    if (reader.followers.size === 0) {
      this.dependencies.singleReads.release(reader);
      if (this.#readers.get(reader.userId) === reader) this.#readers.delete(reader.userId);
    }
    if (this.followers.size > 0) return;
    if (this.#roomTimer) clearTimeout(this.#roomTimer);
    this.#roomTimer = null;
    this.dependencies.onEmpty(this);
  }

  /** Drops the window in favour of other hubs: followers that need it read the log. */
  evict(): void {
    this.#window.clear();
  }

  isLagging(position: number): boolean {
    return position < this.position && this.#window.lacks(position);
  }

  entryAfter(position: number): LiveEntry | null {
    if (position < this.position) return this.#window.entryAfter(position);
    if (this.#hasMore && !this.#isReading) this.requestBatch();
    return null;
  }

  readers(): ReaderKey[] {
    return [...this.#readers.keys()].map((userId) => ({ projectId: this.projectId, userId }));
  }

  /** The number of entries by which the hub lags behind the log, and its slowest follower behind the hub. */
  measure(): { lag: number; backlog: number } {
    let slowest = this.position;
    for (const { position } of this.followers) slowest = Math.min(slowest, position);
    return { lag: Math.max(0, this.#logPosition - this.position), backlog: this.position - slowest };
  }

  /** Announces entries, and reads the next batch when the followers that keep up have room for it, or have had time to make some. */
  requestBatch(): void {
    this.#announced += 1;
    this.#hasMore = true;
    // A batch that is being read asks again at its end.
    if (!this.#isReading && !this.#roomTimer) this.#readWithRoom(MAX_ROOM_WAIT_MS);
  }

  #readWithRoom(leftMs: number): void {
    const isNow = leftMs <= 0 || this.#hasRoom();
    this.#roomTimer = isNow ? null : setTimeout(() => this.#readWithRoom(leftMs - ROOM_INTERVAL_MS), ROOM_INTERVAL_MS).unref();
    if (isNow) this.#readBatch().catch(this.dependencies.onFailure);
  }

  /** Reads a user's read state again. */
  refreshReadState(userId: string): void {
    const reader = this.#readers.get(userId);
    if (!reader) return;
    reader.isStale = true;
    if (!reader.isRefreshing) this.#refresh(reader).catch(this.dependencies.onFailure);
  }

  /** Reads a state again when few of those of others are being read: what concerns all readers would take every connection to the database. */
  #refreshInTurn(reader: Reader): void {
    if (reader.isQueued) return;
    reader.isQueued = true;
    const refresh = async () => {
      reader.isQueued = false;
      reader.isStale = true;
      if (!reader.isRefreshing && this.#readers.get(reader.userId) === reader) await this.#refresh(reader);
    };
    this.dependencies.limitRefreshes(refresh).catch(this.dependencies.onFailure);
  }

  /** Ends a user's feeds whose last read state the database no longer has, as it went back. Their clients reconnect. */
  forget(userId: string): void {
    this.lostReaders.delete(userId);
    const reader = this.#readers.get(userId);
    if (!reader) return;
    this.#readers.delete(userId);
    for (const { subscriber } of [...reader.followers]) subscriber.goBack(MAX_SEQUENCE);
  }

  /** The entry at the position; null where there is none. */
  lastEntry(): LogCheckpoint | null {
    return this.#lastId === null ? null : { projectId: this.projectId, sequence: this.position, id: this.#lastId };
  }

  /** Entries that were read, in order: some older ones, and all of the newest. */
  checkpoints(): LogCheckpoint[] {
    const inWindow = this.#window.entries.map(({ sequence, event }) => ({
      projectId: this.projectId,
      sequence,
      id: event.notification.id,
    }));
    const last = this.lastEntry();
    const newest = inWindow.length === 0 && last ? [last] : inWindow;
    const first = newest[0]?.sequence ?? Number.POSITIVE_INFINITY;
    return [...this.#olderCheckpoints.filter(({ sequence }) => sequence < first), ...newest];
  }

  #remember(): void {
    const last = this.lastEntry();
    if (!last || last.sequence - (this.#olderCheckpoints.at(-1)?.sequence ?? Number.NEGATIVE_INFINITY) < CHECKPOINT_INTERVAL) return;
    this.#olderCheckpoints.push(last);
    if (this.#olderCheckpoints.length > MAX_CHECKPOINTS) this.#olderCheckpoints.splice(1, 1);
  }

  /** The positions of the log and of the read states that this hub has read, by user id; the log's is that of null. */
  positions(): Map<string | null, number> {
    const versions = [...this.#readers.values()].map(({ userId, state }) => [userId, state?.version ?? 0] as const);
    return new Map<string | null, number>([[null, this.position], ...versions]);
  }

  /** Reads what a poll has found to be new. Retention changes the unread count of every reader. */
  catchUp({ userId, position, prunedThrough }: Position): void {
    if (userId !== null) {
      if (position > (this.#readers.get(userId)?.state?.version ?? 0)) this.refreshReadState(userId);
      return;
    }
    this.#logPosition = position;
    if (position > this.position) this.requestBatch();
    const hasPruned = prunedThrough > this.#prunedThrough;
    this.#prunedThrough = prunedThrough;
    for (const reader of this.#readers.values()) if (hasPruned || reader.isStale) this.#refreshInTurn(reader);
  }

  /** Whether the window has space, or half of the followers that keep up are in its newer half: the others still find their entries. */
  #hasRoom(): boolean {
    if (!this.#window.isFull) return true;
    let active = 0;
    let recent = 0;
    for (const { position } of this.followers) {
      // A lagging follower reads the log: waiting for it would not help it.
      if (this.isLagging(position)) continue;
      active += 1;
      if (this.#window.isRecent(position)) recent += 1;
    }
    return recent * 2 >= active;
  }

  async #read(): Promise<void> {
    this.#isReading = true;
    try {
      await this.#readNext();
    } finally {
      this.#isReading = false;
    }
    if (this.#hasMore) this.requestBatch();
  }

  async #readNext(): Promise<void> {
    // A wake-up may come before the position is known.
    await this.open();
    // A hub that is catching up does not pause.
    if (!this.#isCatchingUp) await this.dependencies.throttle.wait(() => this.#announced);
    this.#hasMore = false;
    const range = { after: this.position, afterId: this.#lastId, ...BATCH };
    const batch = await loadEntries(this.dependencies.database, this.projectId, range);
    if (!batch.isContinued) return this.dependencies.onReplaced();
    this.#isCatchingUp = batch.hasMore;
    if (this.followers.size + this.joining === 0) return;
    const last = batch.entries.at(-1);
    if (!last) return this.#skipPruned();
    this.#window.add(batch);
    this.position = last.sequence;
    this.#lastId = last.id;
    this.#remember();
    this.dependencies.windows.reserve(this, this.#window.bytes);
    this.#hasMore ||= batch.hasMore;
    await this.#notify(this.followers);
  }

  /** Where the log has nothing after the position, skips what retention has removed before it was read: each feed delivers a gap in its place. */
  async #skipPruned(): Promise<void> {
    if (this.#prunedThrough <= this.position) return;
    this.position = this.#prunedThrough;
    this.#lastId = null;
    this.#window.clear();
    this.dependencies.windows.release(this);
    await this.#notify(this.followers);
  }

  /**
   * Notifies subscribers; those that keep up read what is new within the call. Other work runs in between: after a subscriber that took
   * long, for as long as that took, also where other hubs, or entries and read states, broadcast at the same time.
   */
  async #notify(followers: Iterable<Follower>): Promise<void> {
    const { throttle } = this.dependencies;
    await throttle.rest();
    let startedAt = performance.now();
    for (const { subscriber } of followers) {
      subscriber.notify();
      const tookMs = performance.now() - startedAt;
      if (tookMs < BROADCAST_SLICE_MS) continue;
      throttle.recordTime(tookMs);
      if (tookMs < SLOW_SLICE_MS) await setImmediate();
      else throttle.beginRest(tookMs);
      await throttle.rest();
      startedAt = performance.now();
    }
    throttle.recordTime(performance.now() - startedAt);
  }

  /** One state for all feeds that are ready; if one of them has missed too many single reads, for those that had the last state. */
  async #loadSharedState({ userId, followers, state }: Reader): Promise<ReadState> {
    const key = { projectId: this.projectId, userId };
    let sinceVersion = AFTER_ALL_VERSIONS;
    for (const { version } of followers) if (version >= 0) sinceVersion = Math.min(sinceVersion, version);
    const read = await loadReadState(this.dependencies.database, { ...key, sinceVersion });
    if (read.notificationIds !== null || !state || state.version <= sinceVersion) return read;
    return loadReadState(this.dependencies.database, { ...key, sinceVersion: state.version });
  }

  async #refresh(reader: Reader): Promise<void> {
    reader.isRefreshing = true;
    try {
      while (reader.isStale) {
        reader.isStale = false;
        const state = await this.#loadSharedState(reader);
        if (reader.state && hasGoneBack(reader.state, state)) {
          // The next poll ends the feeds, once it has compared the log, which then may have gone back too.
          this.lostReaders.add(reader.userId);
          return;
        }
        reader.state = state;
        const ids = reader.followers.size > 0 ? state.notificationIds : null;
        this.dependencies.singleReads.reserve(reader, (ids?.length ?? 0) * ID_BYTES);
        // The state counts all entries of the log: those that the hub has not read yet are delivered before the state.
        if (state.last > this.position) this.requestBatch();
        await this.#notify(reader.followers);
      }
    } catch (failure) {
      // The next poll tries again.
      reader.isStale = true;
      throw failure;
    } finally {
      reader.isRefreshing = false;
    }
  }
}

/** Whether a read state is no later form of another: the database lacks changes that were read, and may have others in their place. */
function hasGoneBack(before: ReadState, after: ReadState): boolean {
  if (after.version < before.version || after.readThrough < before.readThrough) return true;
  if (after.version > before.version) return false;
  if (after.readThrough !== before.readThrough) return true;
  return after.last === before.last && after.prunedThrough === before.prunedThrough && after.unread !== before.unread;
}
