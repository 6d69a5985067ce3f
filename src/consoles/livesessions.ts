import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ConsoleEnd, InstanceStatus } from '../generated/prisma/enums.ts';
import { coalesceCalls } from '../kernel/coalesce.ts';
import type { Database } from '../platform/database.ts';
import { scheduleJob } from '../platform/jobs.ts';
import type { Logger } from '../platform/logger.ts';
import { isSameEndpoint } from './endpoint.ts';
import { type Continuation, LiveSession, type SessionIdentity } from './livesession.ts';
import {
  type ByteCounts,
  endSilentSessions,
  readClock,
  readSnapshots,
  type SessionSnapshot,
  saveEnds,
  saveHandover,
  saveSessions,
} from './store.ts';

const POLL_INTERVAL_MS = 500;
const SAVE_INTERVAL_MS = 5_000;
const SWEEP_INTERVAL_MS = 60_000;
/** How long a session runs without a client. */
const DETACHED_MS = 60_000;

interface SessionsDependencies {
  readonly database: Database;
  readonly log: Logger;
  /** The idle timeout of a session with a client. */
  readonly idleMs: number;
}

/** The sessions that run in this process. Processes learn of each other's sessions by polling the database. */
export class LiveSessions {
  /** Identifies this process in the database. */
  readonly processId = randomUUID();
  readonly #running = new Map<string, LiveSession>();
  /** Ends that are not saved in the database yet; `endedAt` by `performance.now()`. */
  readonly #unsavedEnds = new Map<LiveSession, { readonly reason: ConsoleEnd; readonly endedAt: number }>();
  readonly #stops: Array<() => Promise<void>>;
  readonly #handovers = new Set<Promise<void>>();

