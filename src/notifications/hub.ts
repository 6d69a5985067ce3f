import { foldCalls } from '../kernel/fold.ts';
import type { Database } from '../platform/database.ts';
import { type LogEntry, type NotificationEvent, type ReadState, readEntries, readLast, readState, type Stand } from './log.ts';

/** An entry as it comes, with the event that tells it: one object for all feeds, so that a door can serialize it once. */
export type LiveEntry = { readonly sequence: number; readonly event: NotificationEvent };

const BATCH_SIZE = 128;
/** The entries that a hub keeps for its followers: the batch that they are in, and the one before. */
const WINDOW_SIZE = 2 * BATCH_SIZE;
/** Who has taken nothing for so long is not waited for. */
const STALLED_AFTER_MS = 1_000;

/** A user whose read state is followed, by however many feeds. */
interface Reader {
  /** The newest that is known; null: none yet. */
  state: ReadState | null;
  readonly followers: Set<Follower>;
  readonly read: () => Promise<void>;
}

/**
 * One feed's place in a hub. It keeps no entries of its own: it is a number, and the hub's window is shared. A feed that
 * falls behind the window reads the log, so a slow reader costs neither memory nor events.
 */
export class Follower {
  /** The last number that the feed has told. */
  position: number;
  /** The read state that the feed has told. */
  version = -1;
  movedAt = performance.now();
  isGone = false;
  readonly #hub: Hub;
  readonly #reader: Reader;
  readonly #onLeave: () => void;

  constructor(hub: Hub, reader: Reader, onLeave: () => void) {
    this.position = hub.position;
    this.#hub = hub;
    this.#reader = reader;
    this.#onLeave = onLeave;
  }

  /** Where the hub stands: what is up to there can be told now. */
  get horizon(): number {
    return this.#hub.position;
  }

  /** The entry after the position, null at the horizon, or `behind` where the window no longer has it. */
  take(): LiveEntry | 'behind' | null {
    this.movedAt = performance.now();
    return this.#hub.entryAfter(this.position);
  }

  /** A read state that speaks of nothing that is still to be told. */
  takeState(): ReadState | null {
    const { state } = this.#reader;
    return state && state.last <= this.position ? state : null;
  }

  /** Resolves when there is something new, or the follower has gone. */
  wait(): Promise<void> {
    return this.isGone ? Promise.resolve() : this.#hub.wait();
  }

  leave(): void {
    if (this.isGone) return;
    this.isGone = true;
    this.#reader.followers.delete(this);
    this.#hub.drop(this);
    this.#onLeave();
  }
}

/** Reads one project's log once, however many feeds follow it, and no faster than they take it. */
export class Hub {
  readonly projectId: string;
  /** The last number that was read. */
  position = 0;
  /** Followers on their way in. */
  joining = 0;
  readonly followers = new Set<Follower>();
  readonly #database: Database;
  readonly #onFailure: (failure: unknown) => void;
  readonly #readers = new Map<string, Reader>();
  /** The last entries up to the position, without a gap between them. */
  #window: LiveEntry[] = [];
  #hasMore = false;
  /** Where the log stood at the last look. */
  #stand = 0;
  #prunedThrough = 0;
  #opening: Promise<void> | null = null;
  #waiting: Array<() => void> = [];
  readonly #readBatch: () => Promise<void>;

  constructor(database: Database, projectId: string, onFailure: (failure: unknown) => void) {
    this.#database = database;
    this.#onFailure = onFailure;
    this.projectId = projectId;
    this.#readBatch = foldCalls(() => this.#read());
  }

