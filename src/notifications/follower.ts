import type { Fault } from '../kernel/fault.ts';
import type { Evictable } from '../kernel/memorybudget.ts';
import type { ReadState } from './readstate.ts';
import type { LiveEntry } from './window.ts';

/** The read state of a user that one feed or several follow. */
export class SharedReadState implements Evictable {
  /** The newest state that was loaded; null before the first one. */
  newest: ReadState | null = null;
  readonly followers = new Set<Follower>();
  isRefreshing = false;
  /** Whether a refresh waits for those of other users. */
  isQueued = false;
  /** Whether the state has to be loaded, or loaded again. */
  isStale = false;

  constructor(readonly userId: string) {}

  /** Drops the ids of single reads in favour of other users: a feed that still needs them fetches them itself. */
  evict(): void {
    if (this.newest) this.newest = { ...this.newest, notificationIds: null };
  }
}

/** The log that feeds follow: a hub. */
interface FollowedLog {
  /** The last sequence that was read. */
  readonly position: number;
  isLagging(position: number): boolean;
  entryAfter(position: number): LiveEntry | null;
  remove(follower: Follower): void;
}

/** The callbacks of a feed that its hub calls. */
export interface Subscriber {
  /** Called when entries, or a read state, are available. */
  notify(): void;
  /** Called at shutdown; with a failure when the database no longer has the read state that the feed has delivered. */
  end(failure?: Fault): void;
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
    private readonly log: FollowedLog,
    readonly shared: SharedReadState,
    readonly subscriber: Subscriber,
  ) {
    this.position = log.position;
  }

  /** The last sequence that the hub has read. */
  get highWatermark(): number {
    return this.log.position;
  }

  /** Whether the next entry is no longer in the window, so that it has to be read from the log. */
  get isLagging(): boolean {
    return this.log.isLagging(this.position);
  }

  /** The entry after the position; null at the high watermark, and where the feed is lagging. */
  read(): LiveEntry | null {
    return this.log.entryAfter(this.position);
  }

  /** The user's read state; null while it counts entries that the feed has not delivered yet. */
  dueReadState(): ReadState | null {
    const { newest } = this.shared;
    return newest && newest.last <= this.position ? newest : null;
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
    this.log.remove(this);
  }
}
