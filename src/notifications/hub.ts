import { setImmediate } from 'node:timers/promises';
import type { Consumer } from '../graph/source.ts';
import type { Evictable, MemoryBudget } from '../kernel/budget.ts';
import { coalesceCalls } from '../kernel/coalesce.ts';
import { getOrInsert } from '../kernel/map.ts';
import type { Database } from '../platform/database.ts';
import { nextLimit, readEntries } from './batch.ts';
import { type Position, type ReadState, readLast, readState } from './log.ts';
import type { Throttle } from './throttle.ts';
import { BATCH, type LiveEntry, Window } from './window.ts';

/** A broadcast yields to other work after so many milliseconds. */
const TURN_MS = 0.5;

/** A user whose read state is followed, by however many feeds. */
interface Reader {
  readonly userId: string;
  /** The newest state that is known; null: none yet. */
  state: ReadState | null;
  readonly followers: Set<Follower>;
  isBeingRead: boolean;
  /** Whether the state has changed again while it was being read. */
  hasChanged: boolean;
}

/** A subscriber. `onReadable` runs when entries are available; `end` runs at shutdown. */
export interface Subscriber extends Consumer {
  end(): void;
}

/**
 * One feed's place in a hub. It keeps no entries of its own: it is a number, and the hub's window is shared. A feed that
 * lags behind the window reads the log, so a slow reader costs neither memory nor events.
 */
export class Follower {
  /** The last number that the feed has delivered. */
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

  /** The high watermark: the last number that the hub has read. */
  get highWatermark(): number {
    return this.hub.position;
  }

  /** Whether the next entry is in the log, and no longer in the window. */
  get isLagging(): boolean {
    return this.hub.isLagging(this.position);
  }

  /** The entry after the position; null at the high watermark, and where the feed is lagging. */
  read(): LiveEntry | null {
    return this.hub.entryAfter(this.position);
  }

  /** A read state that counts no entry which is still to be delivered. */
  readState(): ReadState | null {
    const { state } = this.reader;
    return state && state.last <= this.position ? state : null;
  }

  /**
   * Whether the single reads of that state are to be fetched: they are too many for one event, or the feed has missed a
   * state before it.
   */
  get lacksReads(): boolean {
    const state = this.readState();
    if (!state || state.version <= this.version) return false;
    return state.notificationIds === null || state.sinceVersion > this.version;
  }

  leave(): void {
    this.hub.drop(this);
  }
}

interface HubParts {
  readonly database: Database;
  readonly projectId: string;
  readonly throttle: Throttle;
  /** The budget of the windows of all hubs. */
  readonly windows: MemoryBudget;
  readonly onFailure: (failure: unknown) => void;
  /** Called when the last follower has left. */
  readonly onEmpty: (hub: Hub) => void;
}

/**
 * Reads one project's log once, however many feeds follow it, and as fast as most of those read that keep up. Those that take
 * longer for a batch than it is from one poll to the next are left behind.
 */
export class Hub implements Evictable {
  readonly projectId: string;
  /** The last number that was read. */
  position = 0;
  /** Followers on their way in. */
  joining = 0;
  readonly followers = new Set<Follower>();
  readonly #readers = new Map<string, Reader>();
  /** The last entries up to the position. */
  readonly #window = new Window();
  #hasMore = false;
  /** How many wake-ups have announced an entry. */
  #announced = 0;
  /** Whether the log had more than the last batch took. */
  #isLagging = false;
  /** How many entries the next batch may have. */
  #limit: number = BATCH.limit;
  /** The last number in the log at the last poll, and the last one that the hub had read. */
  #logPosition = 0;
  #positionAtPoll = -1;
  #prunedThrough = 0;
  #opening: Promise<void> | null = null;
  /** Whether a batch is being read or broadcast. */
  #isReading = false;
  readonly #readBatch: () => Promise<void>;

  constructor(private readonly parts: HubParts) {
    this.projectId = parts.projectId;
    this.#readBatch = coalesceCalls(() => this.#read());
  }

