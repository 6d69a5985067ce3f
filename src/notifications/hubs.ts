import pLimit from 'p-limit';
import { MemoryBudget } from '../kernel/budget.ts';
import type { Database } from '../platform/database.ts';
import { scheduleJob } from '../platform/jobs.ts';
import type { Logger } from '../platform/logger.ts';
import type { Wakeup, Wakeups } from '../platform/wakeups.ts';
import { type Follower, Hub, type Subscriber } from './hub.ts';
import { readPositions } from './log.ts';
import { Throttle } from './throttle.ts';

const POLL_INTERVAL_MS = 750;
/** Lagging followers read the log for themselves: not all at once, or they would take every connection. */
const READS_AT_ONCE = 4;
/** The bytes of the windows of all hubs. */
const MAX_WINDOW_BYTES = 32 * 1024 * 1024;
/** The bytes of the batches that lagging feeds have fetched and not read. */
const MAX_REPLAY_BYTES = 8 * 1024 * 1024;

/** All hubs of a process: one for each project that is being streamed. */
export class Hubs {
  readonly #hubs = new Map<string, Hub>();
  readonly #throttle = new Throttle();
  readonly #windows = new MemoryBudget(MAX_WINDOW_BYTES);
  readonly #stopListening: () => void;
  readonly #stopPolling: () => void;
  /** Runs a read of the log that serves a single follower, when its turn has come. */
  readonly inTurn = pLimit(READS_AT_ONCE);
  /** The batches that lagging feeds hold. */
  readonly replays = new MemoryBudget(MAX_REPLAY_BYTES);

  constructor(private readonly parts: { readonly database: Database; readonly wakeups: Wakeups; readonly log: Logger }) {
    const { wakeups, log } = parts;
    this.#stopListening = wakeups.listen((wakeup) => this.#wakeUp(wakeup));
    this.#stopPolling = scheduleJob('poll the logs', POLL_INTERVAL_MS, () => this.#poll(), log);
  }

  /** Wakes up every process: the project's log, or a user's read state in it, has moved. */
  wake(wakeup: Wakeup): void {
    this.parts.wakeups.send(wakeup);
  }

  /** Follows a project for a user, from the present position of its hub. */
  async follow(projectId: string, userId: string, subscriber: Subscriber): Promise<Follower> {
    const hub = this.#hubs.get(projectId) ?? this.#open(projectId);
    hub.joining += 1;
    try {
      await hub.open();
      return hub.follow(userId, subscriber);
    } finally {
      hub.joining -= 1;
      this.#forget(hub);
    }
  }

  /** How many projects are being streamed, and how many feeds follow them. */
  count(): { hubs: number; followers: number } {
    let followers = 0;
    for (const hub of this.#hubs.values()) followers += hub.followers.size;
    return { hubs: this.#hubs.size, followers };
  }

  /** The worst of all hubs, in entries, and how many feeds wait for their turn to read the log. */
  measure(): { lag: number; backlog: number; waiting: number } {
    let lag = 0;
    let backlog = 0;
    for (const hub of this.#hubs.values()) {
      const measured = hub.measure();
      lag = Math.max(lag, measured.lag);
      backlog = Math.max(backlog, measured.backlog);
    }
    return { lag, backlog, waiting: this.inTurn.pendingCount };
  }

  close(): void {
    this.#stopPolling();
    this.#stopListening();
    for (const hub of this.#hubs.values()) for (const { subscriber } of hub.followers) subscriber.end();
  }

  #open(projectId: string): Hub {
    const hub = new Hub({
      database: this.parts.database,
      projectId,
      throttle: this.#throttle,
      windows: this.#windows,
      onFailure: (failure) => this.parts.log.warn({ err: failure }, 'could not read on: the next poll tries again'),
      onEmpty: (empty) => this.#forget(empty),
    });
    this.#hubs.set(projectId, hub);
    return hub;
  }

  #wakeUp({ projectId, userId }: Wakeup): void {
    const hub = this.#hubs.get(projectId);
    if (userId) hub?.readStateOf(userId);
    else hub?.readOn();
  }

  /** Polls the positions of all that is being streamed, in one statement: wake-ups may have been missed. */
  async #poll(): Promise<void> {
    const hubs = [...this.#hubs.values()].filter(({ followers }) => followers.size > 0);
    if (hubs.length === 0) return;
    const projectIds = hubs.map(({ projectId }) => projectId);
    const positions = await readPositions(
      this.parts.database,
      projectIds,
      hubs.flatMap((hub) => hub.readers()),
    );
    for (const position of positions) this.#hubs.get(position.projectId)?.catchUp(position);
  }

  #forget(hub: Hub): void {
    if (hub.followers.size > 0 || hub.joining > 0) return;
    this.#windows.release(hub);
    if (this.#hubs.get(hub.projectId) === hub) this.#hubs.delete(hub.projectId);
  }
}
