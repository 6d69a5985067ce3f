import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { type ProjectScope, requireRole } from '../access/scope.ts';
import type { AccessWatch } from '../access/watch.ts';
import type { ConsoleEnd, ConsoleKind, InstanceStatus } from '../generated/prisma/enums.ts';
import { Fault } from '../kernel/fault.ts';
import { makeUuid, parseUuid } from '../kernel/uuid.ts';
import type { Database } from '../platform/database.ts';
import { scheduleJob } from '../platform/jobs.ts';
import type { Log } from '../platform/log.ts';
import { type Endpoint, isSameEndpoint } from './endpoint.ts';
import {
  claimSession,
  endSilentSessions,
  enterAttachment,
  findInstance,
  type Handover,
  insertSession,
  putHandover,
  readStandings,
  SILENT_SECONDS,
  type Standing,
  saveEnd,
  saveSessions,
  type Tally,
  takeHandover,
} from './record.ts';
import { type ConsoleClient, Session } from './session.ts';

const LOOK_INTERVAL_MS = 500;
const SAVE_INTERVAL_MS = 5_000;
const SWEEP_INTERVAL_MS = 60_000;
/** How long a session lives to which nobody is attached. */
const DETACHED_MS = 60_000;
/** How long the process that had a session is waited for: it hears of it at its next look. */
const HANDOVER_MS = 3_000;
const HANDOVER_INTERVAL_MS = 100;

/** In which an instance has nothing behind its console. */
const stillStatuses: ReadonlySet<InstanceStatus> = new Set(['stopped', 'suspended']);

/** Why an opening comes to nothing. */
export type ConsoleRefusal = 'instance_not_running' | 'console_unreachable' | 'session_gone' | 'after_not_kept' | 'too_many_consoles';

export interface ConsoleRequest {
  readonly instanceId: string;
  /** The session to attach to; null: a new one. */
  readonly sessionId: string | null;
  /** How many bytes of the session's output the client has; null: it wants all that is kept. */
  readonly after: number | null;
  readonly clientAddress: string;
}

/** A session that is about to be attached to: what its client is told before. */
export interface Opening {
  readonly sessionId: string;
  /** The position of the first byte that will come. */
  readonly position: number;
  attach(client: ConsoleClient): Promise<Attachment | ConsoleRefusal>;
}

export interface Attachment {
  readonly kind: ConsoleKind;
  receive(bytes: Buffer): void;
  detach(): void;
}

interface ConsolesParts {
  readonly database: Database;
  readonly watch: AccessWatch;
  readonly log: Log;
  readonly limits: { readonly perUser: number; readonly idleMs: number };
}

/** All console sessions of a process. What another process should know of them stands in the database. */
export class Consoles {
  readonly #parts: ConsolesParts;
  /** How this process is called, for as long as it lives. */
  readonly #name = randomUUID();
  readonly #sessions = new Map<string, Session>();
  /** Sessions that are on their way here. */
  readonly #claims = new Map<string, Promise<Session | null>>();
  /** Ends that are not in the database yet. */
  readonly #ends = new Map<Session, { readonly reason: ConsoleEnd; readonly at: Date }>();
  readonly #stops: Array<() => void>;
  #isClosed = false;
  /** Until when others may have been kept from saying that they are alive. */
  #silentUntil = performance.now() + SILENT_SECONDS * 1000;

