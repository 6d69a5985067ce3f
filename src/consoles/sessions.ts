import { randomUUID } from 'node:crypto';
import type { ConsoleEnd, InstanceStatus } from '../generated/prisma/enums.ts';
import type { Database } from '../platform/database.ts';
import { scheduleJob } from '../platform/jobs.ts';
import type { Logger } from '../platform/logger.ts';
import { isSameEndpoint } from './endpoint.ts';
import {
  type ByteCounts,
  endSilentSessions,
  putHandover,
  readSnapshots,
  type SessionSnapshot,
  SILENT_SECONDS,
  saveEnd,
  saveSessions,
} from './record.ts';
import { type Continuation, LiveSession, type SessionFacts } from './session.ts';

const POLL_INTERVAL_MS = 500;
const SAVE_INTERVAL_MS = 5_000;
const SWEEP_INTERVAL_MS = 60_000;
/** How long a session lives without a client. */
const DETACHED_MS = 60_000;

interface SessionsParts {
  readonly database: Database;
  readonly log: Logger;
  /** The idle timeout of a session. */
  readonly idleMs: number;
}

/** The sessions that run in this process. What another process should know of them is in the database. */
export class Sessions {
  /** The name of this process, for as long as it lives. */
  readonly owner = randomUUID();
  readonly #running = new Map<string, LiveSession>();
  /** Ends that are not in the database yet. */
  readonly #ends = new Map<LiveSession, { readonly reason: ConsoleEnd; readonly at: Date }>();
  readonly #stops: Array<() => void>;
  #isClosed = false;
  /** The end of the time in which other processes could not give a sign of life. */
  #silentUntil = performance.now() + SILENT_SECONDS * 1000;