  constructor(private readonly dependencies: SessionsDependencies) {
    const { log } = dependencies;
    this.#stops = [
      scheduleJob('poll the consoles', POLL_INTERVAL_MS, () => this.#poll(), log),
      scheduleJob('save the consoles', SAVE_INTERVAL_MS, () => this.#save(), log),
      scheduleJob('end silent consoles', SWEEP_INTERVAL_MS, (signal) => this.#sweep(signal), log),
    ];
  }

  get(id: string): LiveSession | undefined {
    return this.#running.get(id);
  }

  isRunning(session: LiveSession): boolean {
    return this.#running.get(session.identity.id) === session;
  }

  /** The number of sessions that run here, with a client attached and without. */
  count(): { attached: number; detached: number } {
    let attached = 0;
    for (const { client } of this.#running.values()) if (client) attached += 1;
    return { attached, detached: this.#running.size - attached };
  }

  /** Starts a session, or continues one that ran in another process. */
  open(identity: SessionIdentity, continuation?: Continuation): LiveSession {
    const onLineClosed = (failure: Error | null) => {
      this.#endLine(session, failure).catch((error: unknown) => this.dependencies.log.warn({ err: error }, 'a console did not end well'));
    };
    const session: LiveSession = new LiveSession(identity, onLineClosed, continuation);
    this.#running.set(identity.id, session);
    return session;
  }

  /** Ends a session that runs here, and saves its end in the database. Never rejects. */
  async end(session: LiveSession, reason: ConsoleEnd): Promise<void> {
    if (!this.isRunning(session)) return;
    this.#running.delete(session.identity.id);
    session.stop(reason);
    this.dependencies.log.info({ session_id: session.identity.id, reason }, 'console session ended');
    this.#unsavedEnds.set(session, { reason, endedAt: performance.now() });
    // A save that fails is repeated by the next run of the job.
    await this.#trySaveEnds();
  }

  #trySaveEnds(): Promise<void> {
    return this.#saveEnds().catch((failure: unknown) =>
      this.dependencies.log.warn({ err: failure }, 'the end of a console session is not saved yet'),
    );
  }

  /** Saves that a client has left a session. A save that fails is repeated by the next run of the job. */
  saveDetached(session: LiveSession): void {
    if (this.isRunning(session)) this.#save([session]).catch(() => {});
  }

  /** Hands every session over, so that its client can continue it in another process. */
  async close(): Promise<void> {
    await Promise.all(this.#stops.map((stop) => stop()));
    for (const session of this.#running.values()) this.#handOver(session, 'restart');
    await Promise.all(this.#handovers);
    // Without a database an end is lost here, as with a process that dies: the sweep of another one ends the session.
    await this.#trySaveEnds();
  }

  /** Ends a session whose line is closed. The poll comes first, as the database may have a more precise reason. */
  async #endLine(session: LiveSession, failure: Error | null): Promise<void> {
    if (failure) this.dependencies.log.info({ err: failure, session_id: session.identity.id }, 'a console failed');
    await this.#poll([session]).catch(() => {});
    // Without a client the session stays: a client that reconnects gets the rest of the output, and then the end.
    if (session.client) await this.end(session, failure ? 'console_unreachable' : 'console_closed');
  }

  /** Ends or hands over the sessions that must not, or cannot, continue here. */
  async #poll(polled: readonly LiveSession[] = [...this.#running.values()]): Promise<void> {
    await this.#endEach(polled, (session) => this.#findTimeout(session));
    const running = polled.filter((session) => this.isRunning(session));
    if (running.length === 0) return;
    const clients = running.map(({ client }) => client);
    const snapshots = await readSnapshots(
      this.dependencies.database,
      running.map(({ identity }) => identity),
    );
    const ending = this.#endEach(running, (session) => findEndReason(session, snapshots.get(session.identity.id)));
    // A client that was attached meanwhile has taken its session back.
    const claimed = running.filter(
      ({ identity, client }, index) => client === clients[index] && snapshots.get(identity.id)?.claimedBy !== this.processId,
    );
    await Promise.all([ending, ...claimed.map((session) => this.#handOver(session, 'taken_over'))]);
  }

  /** Ends those of the sessions that have a reason to end, together. */
  async #endEach(sessions: readonly LiveSession[], findReason: (session: LiveSession) => ConsoleEnd | null): Promise<void> {
    await Promise.all(
      sessions.map((session) => {
        const reason = findReason(session);
        return reason && this.end(session, reason);
      }),
    );
  }

  #findTimeout(session: LiveSession): ConsoleEnd | null {
    const { detachedAt } = session;
    if (detachedAt !== null && performance.now() - detachedAt > DETACHED_MS) return 'detached';
    return session.measureIdle() > this.dependencies.idleMs && detachedAt === null ? 'idle' : null;
  }

  /** Stores a session for the process that has claimed it, or for the one that will claim it when this process stops. */
  #handOver(session: LiveSession, closing: 'taken_over' | 'restart'): Promise<void> {
    if (!this.isRunning(session)) return Promise.resolve();
    this.#running.delete(session.identity.id);
    const handover = this.#storeHandover(session, closing).finally(() => this.#handovers.delete(handover));
    this.#handovers.add(handover);
    return handover;
  }

  async #storeHandover(session: LiveSession, closing: 'taken_over' | 'restart'): Promise<void> {
    await session.hangUp(closing);
    const { start, end } = session.scrollback;
    const handover = { position: end, scrollback: session.scrollback.readFrom(start) };
    await saveHandover(this.dependencies.database, this.processId, countsOf(session), handover).catch((failure: unknown) =>
      this.dependencies.log.warn({ err: failure, session_id: session.identity.id }, 'a console session could not be handed over'),
    );
  }

  async #save(sessions: readonly LiveSession[] = [...this.#running.values()]): Promise<void> {
    const counts = sessions.map((session) => ({ ...countsOf(session), isDetached: session.client === null }));
    if (counts.length > 0) await saveSessions(this.dependencies.database, this.processId, counts);
    // The save may have come after that of a client that was attached, or has left, meanwhile.
    const changed = sessions.filter((session, index) => this.isRunning(session) && counts[index]?.isDetached !== (session.client === null));
    if (changed.length > 0) return this.#save(changed);
    await this.#saveEnds();
  }

  /** Many sessions may end at once, as with the host of their machines: the ends that come during a save are saved together. */
  readonly #saveEnds = coalesceCalls(async () => {
    const unsaved = [...this.#unsavedEnds];
    if (unsaved.length === 0) return;
    const ends = unsaved.map(([session, { reason, endedAt }]) => ({
      ...countsOf(session),
      reason,
      secondsAgo: (performance.now() - endedAt) / 1000,
    }));
    await saveEnds(this.dependencies.database, this.processId, ends);
    for (const [session] of unsaved) this.#unsavedEnds.delete(session);
  });

  /**
   * After an outage, and after a jump of the database's clock, all sessions seem to be silent, until their processes save them again: the
   * sweep lets them do so, and then ends those that were silent when it began.
   */
  async #sweep(signal: AbortSignal): Promise<void> {
    const { database } = this.dependencies;
    const asOf = await readClock(database);
    await sleep(2 * SAVE_INTERVAL_MS, undefined, { signal });
    await endSilentSessions(database, asOf);
  }
}

/** The statuses of an instance whose console nothing answers. */
export const inactiveStatuses: ReadonlySet<InstanceStatus> = new Set(['stopped', 'suspended']);

/** The reason by which a session must end, according to the database; null if it may continue. */
function findEndReason({ identity }: LiveSession, snapshot: SessionSnapshot | undefined): ConsoleEnd | null {
  if (!snapshot) return null;
  if (snapshot.end) return snapshot.end;
  if (snapshot.status === null || snapshot.status === 'deleted') return 'instance_gone';
  if (snapshot.claimedBy === null) return 'lost';
  if (inactiveStatuses.has(snapshot.status)) return 'instance_not_running';
  return snapshot.endpoint && isSameEndpoint(snapshot.endpoint, identity.endpoint) ? null : 'console_moved';
}

function countsOf({ identity, bytesIn, bytesOut }: LiveSession): ByteCounts {
  return { id: identity.id, bytesIn, bytesOut };
}