  constructor(parts: ConsolesParts) {
    this.#parts = parts;
    const { log } = parts;
    this.#stops = [
      scheduleJob('look at the consoles', LOOK_INTERVAL_MS, () => this.#look(), log),
      scheduleJob('save the consoles', SAVE_INTERVAL_MS, () => this.#save(), log),
      scheduleJob('end silent consoles', SWEEP_INTERVAL_MS, () => this.#sweep(), log),
    ];
  }

  /** How many sessions are open here, with somebody attached and without. */
  count(): { attached: number; detached: number } {
    let attached = 0;
    for (const { client } of this.#sessions.values()) if (client) attached += 1;
    return { attached, detached: this.#sessions.size - attached };
  }

  /**
   * Looks up what a client wants to be attached to: a new session, or one of the user's own that is running, wherever it
   * is. Throws `not_found` where the project has no such instance, `permission_denied` below the role `member`.
   */
  async prepare(scope: ProjectScope, request: ConsoleRequest): Promise<Opening | ConsoleRefusal> {
    const instanceId = parseUuid(request.instanceId);
    const instance = instanceId && (await findInstance(this.#parts.database, scope.projectId, instanceId));
    if (!instance) throw Fault.notFound();
    requireRole(scope, 'member');
    if (stillStatuses.has(instance.status)) return 'instance_not_running';
    const { endpoint } = instance;
    if (!endpoint) return 'console_unreachable';
    if (request.sessionId !== null) return this.#resume(scope, { ...request, instanceId, sessionId: request.sessionId }, endpoint);
    const sessionId = makeUuid();
    const attach = (client: ConsoleClient) =>
      this.#begin(scope, { ...request, instanceId, sessionId, instanceName: instance.name }, endpoint, client);
    return { sessionId, position: 0, attach };
  }

  /** Ends a session that runs here; one that does not, ends where it runs. */
  async end(id: string, reason: ConsoleEnd): Promise<void> {
    const session = this.#sessions.get(id);
    if (session) await this.#finish(session, reason);
  }

  /** Puts all sessions down, so that their clients can go on with them elsewhere. */
  async close(): Promise<void> {
    this.#isClosed = true;
    for (const stop of this.#stops) stop();
    await Promise.all([...this.#sessions.values()].map((session) => this.#handOver(session, 'restart')));
    await this.#saveEnds();
  }

  async #begin(
    scope: ProjectScope,
    { sessionId: id, instanceId, instanceName, clientAddress }: ConsoleRequest & { sessionId: string; instanceName: string },
    endpoint: Endpoint,
    client: ConsoleClient,
  ): Promise<Attachment | ConsoleRefusal> {
    const { database, limits } = this.#parts;
    const { projectId, viewer } = scope;
    const { userId, email: userEmail } = viewer;
    const row = { id, projectId, instanceId, instanceName, userId, userEmail, kind: endpoint.kind, clientAddress, owner: this.#name };
    const over = await insertSession(database, row, limits.perUser);
    if (!over) return 'too_many_consoles';
    for (const ended of over) await this.end(ended, 'taken_over');
    const session = this.#open({ id, projectId, instanceId, userId, endpoint });
    return this.#attach(scope, session, client, 0);
  }

  async #resume(
    scope: ProjectScope,
    { instanceId, sessionId, after, clientAddress }: ConsoleRequest & { sessionId: string },
    endpoint: Endpoint,
  ): Promise<Opening | ConsoleRefusal> {
    const { database, limits } = this.#parts;
    const { projectId, viewer } = scope;
    const { userId } = viewer;
    const facts = { id: sessionId, projectId, instanceId, userId, endpoint };
    const session = this.#sessions.get(sessionId) ?? (await this.#fetch(facts, after));
    const isTheirs = session?.facts.userId === userId && session.facts.instanceId === instanceId && session.facts.projectId === projectId;
    if (!session || !isTheirs) return 'session_gone';
    const { start, end } = session.scrollback;
    const position = session.isSerial ? (after ?? start) : end;
    if (position < start || position > end) return 'after_not_kept';
    session.hold();
    return {
      sessionId,
      position,
      attach: async (client) => {
        const entered = await enterAttachment(database, { id: sessionId, userId, clientAddress }, limits.perUser);
        if (entered !== 'entered') return entered;
        if (!this.#isHere(session)) return 'session_gone';
        // Whoever was too slow may have missed more than is kept.
        return position < session.scrollback.start ? 'after_not_kept' : this.#attach(scope, session, client, position);
      },
    };
  }

  #attach(scope: ProjectScope, session: Session, client: ConsoleClient, position: number): Attachment {
    const onLost = ({ message }: Fault) => {
      // Who comes back with a fresh credential finds the session as it was.
      if (message === 'credential_expired') client.close('credential_expired');
      else if (session.client === client) void this.#finish(session, 'access_lost');
    };
    const watched = this.#parts.watch.add({ viewer: scope.viewer, onLost }, scope, null, 'member');
    session.attach(client, position);
    if (session.isLineOver) void this.#finish(session, 'console_closed');
    return {
      kind: session.facts.endpoint.kind,
      receive: (bytes) => session.receive(client, bytes),
      detach: () => {
        watched.stop();
        if (session.detach(client) && this.#sessions.has(session.facts.id)) this.#save([session]).catch(() => {});
      },
    };
  }

  #open(facts: Session['facts'], before?: ConstructorParameters<typeof Session>[2]): Session {
    const session: Session = new Session(
      facts,
      (failure) => {
        this.#lineOver(session, failure).catch((error: unknown) => this.#parts.log.warn({ err: error }, 'a console did not end well'));
      },
      before,
    );
    this.#sessions.set(facts.id, session);
    return session;
  }

  /** The session from wherever it is; null where there is none that is running. Asked once, however many want it at once. */
  #fetch(facts: Session['facts'], after: number | null): Promise<Session | null> {
    const known = this.#claims.get(facts.id);
    if (known) return known;
    const claim = this.#claim(facts, after).finally(() => this.#claims.delete(facts.id));
    this.#claims.set(facts.id, claim);
    return claim;
  }

  async #claim(facts: Session['facts'], after: number | null): Promise<Session | null> {
    const { database } = this.#parts;
    const formerOwner = await claimSession(database, { ...facts, owner: this.#name });
    if (!formerOwner || this.#isClosed) return null;
    const handover = await this.#awaitHandover(facts.id, formerOwner);
    const standing = (await readStandings(database, [facts.id])).get(facts.id);
    if (!standing || standing.end) return null;
    const { bytesIn, bytesOut } = standing;
    // Its process has died, and the end of what it told with it: from a position that nobody can have been told.
    const lost = { position: Math.max(bytesOut, after ?? 0) + 1, scrollback: new Uint8Array() };
    return this.#open(facts, { ...(handover ?? lost), bytesIn, bytesOut });
  }

  async #awaitHandover(id: string, formerOwner: string): Promise<Handover | null> {
    for (const deadline = performance.now() + HANDOVER_MS; ; ) {
      const handover = await takeHandover(this.#parts.database, id, formerOwner);
      if (handover || performance.now() > deadline) return handover;
      await sleep(HANDOVER_INTERVAL_MS);
    }
  }

  /** The console has hung up, or was not to be reached: perhaps because of something that the database knows of. */
  async #lineOver(session: Session, failure: Error | null): Promise<void> {
    if (failure) this.#parts.log.info({ err: failure, session_id: session.facts.id }, 'a console failed');
    await this.#look([session]).catch(() => {});
    // Nobody is attached who could be told: whoever comes back gets what is left, and then the end.
    if (session.client) await this.#finish(session, failure ? 'console_unreachable' : 'console_closed');
  }

  /** Ends or puts down what may not, or cannot, go on here. */
  async #look(looked: readonly Session[] = [...this.#sessions.values()]): Promise<void> {
    const now = performance.now();
    for (const session of looked) {
      const { detachedAt } = session;
      if (detachedAt !== null && now - detachedAt > DETACHED_MS) await this.#finish(session, 'detached');
      else if (session.countIdle() > this.#parts.limits.idleMs && detachedAt === null) await this.#finish(session, 'idle');
    }
    const running = looked.filter((session) => this.#isHere(session));
    if (running.length === 0) return;
    const ids = running.map(({ facts }) => facts.id);
    const standings = await readStandings(this.#parts.database, ids);
    for (const session of running.filter((one) => this.#isHere(one))) {
      const standing = standings.get(session.facts.id);
      const end = findEnd(session, standing);
      if (end) await this.#finish(session, end);
      else if (standing?.owner !== this.#name) await this.#handOver(session, 'taken_over');
    }
  }

  #isHere(session: Session): boolean {
    return this.#sessions.get(session.facts.id) === session;
  }

  async #finish(session: Session, reason: ConsoleEnd): Promise<void> {
    if (!this.#isHere(session)) return;
    this.#sessions.delete(session.facts.id);
    session.stop(reason);
    this.#parts.log.info({ session_id: session.facts.id, reason }, 'console session ended');
    this.#ends.set(session, { reason, at: new Date() });
    // Where this fails, the next save does it.
    await this.#saveEnds().catch((failure: unknown) =>
      this.#parts.log.warn({ err: failure }, 'the end of a console session is not saved yet'),
    );
  }

  /** Puts a session down, for whoever has claimed it, or for whoever will when this process stops. */
  async #handOver(session: Session, closing: 'taken_over' | 'restart'): Promise<void> {
    if (!this.#isHere(session)) return;
    this.#sessions.delete(session.facts.id);
    await session.hangUp(closing);
    const { start, end } = session.scrollback;
    const put = { position: end, scrollback: session.scrollback.readFrom(start) };
    await putHandover(this.#parts.database, this.#name, tally(session), put).catch((failure: unknown) =>
      this.#parts.log.warn({ err: failure, session_id: session.facts.id }, 'a console session could not be handed over'),
    );
  }

  async #save(sessions: readonly Session[] = [...this.#sessions.values()]): Promise<void> {
    const tallies = sessions.map((session) => ({ ...tally(session), isDetached: session.client === null }));
    if (tallies.length > 0) await saveSessions(this.#parts.database, this.#name, tallies);
    await this.#saveEnds();
  }

  async #saveEnds(): Promise<void> {
    for (const [session, { reason, at }] of [...this.#ends]) {
      await saveEnd(this.#parts.database, tally(session), reason, at);
      this.#ends.delete(session);
    }
  }

  async #sweep(): Promise<void> {
    try {
      if (performance.now() > this.#silentUntil) await endSilentSessions(this.#parts.database);
      else await this.#parts.database.query`SELECT 1`;
    } catch (failure) {
      // Others could not say either that they are alive.
      this.#silentUntil = performance.now() + SILENT_SECONDS * 1000;
      throw failure;
    }
  }
}

/** Why a session must end, as the database has it; null: it may go on. */
function findEnd({ facts }: Session, standing: Standing | undefined): ConsoleEnd | null {
  if (!standing) return 'instance_gone';
  if (standing.end) return standing.end;
  if (standing.status === null || standing.status === 'deleted') return 'instance_gone';
  if (stillStatuses.has(standing.status)) return 'instance_not_running';
  return standing.endpoint && isSameEndpoint(standing.endpoint, facts.endpoint) ? null : 'console_moved';
}

function tally({ facts, bytesIn, bytesOut }: Session): Tally {
  return { id: facts.id, bytesIn, bytesOut };
}
