import { foldCalls } from '../kernel/fold.ts';
import type { Database } from '../platform/database.ts';
import { scheduleJob } from '../platform/jobs.ts';
import type { Log } from '../platform/log.ts';
import type { Wakeup, Wakeups } from '../platform/wakeups.ts';
import { type LogEntry, type ReadState, readEntries, readLast, readStands, readState, type Stand } from './log.ts';
import { Queue } from './queue.ts';

/** What a hub hands to its subscribers: an entry of the log, or a change of the subscriber's own read state. */
export type HubItem = { readonly entry: LogEntry } | { readonly state: ReadState };

export interface Subscription {
  readonly queue: Queue<HubItem>;
  /** The last number before the queue's first entry: what came up to it is read from the log. */
  readonly boundary: number;
  /** Tells the hub which read state the subscriber starts from, so that it is not read again for nothing. */
  startFrom(version: number): void;
  leave(): void;
}

const QUEUE_CAPACITY = 256;
const READ_SIZE = 500;
const LOOK_INTERVAL_MS = 750;

/** All hubs of a process: one for each project that is being streamed. */
export class Hubs {
  readonly #database: Database;
  readonly #wakeups: Wakeups;
  readonly #log: Log;
  readonly #hubs = new Map<string, Hub>();
  readonly #stopListening: () => void;
  readonly #stopLooking: () => void;

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

  /** Subscribes a user to a project; `after` is where the subscriber's own log ends, if it has one. */
  async join(projectId: string, userId: string, after = 0): Promise<Subscription> {
    const hub = this.#hubs.get(projectId) ?? new Hub(this.#database, projectId);
    this.#hubs.set(projectId, hub);
    hub.joining += 1;
    try {
      await hub.open();
      // Another process may have shown the subscriber more than this one has read so far.
      if (after > hub.position) await hub.read();
      return hub.join(userId, () => this.#forget(projectId, hub));
    } finally {
      hub.joining -= 1;
      this.#forget(projectId, hub);
    }
  }

  /** How many projects are being streamed, to how many subscriptions. */
  count(): { hubs: number; subscriptions: number } {
    let subscriptions = 0;
    for (const hub of this.#hubs.values()) subscriptions += hub.size;
    return { hubs: this.#hubs.size, subscriptions };
  }

  close(): void {
    this.#stopLooking();
    this.#stopListening();
    for (const hub of this.#hubs.values()) hub.close();
  }

  #hear({ projectId, userId }: Wakeup): void {
    const hub = this.#hubs.get(projectId);
    if (!hub) return;
    const work = userId ? hub.readStateOf(userId) : hub.read();
    work.catch((failure) => this.#log.warn({ err: failure }, 'a wake-up failed: the next look makes up for it'));
  }

  /** What wake-ups may have missed: where everything stands that is being streamed, in one statement. */
  async #look(): Promise<void> {
    const hubs = [...this.#hubs.values()].filter((hub) => hub.size > 0);
    if (hubs.length === 0) return;
    const readers = hubs.flatMap((hub) => hub.readers());
    const stands = await readStands(
      this.#database,
      hubs.map(({ projectId }) => projectId),
      readers,
    );
    await Promise.all(stands.map((stand) => this.#hubs.get(stand.projectId)?.catchUp(stand)));
  }

  #forget(projectId: string, hub: Hub): void {
    if (hub.size === 0 && hub.joining === 0 && this.#hubs.get(projectId) === hub) this.#hubs.delete(projectId);
  }
}

interface Reader {
  version: number;
  readonly queues: Set<Queue<HubItem>>;
  readonly readState: () => Promise<void>;
}

/** Reads one project's log once, however many subscribers follow it. */
class Hub {
  readonly projectId: string;
  /** The last number that was handed to the queues. */
  position = 0;
  /** Subscribers on their way in. */
  joining = 0;
  /** Reads on from the position; resolves when all is handed out that was there at the call. */
  readonly read: () => Promise<void>;
  readonly #database: Database;
  readonly #readers = new Map<string, Reader>();
  #opening: Promise<void> | null = null;
  #prunedThrough = 0;

  constructor(database: Database, projectId: string) {
    this.#database = database;
    this.projectId = projectId;
    this.read = foldCalls(() => this.#readOn());
  }

  get size(): number {
    let size = 0;
    for (const { queues } of this.#readers.values()) size += queues.size;
    return size;
  }

  /** The first subscriber waits until the hub knows where the log ends; a failure leaves the next one to try again. */
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

  /** In one step: the queue receives all that comes after the boundary, and nothing before. */
  join(userId: string, onLeave: () => void): Subscription {
    const queue = new Queue<HubItem>(QUEUE_CAPACITY);
    const reader = this.#readers.get(userId) ?? this.#makeReader(userId);
    this.#readers.set(userId, reader);
    reader.queues.add(queue);
    const leave = () => {
      queue.close();
      reader.queues.delete(queue);
      if (reader.queues.size === 0 && this.#readers.get(userId) === reader) this.#readers.delete(userId);
      onLeave();
    };
    const startFrom = (version: number) => {
      // Only the first may say so: a later one may know more than those before it have been told.
      if (reader.version < 0) reader.version = version;
    };
    return { queue, boundary: this.position, startFrom, leave };
  }

  readers(): Array<{ projectId: string; userId: string }> {
    return [...this.#readers.keys()].map((userId) => ({ projectId: this.projectId, userId }));
  }

  /** Reads what a look at the database has shown to be new. Retention changes the unread count of every reader. */
  async catchUp({ userId, stand, prunedThrough }: Stand): Promise<void> {
    if (userId !== null) {
      if (stand > (this.#readers.get(userId)?.version ?? stand)) await this.readStateOf(userId);
      return;
    }
    if (stand > this.position) await this.read();
    if (prunedThrough > this.#prunedThrough) await Promise.all([...this.#readers.values()].map(({ readState }) => readState()));
    this.#prunedThrough = prunedThrough;
  }

  async readStateOf(userId: string): Promise<void> {
    await this.#readers.get(userId)?.readState();
  }

  close(): void {
    for (const { queues } of this.#readers.values()) for (const queue of queues) queue.close();
  }

  async #readOn(): Promise<void> {
    for (;;) {
      const entries = await readEntries(this.#database, this.projectId, {
        after: this.position,
        upTo: Number.MAX_SAFE_INTEGER,
        limit: READ_SIZE,
      });
      for (const entry of entries) {
        for (const { queues } of this.#readers.values()) for (const queue of queues) queue.push({ entry });
        this.position = entry.sequence;
      }
      if (entries.length < READ_SIZE) return;
    }
  }

  #makeReader(userId: string): Reader {
    const reader: Reader = {
      // Not known yet: any version is newer. Subscribers pass over what they have seen.
      version: -1,
      queues: new Set(),
      readState: foldCalls(async () => {
        const request = { projectId: this.projectId, userId, sinceVersion: Math.max(reader.version, 0) };
        const state = await readState(this.#database, request);
        if (state.version <= reader.version && state.prunedThrough <= this.#prunedThrough) return;
        // The state speaks of the log as it was: the queues must have all of that first.
        if (state.last > this.position) await this.read();
        reader.version = state.version;
        const unread = state.unread + (this.position - state.last);
        for (const queue of reader.queues) queue.push({ state: { ...state, unread } });
      }),
    };
    return reader;
  }
}
