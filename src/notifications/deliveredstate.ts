import type { ProjectScope } from '../access/scope.ts';
import type { Database } from '../platform/database.ts';
import type { FeedEvent, ReadEvent, ReadyEvent } from './events.ts';
import type { Follower } from './follower.ts';
import { loadVersion } from './positions.ts';
import {
  AFTER_ALL_VERSIONS,
  countSingleReads,
  listSingleReads,
  loadDeliveredVersion,
  loadReadState,
  MAX_EVENT_IDS,
  type ReadState,
  type ReadStateKey,
} from './readstate.ts';

/** The statements of a feed: each is retried while the database is away, until the feed has ended. */
export interface RetriedQueries {
  retry<Result>(query: (database: Database) => Promise<Result>): Promise<Result>;
  /** The same for a statement that reads the log: few of a user run at once. */
  retryLimited<Result>(query: (database: Database) => Promise<Result>): Promise<Result>;
}

/** The progress of single reads that are delivered in several events, in the order of the log. */
export interface SingleReadReplay {
  /** The state that the last of these events completes. */
  readonly state: ReadState;
  /** The sequence of the last notification that was delivered as read. */
  readonly after: number;
  /** The number of reads that are still to be delivered. */
  readonly remaining: number;
}

/** The part of its user's read state that a feed has delivered; the version is in its follower, where the hub sees it. */
export class DeliveredState {
  /** Retention's watermark in the last delivered state. */
  #prunedThrough = 0;
  /** The unread count that the client has: the last that was delivered, and each unread entry since. */
  #clientUnread = 0;
  /** The version of the read state when the replay of the log began; null without such a replay. */
  #versionBefore: number | null = null;
  /** Null while no single reads are being delivered in several events. */
  #singleReadReplay: SingleReadReplay | null = null;

  constructor(
    private readonly scope: ProjectScope,
    private readonly queries: RetriedQueries,
  ) {}

  /** Keeps the unread count of the client, with every event that is delivered. */
  recordEvent(event: FeedEvent): void {
    if (event.type === 'notification') this.#clientUnread += event.notification.read ? 0 : 1;
    else if (event.type !== 'gap') this.#clientUnread = event.unreadCount;
  }

  /** Keeps the progress of single reads whose event was delivered. */
  recordSingleReads(follower: Follower, replay: SingleReadReplay): void {
    this.#singleReadReplay = replay.remaining > 0 ? replay : null;
    if (replay.remaining === 0) this.#record(follower, replay.state);
  }

  #record(follower: Follower, { version, prunedThrough }: ReadState): void {
    follower.version = version;
    this.#prunedThrough = prunedThrough;
  }

  /** Whether single reads have to be fetched before the state can be delivered. */
  lacksSingleReads(follower: Follower | null): boolean {
    return this.#singleReadReplay !== null || follower?.lacksSingleReads === true;
  }

  /** The event of the user's read state; null if the feed has delivered that state, or cannot deliver it yet. */
  take(follower: Follower): ReadEvent | null {
    const state = follower.dueReadState();
    if (!state || state.version < follower.version || this.lacksSingleReads(follower)) return null;
    const isNewer = state.version > follower.version;
    if (!isNewer && state.prunedThrough <= this.#prunedThrough) return null;
    this.#record(follower, state);
    const unreadCount = countUnread(follower, state);
    // Retention mostly removes entries that are read already.
    if (!isNewer && unreadCount === this.#clientUnread) return null;
    const { readThrough, notificationIds: ids } = state;
    return { type: 'read', readThrough, notificationIds: ids ?? [], unreadCount };
  }

  /** Loads the version of the read state before the first entry of the replay is read. */
  async beginReplay(): Promise<void> {
    this.#versionBefore ??= await this.queries.retry((database) => loadVersion(database, this.#key));
  }

  /** The event that completes the replay of the log, which the feed has delivered up to the follower's position. */
  async loadReady(follower: Follower): Promise<ReadyEvent> {
    const { position } = follower;
    const state = await this.#load(position);
    const sinceVersion = this.#versionBefore ?? state.version;
    const late = { ...this.#key, position, sinceVersion };
    const version = await this.queries.retry((database) => loadDeliveredVersion(database, state, late));
    this.#record(follower, { ...state, version });
    return toReady(position, state);
  }

  /** The event that tells the client the cursor to reconnect with, and the read state up to there. */
  async loadFork(fork: number): Promise<ReadyEvent> {
    return toReady(fork, await this.#load(fork));
  }

  #load(upTo: number): Promise<ReadState> {
    const request = { ...this.#key, sinceVersion: AFTER_ALL_VERSIONS, upTo };
    return this.queries.retry((database) => loadReadState(database, request));
  }

  /**
   * Loads the next single reads that the shared state lacks, and the progress once they are delivered; null if none are due. The unread
   * count matches the events that were delivered so far.
   */
  async loadSingleReads(follower: Follower): Promise<{ event: ReadEvent; replay: SingleReadReplay } | null> {
    const state = this.#singleReadReplay?.state ?? follower.dueReadState();
    if (!state) return null;
    const range = { ...this.#key, sinceVersion: follower.version, upToVersion: state.version };
    const after = this.#singleReadReplay?.after ?? 0;
    const total = this.#singleReadReplay?.remaining ?? (await this.queries.retryLimited((database) => countSingleReads(database, range)));
    const reads = await this.queries.retryLimited((database) => listSingleReads(database, { ...range, after }));
    // A read that the watermark has passed meanwhile is no longer stored: a later state covers it.
    const remaining = reads.length < MAX_EVENT_IDS ? 0 : Math.max(total - reads.length, 0);
    const unreadCount = countUnread(follower, state) + remaining;
    const notificationIds = reads.map(({ id }) => id);
    return {
      event: { type: 'read', readThrough: state.readThrough, notificationIds, unreadCount },
      replay: { state: { ...state, notificationIds: null }, after: reads.at(-1)?.sequence ?? after, remaining },
    };
  }

  get #key(): ReadStateKey {
    return { projectId: this.scope.projectId, userId: this.scope.viewer.userId };
  }
}

function toReady(sequence: number, { readThrough, unread }: ReadState): ReadyEvent {
  return { type: 'ready', sequence, readThrough, unreadCount: unread };
}

/** Entries that were delivered after the state was read count as unread. */
function countUnread({ position }: Follower, { unread, last }: ReadState): number {
  return unread + (position - last);
}