  constructor(private readonly parts: SessionsParts) {
    const { log } = parts;
    this.#stops = [
      scheduleJob('poll the consoles', POLL_INTERVAL_MS, () => this.#poll(), log),
      scheduleJob('save the consoles', SAVE_INTERVAL_MS, () => this.#save(), log),
      scheduleJob('end silent consoles', SWEEP_INTERVAL_MS, () => this.#sweep(), log),
    ];
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  get(id: string): LiveSession | undefined {
    return this.#running.get(id);
  }

  isRunning(session: LiveSession): boolean {
    return this.#running.get(session.facts.id) === session;
  }

  /** The number of sessions that run here, with a client attached and without. */
  count(): { attached: number; detached: number } {
    let attached = 0;
    for (const { client } of this.#running.values()) if (client) attached += 1;
    return { attached, detached: this.#running.size - attached };
  }

  /** Begins a session here, or goes on with one that ran elsewhere. */
  open(facts: SessionFacts, before?: Continuation): LiveSession {
    const onLineClosed = (failure: Error | null) => {
      this.#endLine(session, failure).catch((error: unknown) => this.parts.log.warn({ err: error }, 'a console did not end well'));
    };
    const session: LiveSession = new LiveSession(facts, onLineClosed, before);
    this.#running.set(facts.id, session);
    return session;
  }

  /** Ends a session that runs here, and enters the end in the database. */
  async end(session: LiveSession, reason: ConsoleEnd): Promise<void> {
    if (!this.isRunning(session)) return;
    this.#running.delete(session.facts.id);
    session.stop(reason);
    this.parts.log.info({ session_id: session.facts.id, reason }, 'console session ended');
    this.#ends.set(session, { reason, at: new Date() });
    // The next save tries again where this one fails.
    await this.#saveEnds().catch((failure: unknown) =>
      this.parts.log.warn({ err: failure }, 'the end of a console session is not saved yet'),
    );
  }

  /** Enters that a client has left a session. Where this fails, the next save does it. */
  saveDetached(session: LiveSession): void {
    if (this.isRunning(session)) this.#save([session]).catch(() => {});
  }

  /** Hands every session over, so that its client can go on with it in another process. */
  async close(): Promise<void> {
    this.#isClosed = true;
    for (const stop of this.#stops) stop();
    await Promise.all([...this.#running.values()].map((session) => this.#handOver(session, 'restart')));
    await this.#saveEnds();
  }

  /** The console has hung up, or was not to be reached: perhaps because of something that the database knows of. */
  async #endLine(session: LiveSession, failure: Error | null): Promise<void> {
    if (failure) this.parts.log.info({ err: failure, session_id: session.facts.id }, 'a console failed');
    await this.#poll([session]).catch(() => {});
    // Without a client the session stays: a client that comes back gets the rest of the output, and then the end.
    if (session.client) await this.end(session, failure ? 'console_unreachable' : 'console_closed');
  }

  /** Ends or hands over the sessions that may not, or cannot, go on here. */
  async #poll(polled: readonly LiveSession[] = [...this.#running.values()]): Promise<void> {
    const now = performance.now();
    for (const session of polled) {
      const { detachedAt } = session;
      if (detachedAt !== null && now - detachedAt > DETACHED_MS) await this.end(session, 'detached');
      else if (session.countIdle() > this.parts.idleMs && detachedAt === null) await this.end(session, 'idle');
    }
    const running = polled.filter((session) => this.isRunning(session));
    if (running.length === 0) return;
    const ids = running.map(({ facts }) => facts.id);
    const snapshots = await readSnapshots(this.parts.database, ids);
    for (const session of running.filter((one) => this.isRunning(one))) {
      const snapshot = snapshots.get(session.facts.id);
      const end = findEnd(session, snapshot);
      if (end) await this.end(session, end);
      else if (snapshot?.owner !== this.owner) await this.#handOver(session, 'taken_over');
    }
  }

  /** Stores a session for the process that has claimed it, or for the one that will when this process stops. */
  async #handOver(session: LiveSession, closing: 'taken_over' | 'restart'): Promise<void> {
    if (!this.isRunning(session)) return;
    this.#running.delete(session.facts.id);
    await session.hangUp(closing);
    const { start, end } = session.scrollback;
    const handover = { position: end, scrollback: session.scrollback.readFrom(start) };
    await putHandover(this.parts.database, this.owner, countsOf(session), handover).catch((failure: unknown) =>
      this.parts.log.warn({ err: failure, session_id: session.facts.id }, 'a console session could not be handed over'),
    );
  }

  async #save(sessions: readonly LiveSession[] = [...this.#running.values()]): Promise<void> {
    const counts = sessions.map((session) => ({ ...countsOf(session), isDetached: session.client === null }));
    if (counts.length > 0) await saveSessions(this.parts.database, this.owner, counts);
    await this.#saveEnds();
  }

  async #saveEnds(): Promise<void> {
    for (const [session, { reason, at }] of [...this.#ends]) {
      await saveEnd(this.parts.database, countsOf(session), reason, at);
      this.#ends.delete(session);
    }
  }

  async #sweep(): Promise<void> {
    try {
      if (performance.now() > this.#silentUntil) await endSilentSessions(this.parts.database);
      else await this.parts.database.query<{ alive: number }>`SELECT 1 AS alive`;
    } catch (failure) {
      // Other processes could not say either that they are alive.
      this.#silentUntil = performance.now() + SILENT_SECONDS * 1000;
      throw failure;
    }
  }
}

/** The statuses of an instance that has nothing behind its console. */
export const stillStatuses: ReadonlySet<InstanceStatus> = new Set(['stopped', 'suspended']);

/** Why a session must end, as the database has it; null: it may go on. */
function findEnd({ facts }: LiveSession, snapshot: SessionSnapshot | undefined): ConsoleEnd | null {
  if (!snapshot) return 'instance_gone';
  if (snapshot.end) return snapshot.end;
  if (snapshot.status === null || snapshot.status === 'deleted') return 'instance_gone';
  if (stillStatuses.has(snapshot.status)) return 'instance_not_running';
  return snapshot.endpoint && isSameEndpoint(snapshot.endpoint, facts.endpoint) ? null : 'console_moved';
}

function countsOf({ facts, bytesIn, bytesOut }: LiveSession): ByteCounts {
  return { id: facts.id, bytesIn, bytesOut };
}
