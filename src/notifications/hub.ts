import { setImmediate } from 'node:timers/promises';
import type { Listener } from '../graph/source.ts';
import { foldCalls } from '../kernel/fold.ts';
import type { Database } from '../platform/database.ts';
import { type LogEntry, type NotificationEvent, type ReadState, readEntries, readLast, readState, type Stand } from './log.ts';
import type { Pace } from './pace.ts';

/** An entry as it comes, with the event that tells it: one object for all feeds, so that a door can serialize it once. */
export type LiveEntry = { readonly sequence: number; readonly event: NotificationEvent };

const BATCH_SIZE = 128;
/** The entries that a hub keeps for its followers: the batch that they are in, and the one before. */
const WINDOW_SIZE = 2 * BATCH_SIZE;
/** Who has taken nothing while the process has looked at the log so often is not waited for. */
const STALLED_AFTER_LOOKS = 2;
/** Telling goes on for so long without a break; then others have their turn. */
const TURN_MS = 0.5;

/** A user whose read state is followed, by however many feeds. */
interface Reader {
  readonly userId: string;
  /** The newest that is known; null: none yet. */
  state: ReadState | null;
  readonly followers: Set<Follower>;
  isBeingRead: boolean;
  /** Whether it has moved again while it was being read. */
  hasMoved: boolean;
}

/** Who follows: hears when there is something new, and is ended when the process stops. */
export interface Followed extends Listener {
  end(): void;
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
  /** The hub's look in which the feed has taken something last. */
  movedAt: number;
  readonly listener: Followed;
  readonly reader: Reader;
  readonly #hub: Hub;

  constructor(hub: Hub, reader: Reader, listener: Followed) {
    this.position = hub.position;
    this.movedAt = hub.looks;
    this.listener = listener;
    this.reader = reader;
    this.#hub = hub;
  }

  /** Where the hub stands: what is up to there can be told now. */
  get horizon(): number {
    return this.#hub.position;
  }

  /** The entry after the position, null at the horizon, or `behind` where the window no longer has it. */
  take(): LiveEntry | 'behind' | null {
    this.movedAt = this.#hub.looks;
    return this.#hub.entryAfter(this.position);
  }

  /** A read state that speaks of nothing that is still to be told. */
  takeState(): ReadState | null {
    const { state } = this.reader;
    return state && state.last <= this.position ? state : null;
  }

  leave(): void {
    this.#hub.drop(this);
  }
}

interface HubParts {
  readonly pace: Pace;
  readonly onFailure: (failure: unknown) => void;
  /** Called when the last follower has left. */
  readonly onEmpty: (hub: Hub) => void;
}

/** Reads one project's log once, however many feeds follow it, and no faster than they take it. */
export class Hub {
  readonly projectId: string;
  /** The last number that was read. */
  position = 0;
  /** Followers on their way in. */
  joining = 0;
  /** How often the process has looked where the log stands. */
  looks = 0;
  readonly followers = new Set<Follower>();
  readonly #database: Database;
  readonly #pace: Pace;
  readonly #onFailure: (failure: unknown) => void;
  readonly #onEmpty: (hub: Hub) => void;
  readonly #readers = new Map<string, Reader>();
  /** The last entries up to the position, without a gap between them. */
  #window: LiveEntry[] = [];
  #hasMore = false;
  /** How often word has come of something new. */
  #news = 0;
  /** Whether there was more in the log than the last batch took. */
  #isBehind = false;
  /** Where the log stood at the last look. */
  #stand = 0;
  #prunedThrough = 0;
  #opening: Promise<void> | null = null;
  /** Whether a batch is being read, or told. */
  #isReading = false;
  readonly #readBatch: () => Promise<void>;

