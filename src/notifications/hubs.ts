import pLimit from 'p-limit';
import type { Database } from '../platform/database.ts';
import { scheduleJob } from '../platform/jobs.ts';
import type { Log } from '../platform/log.ts';
import type { Wakeup, Wakeups } from '../platform/wakeups.ts';
import { type Followed, type Follower, Hub } from './hub.ts';
import { readStands } from './log.ts';
import { Pace } from './pace.ts';

const LOOK_INTERVAL_MS = 750;
/** Followers that have fallen behind read the log for themselves: not all at once, or they would take every connection. */
const READS_AT_ONCE = 4;

/** All hubs of a process: one for each project that is being streamed. */
export class Hubs {
  readonly #database: Database;
  readonly #wakeups: Wakeups;
  readonly #log: Log;
  readonly #hubs = new Map<string, Hub>();
  readonly #pace = new Pace();
  readonly #stopListening: () => void;
  readonly #stopLooking: () => void;
  /** Runs a read of the log that serves a single follower, when its turn has come. */
  readonly inTurn = pLimit(READS_AT_ONCE);

  constructor({ database, wakeups, log }: { database: Database; wakeups: Wakeups; log: Log }) {
    this.#database = database;
    this.#wakeups = wakeups;
    this.#log = log;
    this.#stopListening = wakeups.listen((wakeup) => this.#hear(wakeup));
    this.#stopLooking = scheduleJob('look at the logs', LOOK_INTERVAL_MS, () => this.#look(), log);
  }

  /** Tells every process that the project's log, or a user's read state in it, has moved. */
  wake(wakeup: Wakeup): void {
    this.#wakeups.send(wakeup);
  }

  /** Follows a project for a user, from where its hub stands now. */
  async follow(projectId: string, userId: string, listener: Followed): Promise<Follower> {
    const hub = this.#hubs.get(projectId) ?? this.#open(projectId);
    hub.joining += 1;
    try {
      await hub.open();
      return hub.follow(userId, listener);
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
    this.#stopLooking();
    this.#stopListening();
    for (const hub of this.#hubs.values()) for (const { listener } of hub.followers) listener.end();
  }

  #open(projectId: string): Hub {
    const hub = new Hub(this.#database, projectId, {
      pace: this.#pace,
      onFailure: (failure) => this.#log.warn({ err: failure }, 'could not read on: the next look tries again'),
      onEmpty: (empty) => this.#forget(empty),
    });
    this.#hubs.set(projectId, hub);
    return hub;
  }

  #hear({ projectId, userId }: Wakeup): void {
    const hub = this.#hubs.get(projectId);
    if (userId) hub?.readStateOf(userId);
    else hub?.readOn();
  }

  /** What wake-ups may have missed: where everything stands that is being streamed, in one statement. */
  async #look(): Promise<void> {
    const hubs = [...this.#hubs.values()].filter(({ followers }) => followers.size > 0);
    if (hubs.length === 0) return;
    const projectIds = hubs.map(({ projectId }) => projectId);
    const stands = await readStands(
      this.#database,
      projectIds,
      hubs.flatMap((hub) => hub.readers()),
    );
    for (const stand of stands) this.#hubs.get(stand.projectId)?.catchUp(stand);
  }

  #forget(hub: Hub): void {
    if (hub.followers.size === 0 && hub.joining === 0 && this.#hubs.get(hub.projectId) === hub) this.#hubs.delete(hub.projectId);
  }
}
