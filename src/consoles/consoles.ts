import { randomInt } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Revocation, RevocationWatcher } from '../access/revocation.ts';
import { type ProjectScope, requireRole } from '../access/scope.ts';
import type { ConsoleEnd } from '../generated/prisma/enums.ts';
import type { Attachment, ConsoleClient, ConsoleOpening, ConsoleRejection } from '../graph/console.ts';
import { Fault } from '../kernel/fault.ts';
import { getOrInsert } from '../kernel/map.ts';
import { parseUuid } from '../kernel/uuid.ts';
import type { Database } from '../platform/database.ts';
import { toFault } from '../platform/errors.ts';
import type { Logger } from '../platform/logger.ts';
import type { Endpoint } from './endpoint.ts';
import type { LiveSession, SessionIdentity } from './livesession.ts';
import { inactiveStatuses, LiveSessions } from './livesessions.ts';
import {
  type ByteCounts,
  claimSession,
  findConsole,
  type Handover,
  insertSession,
  isSessionRunning,
  readHandover,
  recordAttachment,
  takeSession,
} from './store.ts';

/** How long to wait for a handover: the process that ran the session learns of the claim at its next poll. */
const HANDOVER_TIMEOUT_MS = 3_000;
const HANDOVER_POLL_INTERVAL_MS = 100;
/** An upper bound of what a console sends between two saves of its session. */
const MAX_UNSAVED_BYTES = 2 ** 32;
/** The number of positions at which such a session may begin: another one each time, as its next process may die, too. */
const MAX_BEGINNINGS = 2 ** 16;

interface ConsoleRequest {
  readonly instanceId: string;
  /** The session to attach to; null for a new one. */
  readonly sessionId: string | null;
  /** How many bytes of the session's output the client has; null to get the whole scrollback. */
  readonly after: number | null;
  readonly clientAddress: string;
}

interface ConsolesDependencies {
  readonly database: Database;
  readonly watch: RevocationWatcher;
  readonly log: Logger;
  /** The maximum of attached sessions per user, and the idle timeout of a session. */
  readonly limits: { readonly perUser: number; readonly idleMs: number };
}

/** The consoles of instances: attaches clients to sessions of this process, and moves sessions here from other processes. */
export class Consoles {
  readonly #sessions: LiveSessions;
  /** The sessions that are being moved here from another process, by what was asked for: its user, its instance and its id. */
  readonly #claims = new Map<string, Promise<LiveSession | null>>();
  /** The new sessions that are being started. */
  readonly #starts = new Set<Promise<unknown>>();
  #isClosed = false;

  constructor(private readonly dependencies: ConsolesDependencies) {
    const { database, log, limits } = dependencies;
    this.#sessions = new LiveSessions({ database, log, idleMs: limits.idleMs });
  }

  /** The number of sessions that run here, with a client attached and without. */
  count(): { attached: number; detached: number } {
    return this.#sessions.count();
  }

  /** Hands every session over, so that its client can continue it in another process. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.allSettled([...this.#claims.values(), ...this.#starts]);
    await this.#sessions.close();
  }

  /** Ends a session if it runs here. Another process ends its own when its poll finds the end in the database. */
  async end(id: string, reason: ConsoleEnd): Promise<void> {
    const session = this.#sessions.get(id);
    if (session) await this.#sessions.end(session, reason);
  }

  /**
   * Looks up what a client asks to be attached to: a new session, or a running session of the same user, in any process.
   * Throws `not_found` where the project has no such instance, `permission_denied` below the role `member`.
   */
  async prepare(scope: ProjectScope, request: ConsoleRequest): Promise<ConsoleOpening | ConsoleRejection> {
    const instanceId = parseUuid(request.instanceId);
    const instance = instanceId && (await findConsole(scope.database, scope.projectId, instanceId));
    if (!instance) throw Fault.notFound();
    requireRole(scope, 'member');
    if (inactiveStatuses.has(instance.status)) return 'instance_not_running';
    const { endpoint, newSessionId: sessionId } = instance;
    if (!endpoint) return 'console_unreachable';
    if (request.sessionId !== null) return this.#resume(scope, { ...request, instanceId, sessionId: request.sessionId }, endpoint);
    const attach = (client: ConsoleClient) => {
      const start = this.#start(scope, { ...request, instanceId, sessionId, instanceName: instance.name }, endpoint, client);
      this.#starts.add(start);
      return start.finally(() => this.#starts.delete(start));
    };
    return { sessionId, position: 0, attach, cancel() {} };
  }

  async #start(
    scope: ProjectScope,
    { sessionId: id, instanceId, instanceName, clientAddress }: ConsoleRequest & { sessionId: string; instanceName: string },
    endpoint: Endpoint,
    client: ConsoleClient,
  ): Promise<Attachment | ConsoleRejection> {
    this.#requireOpen();
    const { limits } = this.dependencies;
    const { database, projectId, viewer } = scope;
    const { userId, email: userEmail } = viewer;
    const { processId } = this.#sessions;
    const row = { id, projectId, instanceId, instanceName, userId, userEmail, kind: endpoint.kind, clientAddress, processId };
    const takenOver = await insertSession(database, row, limits.perUser);
    if (!takenOver) return 'too_many_consoles';
    for (const endedId of takenOver) await this.end(endedId, 'taken_over');
    const session = this.#sessions.open({ id, projectId, instanceId, userId, endpoint });
    return this.#attach(scope, session, client, 0);
  }

