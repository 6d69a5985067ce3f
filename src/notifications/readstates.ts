import type { LimitFunction } from 'p-limit';
import { Fault } from '../kernel/fault.ts';
import { getOrInsert } from '../kernel/map.ts';
import type { MemoryBudget } from '../kernel/memorybudget.ts';
import type { Database } from '../platform/database.ts';
import { type Follower, SharedReadState } from './follower.ts';
import { AFTER_ALL_VERSIONS, ID_BYTES, loadReadState, type ReadState } from './readstate.ts';
import type { Throttle } from './throttle.ts';

export interface ReadStatesDependencies {
  readonly database: Database;
  readonly projectId: string;
  readonly throttle: Throttle;
  /** The budget of the single reads in the read states of all users. */
  readonly singleReads: MemoryBudget;
  /** Limits how many states are loaded at once where all have changed, of all hubs together. */
  readonly limitRefreshes: LimitFunction;
  readonly onFailure: (failure: unknown) => void;
}

/** Loads the read states of one project's log: each once for all feeds of its user. */
export class ReadStates {
  readonly #sharedStates = new Map<string, SharedReadState>();
  /** The users whose read state went back, although it may have as many changes again. */
  readonly lost = new Set<string>();

  /** `onCounted` is called with the last sequence that a state counts, before the state is broadcast. */
  constructor(
    private readonly dependencies: ReadStatesDependencies,
    private readonly onCounted: (sequence: number) => void,
  ) {}

  /** The read state that all feeds of a user share. */
  sharedBy(userId: string): SharedReadState {
    return getOrInsert(this.#sharedStates, userId, () => new SharedReadState(userId));
  }

  remove(follower: Follower): void {
    const { shared } = follower;
    shared.followers.delete(follower);
    if (shared.followers.size > 0) return;
    this.dependencies.singleReads.release(shared);
    if (this.#isCurrent(shared)) this.#sharedStates.delete(shared.userId);
  }

  /** The versions that were loaded, by user id; 0 before the first. */
  versions(): Map<string, number> {
    return new Map([...this.#sharedStates.values()].map(({ userId, newest }) => [userId, newest?.version ?? 0]));
  }

  /** Loads a user's state again. */
  refresh(userId: string): void {
    const shared = this.#sharedStates.get(userId);
    if (!shared) return;
    shared.isStale = true;
    if (!shared.isRefreshing) this.#refresh(shared).catch(this.dependencies.onFailure);
  }

  /** Loads a user's state again if a poll has found a newer version. */
  catchUp(userId: string, version: number): void {
    if (version > (this.#sharedStates.get(userId)?.newest?.version ?? 0)) this.refresh(userId);
  }

  /** Loads the states again that could not be loaded; all of them once retention has removed entries, which changes every unread count. */
  refreshStale(hasPruned: boolean): void {
    for (const shared of this.#sharedStates.values()) if (hasPruned || shared.isStale) this.#refreshInTurn(shared);
  }

  /** Ends the feeds of a user whose last read state the database no longer has, as it went back. Their clients reconnect. */
  forget(userId: string): void {
    this.lost.delete(userId);
    const shared = this.#sharedStates.get(userId);
    if (!shared) return;
    this.#sharedStates.delete(userId);
    for (const { subscriber } of [...shared.followers]) subscriber.end(Fault.tryLater('the read state went back'));
  }

  /** Whether the state has not been forgotten, nor left by its last feed. */
  #isCurrent(shared: SharedReadState): boolean {
    return this.#sharedStates.get(shared.userId) === shared;
  }

  /** Loads a state again when few of those of others are being loaded: all of them at once would take every connection to the database. */
  #refreshInTurn(shared: SharedReadState): void {
    if (shared.isQueued) return;
    shared.isQueued = true;
    const refresh = async () => {
      shared.isQueued = false;
      shared.isStale = true;
      if (!shared.isRefreshing && this.#isCurrent(shared)) await this.#refresh(shared);
    };
    this.dependencies.limitRefreshes(refresh).catch(this.dependencies.onFailure);
  }

  async #refresh(shared: SharedReadState): Promise<void> {
    shared.isRefreshing = true;
    try {
      while (shared.isStale) {
        shared.isStale = false;
        const state = await this.#loadShared(shared);
        if (shared.newest && hasGoneBack(shared.newest, state)) {
          // The next poll ends the feeds, once it has compared the log, which then may have gone back too.
          this.lost.add(shared.userId);
          return;
        }
        shared.newest = state;
        const ids = shared.followers.size > 0 ? state.notificationIds : null;
        this.dependencies.singleReads.reserve(shared, (ids?.length ?? 0) * ID_BYTES);
        this.onCounted(state.last);
        await this.dependencies.throttle.broadcast(shared.followers);
      }
    } catch (failure) {
      // The next poll tries again.
      shared.isStale = true;
      throw failure;
    } finally {
      shared.isRefreshing = false;
    }
  }

  /** One state for all feeds that are ready; if one of them has missed too many single reads, for those that had the last state. */
  async #loadShared({ userId, followers, newest }: SharedReadState): Promise<ReadState> {
    const { database, projectId } = this.dependencies;
    let sinceVersion = AFTER_ALL_VERSIONS;
    for (const { version } of followers) if (version >= 0) sinceVersion = Math.min(sinceVersion, version);
    const loaded = await loadReadState(database, { projectId, userId, sinceVersion });
    if (loaded.notificationIds !== null || !newest || newest.version <= sinceVersion) return loaded;
    return loadReadState(database, { projectId, userId, sinceVersion: newest.version });
  }
}

/** Whether a read state is no later form of another: the database lacks changes that were read, and may have others in their place. */
function hasGoneBack(before: ReadState, after: ReadState): boolean {
  if (after.version < before.version || after.readThrough < before.readThrough) return true;
  if (after.version > before.version) return false;
  if (after.readThrough !== before.readThrough) return true;
  return after.last === before.last && after.prunedThrough === before.prunedThrough && after.unread !== before.unread;
}
