import pLimit from 'p-limit';
import { Cooldown } from '../kernel/cooldown.ts';
import { FairLimit } from '../kernel/fairlimit.ts';
import { Fault } from '../kernel/fault.ts';
import { MemoryBudget } from '../kernel/memorybudget.ts';
import type { Database } from '../platform/database.ts';
import { isAway } from '../platform/errors.ts';
import { scheduleJob } from '../platform/jobs.ts';
import type { Logger } from '../platform/logger.ts';
import type { Wakeup, Wakeups } from '../platform/wakeups.ts';
import type { Follower, Subscriber } from './follower.ts';
import { Hub } from './hub.ts';
import { findFork, findReplaced } from './log.ts';
import { loadPositions } from './positions.ts';
import { Throttle } from './throttle.ts';

const POLL_INTERVAL_MS = 750;
/** How many polls there are for each comparison of the newest entries with the logs. */
const VERIFIED_EVERY = 10;
/** Lagging feeds read the log themselves: if all did at once, they would take every connection to the database. */
const LOG_QUERIES_AT_ONCE = 4;
/** After retention, the read states of all users who follow a project are loaded again. */
const REFRESHES_AT_ONCE = 4;
/** The bytes of the windows of all hubs. */
const MAX_WINDOW_BYTES = 32 * 1024 * 1024;
/** The bytes of the batches that lagging feeds have fetched and not delivered. */
const MAX_REPLAY_BYTES = 8 * 1024 * 1024;
/** The bytes of the single reads that the hubs keep for their feeds. */
const MAX_SINGLE_READ_BYTES = 8 * 1024 * 1024;
const FAILURE_LINES_INTERVAL_MS = 60_000;

interface HubsDependencies {
  readonly database: Database;
  readonly wakeups: Wakeups;
  readonly log: Logger;
  /** Set by tests only. */
  readonly pollIntervalMs?: number;
}

/** The hubs of a process: one for each project that is being streamed. */
export class Hubs {
  readonly #hubs = new Map<string, Hub>();
  readonly #throttle = new Throttle();
  readonly #windows = new MemoryBudget(MAX_WINDOW_BYTES);
  readonly #limitRefreshes = pLimit(REFRESHES_AT_ONCE);
  readonly #stopListening: () => void;
  readonly #stopPolling: () => Promise<void>;
  readonly #failureLines = new Cooldown(FAILURE_LINES_INTERVAL_MS);
  #isClosed = false;
  /**
   * Whether the next poll also compares the last entry of each hub with the log: the database may have been replaced, and the last
   * sequence does not show a log that went back and grew again.
   */
  #mustVerify = false;
  #pollsUntilVerified = VERIFIED_EVERY;
  /** Limits the queries of the log that serve a single feed, by user. */
  readonly logQueries = new FairLimit(LOG_QUERIES_AT_ONCE);
  /** The budget of the batches that lagging feeds have fetched. */
  readonly replays = new MemoryBudget(MAX_REPLAY_BYTES);
  /** The budget of the single reads that hubs keep. */
  readonly singleReads = new MemoryBudget(MAX_SINGLE_READ_BYTES);

  constructor(private readonly dependencies: HubsDependencies) {
    const { wakeups, log, pollIntervalMs = POLL_INTERVAL_MS } = dependencies;
    this.#stopListening = wakeups.listen((wakeup) => this.#wakeUp(wakeup));
    this.#stopPolling = scheduleJob('poll the logs', pollIntervalMs, () => this.#pollAndVerify(), log);
  }

  /** Notifies every process that the project's log, or a user's read state in it, has changed. */
  wake(wakeup: Wakeup): void {
    this.dependencies.wakeups.send(wakeup);
  }