  /** The first follower waits until the hub knows where the log ends; a failure leaves the next one to try again. */
  open(): Promise<void> {
    this.#opening ??= readLast(this.parts.database, this.projectId).then(
      (last) => {
        this.position = last;
      },
      (failure) => {
        this.#opening = null;
        throw failure;
      },
    );
    return this.#opening;
  }

  follow(userId: string, subscriber: Subscriber): Follower {
    const open = () => ({ userId, state: null, followers: new Set<Follower>(), isBeingRead: false, hasChanged: false });
    const reader = getOrInsert<string, Reader>(this.#readers, userId, open);
    const follower = new Follower(this, reader, subscriber);
    reader.followers.add(follower);
    this.followers.add(follower);
    return follower;
  }

  drop(follower: Follower): void {
    const { reader } = follower;
    this.followers.delete(follower);
    reader.followers.delete(follower);
    if (reader.followers.size === 0 && this.#readers.get(reader.userId) === reader) this.#readers.delete(reader.userId);
    if (this.followers.size === 0) this.parts.onEmpty(this);
  }

  /** Gives the window up for those of other hubs: followers that need it read the log. */
  evict(): void {
    this.#window.clear();
  }

  isLagging(position: number): boolean {
    return position < this.position && this.#window.lacks(position);
  }

  entryAfter(position: number): LiveEntry | null {
    if (position < this.position) return this.#window.entryAfter(position);
    if (this.#hasMore && !this.#isReading) this.readOn();
    return null;
  }

  readers(): Array<{ projectId: string; userId: string }> {
    return [...this.#readers.keys()].map((userId) => ({ projectId: this.projectId, userId }));
  }

  /** How many entries the hub is behind the log, and its slowest follower behind the hub. */
  measure(): { lag: number; backlog: number } {
    let slowest = this.position;
    for (const { position } of this.followers) slowest = Math.min(slowest, position);
    return { lag: Math.max(0, this.#logPosition - this.position), backlog: this.position - slowest };
  }

  /** Reads the next batch, once the followers that keep up have read enough to make room for it. */
  readOn(hasRoom = this.#hasRoom()): void {
    this.#announced += 1;
    this.#hasMore = true;
    if (hasRoom) this.#readBatch().catch(this.parts.onFailure);
  }

  readStateOf(userId: string): void {
    const reader = this.#readers.get(userId);
    if (!reader) return;
    reader.hasChanged = true;
    if (!reader.isBeingRead) this.#readStateOf(reader).catch(this.parts.onFailure);
  }

  /** Reads what a poll has shown to be new. Retention changes the unread count of every reader. */
  catchUp({ userId, position, prunedThrough }: Position): void {
    if (userId !== null) {
      if (position > (this.#readers.get(userId)?.state?.version ?? 0)) this.readStateOf(userId);
      return;
    }
    const isStuck = this.position === this.#positionAtPoll;
    this.#logPosition = position;
    this.#positionAtPoll = this.position;
    if (position > this.position) this.readOn(isStuck || this.#hasRoom());
    if (prunedThrough > this.#prunedThrough) for (const id of this.#readers.keys()) this.readStateOf(id);
    this.#prunedThrough = prunedThrough;
  }

  /** Half of the followers that keep up are in the newer half of the window: the others are close, and still find theirs. */
  #hasRoom(): boolean {
    if (!this.#window.isFull) return true;
    let active = 0;
    let recent = 0;
    for (const { position } of this.followers) {
      // A follower that has fallen out of the window reads the log, and gains nothing by the wait.
      if (this.isLagging(position)) continue;
      active += 1;
      if (this.#window.isRecent(position)) recent += 1;
    }
    return recent * 2 >= active;
  }

  async #read(): Promise<void> {
    this.#isReading = true;
    try {
      // A hub that lags by more than a batch does not rest.
      if (!this.#isLagging) await this.parts.throttle.wait(() => this.#announced);
      this.#hasMore = false;
      const { limit, maxBytes } = { ...BATCH, limit: this.#limit };
      const batch = await readEntries(this.parts.database, this.projectId, { after: this.position, limit, maxBytes });
      this.#isLagging = batch.hasMore;
      const last = batch.entries.at(-1);
      if (!last || this.followers.size + this.joining === 0) return;
      this.#limit = nextLimit(batch, BATCH);
      this.#window.add(batch);
      this.position = last.sequence;
      this.parts.windows.hold(this, this.#window.bytes);
      this.#hasMore ||= batch.hasMore;
      await this.#broadcast();
      if (this.#hasMore) this.readOn();
    } finally {
      this.#isReading = false;
    }
  }

  /** Calls every subscriber; those that keep up read the new entries while they are called. */
  async #broadcast(): Promise<void> {
    let began = performance.now();
    for (const { subscriber } of this.followers) {
      subscriber.onReadable();
      const tookMs = performance.now() - began;
      if (tookMs < TURN_MS) continue;
      this.parts.throttle.spend(tookMs);
      await setImmediate();
      began = performance.now();
    }
    this.parts.throttle.spend(performance.now() - began);
  }

  /** One state for all feeds that are ready; or, where one of them has missed too much, for those that had the last one. */
  async #readNewState({ userId, followers, state }: Reader): Promise<ReadState> {
    const request = { projectId: this.projectId, userId };
    let sinceVersion = Number.MAX_SAFE_INTEGER;
    for (const { version } of followers) if (version >= 0) sinceVersion = Math.min(sinceVersion, version);
    const read = await readState(this.parts.database, { ...request, sinceVersion });
    if (read.notificationIds !== null || !state || state.version <= sinceVersion) return read;
    return readState(this.parts.database, { ...request, sinceVersion: state.version });
  }

  async #readStateOf(reader: Reader): Promise<void> {
    reader.isBeingRead = true;
    try {
      while (reader.hasChanged) {
        reader.hasChanged = false;
        reader.state = await this.#readNewState(reader);
        // The state counts the log as it was: entries of that log which have not been read yet are delivered before it.
        if (reader.state.last > this.position) this.readOn();
        for (const { subscriber } of reader.followers) subscriber.onReadable();
      }
    } finally {
      reader.isBeingRead = false;
    }
  }
}