  /** The first follower waits until the hub knows where the log ends; a failure leaves the next one to try again. */
  open(): Promise<void> {
    this.#opening ??= readLast(this.#database, this.projectId).then(
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

  follow(userId: string, onLeave: () => void): Follower {
    const reader = this.#readers.get(userId) ?? this.#makeReader(userId);
    this.#readers.set(userId, reader);
    const follower = new Follower(this, reader, () => {
      if (reader.followers.size === 0 && this.#readers.get(userId) === reader) this.#readers.delete(userId);
      onLeave();
    });
    reader.followers.add(follower);
    this.followers.add(follower);
    return follower;
  }

  drop(follower: Follower): void {
    this.followers.delete(follower);
    this.#notify();
  }

  entryAfter(position: number): LiveEntry | 'behind' | null {
    if (position >= this.position) {
      if (this.#hasMore) this.readOn();
      return null;
    }
    const first = this.#window[0];
    return first === undefined || position + 1 < first.sequence ? 'behind' : (this.#window[position + 1 - first.sequence] ?? 'behind');
  }

  wait(): Promise<void> {
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  readers(): Array<{ projectId: string; userId: string }> {
    return [...this.#readers.keys()].map((userId) => ({ projectId: this.projectId, userId }));
  }

  /** How many entries the hub is behind the log, and its slowest follower behind the hub. */
  measure(): { lag: number; backlog: number } {
    let slowest = this.position;
    for (const { position } of this.followers) slowest = Math.min(slowest, position);
    return { lag: Math.max(0, this.#stand - this.position), backlog: this.position - slowest };
  }

  /** Reads the next batch, once those who keep pace have come far enough to make room for it. */
  readOn(): void {
    this.#hasMore = true;
    if (this.#hasRoom()) this.#readBatch().catch(this.#onFailure);
  }

  readStateOf(userId: string): void {
    this.#readers.get(userId)?.read().catch(this.#onFailure);
  }

  /** Reads what a look at the database has shown to be new. Retention changes the unread count of every reader. */
  catchUp({ userId, stand, prunedThrough }: Stand): void {
    if (userId !== null) {
      if (stand > (this.#readers.get(userId)?.state?.version ?? 0)) this.readStateOf(userId);
      return;
    }
    this.#stand = stand;
    if (stand > this.position) this.readOn();
    if (prunedThrough > this.#prunedThrough) for (const id of this.#readers.keys()) this.readStateOf(id);
    this.#prunedThrough = prunedThrough;
  }

  /** Half of those who move have reached the newest batch: the others are close behind, and still find theirs. */
  #hasRoom(): boolean {
    if (this.#window.length < WINDOW_SIZE) return true;
    const since = performance.now() - STALLED_AFTER_MS;
    let moving = 0;
    let ahead = 0;
    for (const { position, movedAt } of this.followers) {
      if (movedAt < since && position < this.position) continue;
      moving += 1;
      if (position >= this.position - BATCH_SIZE) ahead += 1;
    }
    return ahead * 2 >= moving;
  }

  async #read(): Promise<void> {
    this.#hasMore = false;
    const entries = await readEntries(this.#database, this.projectId, { after: this.position, limit: BATCH_SIZE });
    const [first] = entries;
    if (!first) return;
    // After a gap in the log the window begins anew: the followers find the gap when they read for themselves.
    const isNext = first.sequence === this.position + 1;
    const live = entries.map(toLive);
    this.#window = isNext ? [...this.#window, ...live].slice(-WINDOW_SIZE) : live;
    this.position = entries.at(-1)?.sequence ?? this.position;
    this.#hasMore = entries.length === BATCH_SIZE;
    this.#notify();
  }

  #notify(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const resolve of waiting) resolve();
  }

  #makeReader(userId: string): Reader {
    const reader: Reader = {
      state: null,
      followers: new Set(),
      read: foldCalls(async () => {
        const told = [...reader.followers].map(({ version }) => version);
        const sinceVersion = told.length > 0 ? Math.max(Math.min(...told), 0) : 0;
        reader.state = await readState(this.#database, { projectId: this.projectId, userId, sinceVersion });
        // The state speaks of the log as it was: whatever of that has not been read yet comes before it.
        if (reader.state.last > this.position) this.readOn();
        this.#notify();
      }),
    };
    return reader;
  }
}

function toLive(entry: LogEntry): LiveEntry {
  const { sequence } = entry;
  return { sequence, event: { type: 'notification', sequence, notification: { ...entry, read: false } } };
}