  constructor(database: Database, projectId: string, { pace, onFailure, onEmpty }: HubParts) {
    this.#database = database;
    this.#pace = pace;
    this.#onFailure = onFailure;
    this.#onEmpty = onEmpty;
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

  follow(userId: string, listener: Followed): Follower {
    const reader = this.#readers.get(userId) ?? { userId, state: null, followers: new Set(), isBeingRead: false, hasMoved: false };
    this.#readers.set(userId, reader);
    const follower = new Follower(this, reader, listener);
    reader.followers.add(follower);
    this.followers.add(follower);
    return follower;
  }

  drop(follower: Follower): void {
    const { reader } = follower;
    this.followers.delete(follower);
    reader.followers.delete(follower);
    if (reader.followers.size === 0 && this.#readers.get(reader.userId) === reader) this.#readers.delete(reader.userId);
    if (this.followers.size === 0) this.#onEmpty(this);
  }

  entryAfter(position: number): LiveEntry | 'behind' | null {
    if (position >= this.position) {
      if (this.#hasMore && !this.#isReading) this.readOn();
      return null;
    }
    const first = this.#window[0];
    return first === undefined || position + 1 < first.sequence ? 'behind' : (this.#window[position + 1 - first.sequence] ?? 'behind');
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
    this.#news += 1;
    this.#hasMore = true;
    if (this.#hasRoom()) this.#readBatch().catch(this.#onFailure);
  }

  readStateOf(userId: string): void {
    const reader = this.#readers.get(userId);
    if (!reader) return;
    reader.hasMoved = true;
    if (!reader.isBeingRead) this.#readStateOf(reader).catch(this.#onFailure);
  }

  /** Reads what a look at the database has shown to be new. Retention changes the unread count of every reader. */
  catchUp({ userId, stand, prunedThrough }: Stand): void {
    if (userId !== null) {
      if (stand > (this.#readers.get(userId)?.state?.version ?? 0)) this.readStateOf(userId);
      return;
    }
    this.looks += 1;
    this.#stand = stand;
    if (stand > this.position) this.readOn();
    if (prunedThrough > this.#prunedThrough) for (const id of this.#readers.keys()) this.readStateOf(id);
    this.#prunedThrough = prunedThrough;
  }

  /** Half of those who move have reached the newest batch: the others are close behind, and still find theirs. */
  #hasRoom(): boolean {
    if (this.#window.length < WINDOW_SIZE) return true;
    const since = this.looks - STALLED_AFTER_LOOKS;
    let moving = 0;
    let ahead = 0;
    for (const { position, movedAt } of this.followers) {
      if (movedAt <= since && position < this.position) continue;
      moving += 1;
      if (position >= this.position - BATCH_SIZE) ahead += 1;
    }
    return ahead * 2 >= moving;
  }

  async #read(): Promise<void> {
    this.#isReading = true;
    try {
      // Who is behind by more than a batch does not rest.
      if (!this.#isBehind) await this.#pace.takeTurn(() => this.#news);
      this.#hasMore = false;
      const entries = await readEntries(this.#database, this.projectId, { after: this.position, limit: BATCH_SIZE });
      this.#isBehind = entries.length === BATCH_SIZE;
      const [first] = entries;
      if (!first) return;
      // After a gap in the log the window begins anew: the followers find the gap when they read for themselves.
      const isNext = first.sequence === this.position + 1;
      const live = entries.map(toLive);
      this.#window = isNext ? [...this.#window, ...live].slice(-WINDOW_SIZE) : live;
      this.position = entries.at(-1)?.sequence ?? this.position;
      this.#hasMore ||= this.#isBehind;
      await this.#tell();
      if (this.#hasMore) this.readOn();
    } finally {
      this.#isReading = false;
    }
  }

  /** Calls every follower; those who keep pace take what is new while they are called. */
  async #tell(): Promise<void> {
    let began = performance.now();
    for (const { listener } of this.followers) {
      listener.hear();
      const tookMs = performance.now() - began;
      if (tookMs < TURN_MS) continue;
      this.#pace.spend(tookMs);
      await setImmediate();
      began = performance.now();
    }
    this.#pace.spend(performance.now() - began);
  }

  async #readStateOf(reader: Reader): Promise<void> {
    const { userId } = reader;
    reader.isBeingRead = true;
    try {
      while (reader.hasMoved) {
        reader.hasMoved = false;
        const told = [...reader.followers].map(({ version }) => version);
        const sinceVersion = told.length > 0 ? Math.max(Math.min(...told), 0) : 0;
        reader.state = await readState(this.#database, { projectId: this.projectId, userId, sinceVersion });
        // The state speaks of the log as it was: whatever of that has not been read yet comes before it.
        if (reader.state.last > this.position) this.readOn();
        for (const { listener } of reader.followers) listener.hear();
      }
    } finally {
      reader.isBeingRead = false;
    }
  }
}

function toLive(entry: LogEntry): LiveEntry {
  const { sequence } = entry;
  return { sequence, event: { type: 'notification', sequence, notification: { ...entry, read: false } } };
}
