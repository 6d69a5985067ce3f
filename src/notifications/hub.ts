import { coalesceCalls } from '../kernel/coalesce.ts';
import type { Evictable, MemoryBudget } from '../kernel/memorybudget.ts';
import { Checkpoints } from './checkpoints.ts';
import { loadEntries } from './entries.ts';
import { Follower, type Subscriber } from './follower.ts';
import { type LogCheckpoint, loadEnd } from './log.ts';
import type { LogPosition } from './positions.ts';
import { ReadStates, type ReadStatesDependencies } from './readstates.ts';
import { BATCH, type LiveEntry, Window } from './window.ts';

/** How long the next batch waits for followers that are still reading the window. Slower ones start to lag. */
const MAX_ROOM_WAIT_MS = 100;
/** The time between two checks whether there is room, each of which visits every follower. */
const ROOM_INTERVAL_MS = 10;

interface HubDependencies extends ReadStatesDependencies {
  /** The budget of the windows of all hubs. */
  readonly windows: MemoryBudget;
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
  readonly #checkpoints = new Checkpoints();
  /** The number of followers that are waiting for the hub to open. */
  joining = 0;
  readonly followers = new Set<Follower>();
  readonly readStates: ReadStates;
  /** The newest entries, up to the position. */
  readonly #window = new Window();
  /** Whether the log has, or may have, entries after the position. */
  #hasMore = false;
  /** The number of announcements of entries. */
  #announced = 0;
  /** Whether the log had more entries than fitted into the last batch. */
  #isCatchingUp = false;
  /** The last sequence of the log at the last poll. */
  #last = 0;
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
    // A read state counts all entries of the log: those that the hub has not read yet are delivered before the state.
    this.readStates = new ReadStates(dependencies, (last) => this.#reach(last));
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
    const shared = this.readStates.sharedBy(userId);
    const follower = new Follower(this, shared, subscriber);
    shared.followers.add(follower);
    this.followers.add(follower);
    return follower;
  }

  remove(follower: Follower): void {
    this.followers.delete(follower);
    this.readStates.remove(follower);
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

  /** The number of entries by which the hub lags behind the log, and its slowest follower behind the hub. */
  measure(): { lag: number; backlog: number } {
    let slowest = this.position;
    for (const { position } of this.followers) slowest = Math.min(slowest, position);
    return { lag: Math.max(0, this.#last - this.position), backlog: this.position - slowest };
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
    return this.#checkpoints.followedBy(inWindow.length === 0 && last ? [last] : inWindow);
  }

  #remember(): void {
    const last = this.lastEntry();
    if (last) this.#checkpoints.add(last);
  }

  /** Reads the entries that a poll of the log has found. */
  catchUp({ last, prunedThrough }: LogPosition): void {
    this.#last = last;
    this.#reach(last);
    const hasPruned = prunedThrough > this.#prunedThrough;
    this.#prunedThrough = prunedThrough;
    this.readStates.refreshStale(hasPruned);
  }

  /** Reads the log up to a sequence that it has. */
  #reach(sequence: number): void {
    if (sequence > this.position) this.requestBatch();
  }

  /** Whether the window has space, or half of the followers that keep up are in its newer half: the others still find their entries. */
  #hasRoom(): boolean {
    if (!this.#window.isFull) return true;
    let active = 0;
    let recent = 0;
    for (const { position } of this.followers) {
      // A lagging follower reads the log: a wait would not help it.
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
    await this.dependencies.throttle.broadcast(this.followers);
  }

  /** Skips entries that retention has removed before they were read, where none follow: each feed delivers a gap in their place. */
  async #skipPruned(): Promise<void> {
    if (this.#prunedThrough <= this.position) return;
    this.position = this.#prunedThrough;
    this.#lastId = null;
    this.#window.clear();
    this.dependencies.windows.release(this);
    await this.dependencies.throttle.broadcast(this.followers);
  }
}