  async #resume(
    scope: ProjectScope,
    { instanceId, sessionId, after, clientAddress }: ConsoleRequest & { sessionId: string },
    endpoint: Endpoint,
  ): Promise<ConsoleOpening | ConsoleRejection> {
    const { limits } = this.dependencies;
    const { processId } = this.#sessions;
    const { database, projectId, viewer } = scope;
    const { userId } = viewer;
    const identity = { id: sessionId, projectId, instanceId, userId, endpoint };
    // A session of somebody else is looked for where one that does not exist is, so that nobody can tell the two apart.
    const session = this.#findOwn(identity) ?? (await this.#moveHere(database, identity, after));
    if (!session) return this.#explainLoss(database, identity);
    const { start, end } = session.scrollback;
    const position = session.isSerial ? (after ?? start) : end;
    if (position < start || position > end) return 'after_not_kept';
    const endPause = session.pauseUntilAttached();
    return {
      sessionId,
      position,
      attach: async (client) => {
        try {
          const outcome = await recordAttachment(database, { id: sessionId, userId, clientAddress, processId }, limits.perUser);
          if (outcome === 'too_many_consoles') return outcome;
          if (outcome === 'lost' || !this.#sessions.isRunning(session)) return await this.#explainLoss(database, identity);
          // A screen has no output to continue with: another client may have been attached meanwhile, and have had some of its own.
          if (!session.isSerial) return this.#attach(scope, session, client, session.scrollback.end);
          // The pause has a limit: by now the scrollback may have dropped output that a slow client needs.
          return position < session.scrollback.start ? 'after_not_kept' : this.#attach(scope, session, client, position);
        } finally {
          endPause();
        }
      },
      cancel: endPause,
    };
  }

  /** The session if it runs here, and is one of that user, instance and project. */
  #findOwn({ id, userId, instanceId, projectId }: SessionIdentity): LiveSession | undefined {
    const session = this.#sessions.get(id);
    const own = session?.identity;
    return own?.userId === userId && own.instanceId === instanceId && own.projectId === projectId ? session : undefined;
  }

  #attach(scope: ProjectScope, session: LiveSession, client: ConsoleClient, position: number): Attachment {
    const onRevoked = (revocation: Revocation) => {
      // A client that reconnects with a fresh credential continues the session.
      if (revocation === 'credential_expired') client.close(revocation);
      else if (session.client === client) void this.#sessions.end(session, 'access_lost');
    };
    const lease = this.dependencies.watch.add({
      principal: { viewer: scope.viewer, onRevoked },
      project: scope,
      leastRole: 'member',
    });
    session.attach(client, position);
    if (session.isLineClosed) void this.#sessions.end(session, 'console_closed');
    return {
      kind: session.identity.endpoint.kind,
      receive: (bytes) => session.receive(client, bytes),
      detach: () => {
        lease.stop();
        if (session.detach(client)) this.#sessions.saveDetached(session);
      },
    };
  }

  #requireOpen(): void {
    if (this.#isClosed) throw Fault.unavailable(new Error('this process is closing'));
  }

  /** Why a client cannot be attached to a session that does not run here. */
  async #explainLoss(database: Database, identity: SessionIdentity): Promise<ConsoleRejection> {
    return (await isSessionRunning(database, identity)) ? 'restart' : 'session_gone';
  }

  /** Moves a running session here from its process; null if it is not running. The same requests of a user share one claim. */
  #moveHere(database: Database, identity: SessionIdentity, after: number | null): Promise<LiveSession | null> {
    const key = `${identity.userId} ${identity.projectId} ${identity.instanceId} ${identity.id}`;
    return getOrInsert(this.#claims, key, () => this.#claim(database, identity, after).finally(() => this.#claims.delete(key)));
  }

  /**
   * Claims a session, waits for the output that the process that ran it stores, and takes both. If this fails half-way, the output stays
   * stored: the next claim finds it, in any process.
   */
  async #claim(database: Database, identity: SessionIdentity, after: number | null): Promise<LiveSession | null> {
    this.#requireOpen();
    const { processId } = this.#sessions;
    const formerProcessIds = await claimSession(database, { ...identity, processId });
    if (!formerProcessIds) return null;
    const handover = await this.#awaitHandover(database, identity.id, formerProcessIds);
    const taken = await this.#take(database, identity.id);
    // The client may have reconnected to the process that ran the session, which then has it again.
    if (!taken) return null;
    const { bytesIn, bytesOut } = taken;
    // The process that ran it has died, and its last output is lost: the session continues at a position that no client can have, also
    // another than this one, which may know more than was saved.
    const withoutOutput = {
      position: Math.max(bytesOut + MAX_UNSAVED_BYTES * randomInt(1, MAX_BEGINNINGS), after ?? 0) + 1,
      scrollback: new Uint8Array(),
    };
    return this.#sessions.open(identity, { ...(handover ?? withoutOutput), bytesIn, bytesOut });
  }

  /**
   * Takes a session. Repeats the statement if its result is lost in an outage: it may have been carried out, and has then deleted the
   * stored output, of which only this process has a copy.
   */
  async #take(database: Database, id: string): Promise<ByteCounts | null> {
    for (const deadline = performance.now() + HANDOVER_TIMEOUT_MS; ; ) {
      try {
        return await takeSession(database, this.#sessions.processId, id);
      } catch (failure) {
        if (toFault(failure).code !== 'service_unavailable' || performance.now() > deadline) throw failure;
      }
      await sleep(HANDOVER_POLL_INTERVAL_MS);
    }
  }

  async #awaitHandover(database: Database, id: string, formerProcessIds: readonly string[]): Promise<Handover | null> {
    for (const deadline = performance.now() + HANDOVER_TIMEOUT_MS; ; ) {
      const handover = await readHandover(database, id, formerProcessIds);
      if (handover || performance.now() > deadline) return handover;
      await sleep(HANDOVER_POLL_INTERVAL_MS);
    }
  }
}