  /** Follows a project for a user, from the current position of its hub. Throws `service_unavailable` when the hubs are closed. */
  async follow(projectId: string, userId: string, subscriber: Subscriber): Promise<Follower> {
    const hub = this.#hubs.get(projectId) ?? this.#open(projectId);
    hub.joining += 1;
    try {
      await hub.open();
      if (this.#isClosed) throw Fault.tryLater('the feeds are closed');
      if (!this.#isCurrent(hub)) throw Fault.tryLater('the log went back');
      return hub.follow(userId, subscriber);
    } finally {
      hub.joining -= 1;
      this.#closeIfUnused(hub);
    }
  }

  get database(): Database {
    return this.dependencies.database;
  }

  /** The number of projects that are being streamed, and of the feeds that follow them. */
  count(): { hubs: number; followers: number } {
    let followers = 0;
    for (const hub of this.#hubs.values()) followers += hub.followers.size;
    return { hubs: this.#hubs.size, followers };
  }

  /** The largest lags of all hubs, in entries, and the number of queries that wait to run. */
  measure(): { lag: number; backlog: number; waiting: number } {
    let lag = 0;
    let backlog = 0;
    for (const hub of this.#hubs.values()) {
      const measured = hub.measure();
      lag = Math.max(lag, measured.lag);
      backlog = Math.max(backlog, measured.backlog);
    }
    return { lag, backlog, waiting: this.logQueries.waiting };
  }

  /** Ends every feed at once, then waits for a poll that is under way. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#stopListening();
    const polled = this.#stopPolling();
    for (const hub of this.#hubs.values()) for (const { subscriber } of hub.followers) subscriber.end();
    await polled;
  }

  #open(projectId: string): Hub {
    const hub = new Hub({
      database: this.dependencies.database,
      projectId,
      throttle: this.#throttle,
      windows: this.#windows,
      singleReads: this.singleReads,
      limitRefreshes: this.#limitRefreshes,
      onFailure: (failure) => this.#logFailure(failure),
      onReplaced: () => {
        this.#mustVerify = true;
      },
      onEmpty: (empty) => this.#closeIfUnused(empty),
    });
    this.#hubs.set(projectId, hub);
    return hub;
  }

  /** One line a minute at most: each project has a hub that polls. While the database is away as a whole, the log says so already. */
  #logFailure(failure: unknown): void {
    if (isAway(failure) || !this.#failureLines.begin()) return;
    this.dependencies.log.warn({ err: failure }, 'a read for the feeds failed: the next poll tries again');
  }

  #wakeUp({ projectId, userId }: Wakeup): void {
    const hub = this.#hubs.get(projectId);
    if (userId) hub?.readStates.refresh(userId);
    else hub?.requestBatch();
  }

  /**
   * Polls, and from time to time compares the last entry of each hub with the log, after a failed poll at once: the database may be a
   * former standby, or a restored one, which may lack entries. No poll fails where it took over between two of them.
   */
  async #pollAndVerify(): Promise<void> {
    try {
      await this.#poll();
      this.#pollsUntilVerified -= 1;
      if (this.#mustVerify || this.#pollsUntilVerified <= 0) await this.#verify();
    } catch (failure) {
      this.#mustVerify = true;
      throw failure;
    }
  }

  async #verify(): Promise<void> {
    this.#mustVerify = false;
    this.#pollsUntilVerified = VERIFIED_EVERY;
    const entries = [...this.#hubs.values()].map((hub) => hub.lastEntry()).filter((entry) => entry !== null);
    if (entries.length === 0) return;
    for (const projectId of await findReplaced(this.dependencies.database, entries)) {
      const hub = this.#hubs.get(projectId);
      if (hub) await this.#abandon(hub);
    }
  }

  /** Polls the positions of all logs and read states that are being streamed, in one statement: wake-ups may have been lost. */
  async #poll(): Promise<void> {
    const hubs = [...this.#hubs.values()].filter(({ followers }) => followers.size > 0);
    if (hubs.length === 0) return;
    const before = new Map(hubs.map((hub) => [hub.projectId, { hub, position: hub.position, versions: hub.readStates.versions() }]));
    const keys = [...before].flatMap(([projectId, { versions }]) => [...versions.keys()].map((userId) => ({ projectId, userId })));
    const { logs, readStates } = await loadPositions(this.dependencies.database, [...before.keys()], keys);
    for (const log of logs) {
      const known = before.get(log.projectId);
      if (!known || !this.#isCurrent(known.hub)) continue;
      if (log.last < known.position) await this.#abandon(known.hub);
      else known.hub.catchUp(log);
    }
    for (const { projectId, userId, version } of readStates) {
      const known = before.get(projectId);
      if (!known || version < (known.versions.get(userId) ?? 0)) continue;
      known.versions.delete(userId);
      known.hub.readStates.catchUp(userId, version);
    }
    // The read states that are left in `before` were not found in the database, or only in an older version. The feeds of a project that
    // is gone end as their access is revoked.
    const lost = logs.flatMap(({ projectId }) => {
      const known = before.get(projectId);
      if (!known) return [];
      const gone = [...known.versions].flatMap(([userId, version]) => (version > 0 ? [userId] : []));
      return [...gone, ...known.hub.readStates.lost].map((userId) => ({ hub: known.hub, userId }));
    });
    if (lost.length === 0) return;
    // A log that went back with them tells its feeds the last sequence that it still has.
    await this.#verify();
    for (const { hub, userId } of lost) if (this.#isCurrent(hub)) hub.readStates.forget(userId);
  }

  /**
   * Ends the feeds of a log that went back: the database was restored, or its successor lacks the last transactions. Before that,
   * each feed delivers the last sequence that the log still has in common with it, and its client reconnects with that cursor.
   */
  async #abandon(hub: Hub): Promise<void> {
    const fork = await findFork(this.dependencies.database, hub.projectId, hub.checkpoints());
    this.dependencies.log.warn({ project_id: hub.projectId, after: fork }, 'a notification log went back: its feeds begin again');
    this.#windows.release(hub);
    // If its last feed has left meanwhile, another hub may have taken its place.
    if (this.#isCurrent(hub)) this.#hubs.delete(hub.projectId);
    for (const { subscriber } of [...hub.followers]) subscriber.goBack(fork);
  }

  /** Whether the hub has neither been closed nor abandoned. */
  #isCurrent(hub: Hub): boolean {
    return this.#hubs.get(hub.projectId) === hub;
  }

  #closeIfUnused(hub: Hub): void {
    if (hub.followers.size > 0 || hub.joining > 0) return;
    this.#windows.release(hub);
    if (this.#isCurrent(hub)) this.#hubs.delete(hub.projectId);
  }
}
