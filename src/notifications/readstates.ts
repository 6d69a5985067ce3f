import type { LimitFunction } from 'p-limit';
import { Fault } from '../kernel/fault.ts';
import { getOrInsert } from '../kernel/map.ts';
import type { MemoryBudget } from '../kernel/memorybudget.ts';
import type { Database } from '../platform/database.ts';
import { type Follower, Reader } from './follower.ts';
import { AFTER_ALL_VERSIONS, ID_BYTES, loadReadState, type ReadState } from './readstate.ts';
import type { Throttle } from './throttle.ts';

export interface ReadStatesDependencies {
  readonly database: Database;
  readonly projectId: string;
  readonly throttle: Throttle;
  /** The budget of the single reads in the states of all readers. */
  readonly singleReads: MemoryBudget;
  /** Limits the reads of states that concern all readers, of all hubs together. */
  readonly limitRefreshes: LimitFunction;
  readonly onFailure: (failure: unknown) => void;
}

/** Reads the read states of one project's log: each once for all feeds of its user. */
export class ReadStates {
  readonly #readers = new Map<string, Reader>();
  /** The users whose read state went back, although it may have as many changes again. */
  readonly lost = new Set<string>();

  /** `onCounted` is called with the last sequence that a state counts, before the state is broadcast. */
  constructor(
    private readonly dependencies: ReadStatesDependencies,
    private readonly onCounted: (sequence: number) => void,
  ) {}

  /** The reader whom all feeds of a user share. */
  readerOf(userId: string): Reader {
    return getOrInsert(this.#readers, userId, () => new Reader(userId));
  }

  remove(follower: Follower): void {
    const { reader } = follower;
    reader.followers.delete(follower);
    if (reader.followers.size > 0) return;
    this.dependencies.singleReads.release(reader);
    if (this.#isCurrent(reader)) this.#readers.delete(reader.userId);
  }

  /** The versions that were read, by user id; 0 before the first. */
  versions(): Map<string, number> {
    return new Map([...this.#readers.values()].map(({ userId, state }) => [userId, state?.version ?? 0]));
  }

  /** Reads a user's state again. */
  refresh(userId: string): void {
    const reader = this.#readers.get(userId);
    if (!reader) return;
    reader.isStale = true;
    if (!reader.isRefreshing) this.#refresh(reader).catch(this.dependencies.onFailure);
  }

  /** Reads a user's state again if a poll has found a newer version. */
  catchUp(userId: string, version: number): void {
    if (version > (this.#readers.get(userId)?.state?.version ?? 0)) this.refresh(userId);
  }

  /** Reads the states again that could not be read; all of them once retention has removed entries, which changes every unread count. */
  refreshStale(hasPruned: boolean): void {
    for (const reader of this.#readers.values()) if (hasPruned || reader.isStale) this.#refreshInTurn(reader);
  }

  /** Ends a user's feeds whose last read state the database no longer has, as it went back. Their clients reconnect. */
  forget(userId: string): void {
    this.lost.delete(userId);
    const reader = this.#readers.get(userId);
    if (!reader) return;
    this.#readers.delete(userId);
    for (const { subscriber } of [...reader.followers]) subscriber.end(Fault.tryLater('the read state went back'));
  }

  /** Whether the reader has not been forgotten, nor left by its last feed. */
  #isCurrent(reader: Reader): boolean {
    return this.#readers.get(reader.userId) === reader;
  }

  /** Reads a state again when few of those of others are being read: what concerns all readers would take every connection to the database. */
  #refreshInTurn(reader: Reader): void {
    if (reader.isQueued) return;
    reader.isQueued = true;
    const refresh = async () => {
      reader.isQueued = false;
      reader.isStale = true;
      if (!reader.isRefreshing && this.#isCurrent(reader)) await this.#refresh(reader);
    };
    this.dependencies.limitRefreshes(refresh).catch(this.dependencies.onFailure);
  }

  async #refresh(reader: Reader): Promise<void> {
    reader.isRefreshing = true;
    try {
      while (reader.isStale) {
        reader.isStale = false;
        const state = await this.#loadShared(reader);
        if (reader.state && hasGoneBack(reader.state, state)) {
          // The next poll ends the feeds, once it has compared the log, which then may have gone back too.
          this.lost.add(reader.userId);
          return;
        }
        reader.state = state;
        const ids = reader.followers.size > 0 ? state.notificationIds : null;
        this.dependencies.singleReads.reserve(reader, (ids?.length ?? 0) * ID_BYTES);
        this.onCounted(state.last);
        await this.dependencies.throttle.broadcast(reader.followers);
      }
    } catch (failure) {
      // The next poll tries again.
      reader.isStale = true;
      throw failure;
    } finally {
      reader.isRefreshing = false;
    }
  }

  /** One state for all feeds that are ready; if one of them has missed too many single reads, for those that had the last state. */
  async #loadShared({ userId, followers, state }: Reader): Promise<ReadState> {
    const { database, projectId } = this.dependencies;
    let sinceVersion = AFTER_ALL_VERSIONS;
    for (const { version } of followers) if (version >= 0) sinceVersion = Math.min(sinceVersion, version);
    const read = await loadReadState(database, { projectId, userId, sinceVersion });
    if (read.notificationIds !== null || !state || state.version <= sinceVersion) return read;
    return loadReadState(database, { projectId, userId, sinceVersion: state.version });
  }
}

/** Whether a read state is no later form of another: the database lacks changes that were read, and may have others in their place. */
function hasGoneBack(before: ReadState, after: ReadState): boolean {
  if (after.version < before.version || after.readThrough < before.readThrough) return true;
  if (after.version > before.version) return false;
  if (after.readThrough !== before.readThrough) return true;
  return after.last === before.last && after.prunedThrough === before.prunedThrough && after.unread !== before.unread;
}
