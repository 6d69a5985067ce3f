import { setImmediate as nextImmediate } from 'node:timers/promises';
import type { ProjectRole } from '../generated/prisma/enums.ts';
import { Fault } from '../kernel/fault.ts';
import { getOrInsert } from '../kernel/map.ts';
import type { Database } from '../platform/database.ts';
import { scheduleJob } from '../platform/jobs.ts';
import type { Logger } from '../platform/logger.ts';
import { hasExpired, type Viewer } from './viewer.ts';

/** Why a lease is revoked. */
export type Revocation = 'credential_expired' | 'access_lost';

const faultCodes = { credential_expired: 'not_authenticated', access_lost: 'permission_denied' } as const;

/** The owner of a lease: a socket or a stream, with the viewer who opened it. */
export interface Principal {
  /** Read at each poll, so that a renewed credential takes effect at the next one. */
  readonly viewer: Viewer | null;
  /** Called when the credential has expired or was revoked, or when access to a leased project is lost. */
  onRevoked?(revocation: Revocation): void;
}

/** A subscription to a project; `end` is called when access to the project is lost, with a fault whose message names the revocation. */
export interface Revocable {
  end(fault: Fault): void;
}

/** The conditions of a lease: a credential and, if one is given, access to a project. */
interface Permission {
  readonly principal: Principal;
  readonly project?: { readonly organizationId: string; readonly projectId: string };
  /** The least role in the project that is required; any if there is none. */
  readonly leastRole?: ProjectRole;
  readonly subscription?: Revocable;
}

/** The permission of an open connection or stream: checked when it was opened, and again at every poll. */
export class Lease {
  constructor(
    private readonly watcher: RevocationWatcher,
    readonly permission: Permission,
  ) {}

  stop(): void {
    this.watcher.delete(this);
  }
}

const POLL_INTERVAL_MS = 1_000;
/** The number of leases that are checked before other work has its turn: a few milliseconds' work. */
const LEASES_AT_ONCE = 5_000;

interface WatcherDependencies {
  readonly database: Database;
  readonly log: Logger;
  /** Set by tests only. */
  readonly pollIntervalMs?: number;
}

/** Checks all leases against the database every second, by one statement, and revokes those that are no longer valid. */
export class RevocationWatcher {
  readonly #database: Database;
  readonly #leases = new Set<Lease>();
  readonly #stopPolling: () => Promise<void>;

  constructor({ database, log, pollIntervalMs = POLL_INTERVAL_MS }: WatcherDependencies) {
    this.#database = database;
    this.#stopPolling = scheduleJob('poll the leases', pollIntervalMs, () => this.#poll(), log);
  }

  /** Adds a lease, which is revoked at the first poll that finds its permission gone. */
  add(permission: Permission): Lease {
    const lease = new Lease(this, permission);
    this.#leases.add(lease);
    return lease;
  }

  delete(lease: Lease): void {
    this.#leases.delete(lease);
  }

  get size(): number {
    return this.#leases.size;
  }

  /** Forgets the leases, then waits for a poll that is under way. */
  async close(): Promise<void> {
    this.#leases.clear();
    await this.#stopPolling();
  }

  async #poll(): Promise<void> {
    if (this.#leases.size === 0) return;
    const now = new Date();
    // The newest lease is revoked first, so that a console's session is told the reason before its socket closes.
    const current = [...this.#leases].reverse().filter((lease) => {
      const { viewer } = lease.permission.principal;
      const isExpired = !viewer || hasExpired(viewer, now);
      if (isExpired) this.#revoke(lease, 'credential_expired');
      return !isExpired;
    });
    for (const lease of await this.#findRevoked(current, now)) this.#revoke(lease, 'access_lost');
  }

  #revoke(lease: Lease, revocation: Revocation): void {
    if (!this.#leases.delete(lease)) return;
    const { principal, subscription } = lease.permission;
    principal.onRevoked?.(revocation);
    subscription?.end(new Fault(faultCodes[revocation], revocation));
  }

  /** Keeps the order of the leases. Each (user, key, project, role) is checked once, however many leases share it. */
  async #findRevoked(current: readonly Lease[], now: Date): Promise<Lease[]> {
    const byKey = new Map<string, { readonly key: LeaseKey; readonly leases: Lease[] }>();
    for (let begin = 0; begin < current.length; begin += LEASES_AT_ONCE) {
      if (begin > 0) await nextImmediate();
      for (const lease of current.slice(begin, begin + LEASES_AT_ONCE)) {
        const key = keyOf(lease);
        getOrInsert(byKey, textOf(key), () => ({ key, leases: [] })).leases.push(lease);
      }
    }
    if (byKey.size === 0) return [];
    const groups = [...byKey];
    const column = <Name extends keyof LeaseKey>(name: Name) => groups.map(([, { key }]) => key[name]);
    const valid = await this.#database.query<{ position: number | null }>`
      SELECT part.position::int AS position
      FROM unnest(${column('userId')}::uuid[], ${column('keyId')}::uuid[], ${column('organizationId')}::uuid[],
        ${column('projectId')}::uuid[], ${column('leastRole')}::project_role[])
        WITH ORDINALITY AS part (user_id, key_id, organization_id, project_id, least_role, position)
      JOIN users ON users.id = part.user_id AND users.disabled_at IS NULL
      LEFT JOIN api_keys AS key ON key.id = part.key_id
      LEFT JOIN projects AS project ON project.id = part.project_id AND project.organization_id = part.organization_id
      LEFT JOIN LATERAL (
        SELECT role FROM organization_members WHERE organization_id = project.organization_id AND user_id = part.user_id LIMIT 1
      ) AS organization_member ON true
      LEFT JOIN LATERAL (
        SELECT role FROM project_members WHERE project_id = project.id AND user_id = part.user_id LIMIT 1
      ) AS project_member ON true
      WHERE (part.key_id IS NULL OR (key.revoked IS NULL AND (key.expires IS NULL OR key.expires > ${now}) AND key.id IS NOT NULL))
        AND (part.project_id IS NULL OR organization_member.role <> 'member' OR (
          organization_member.role = 'member' AND project_member.role >= part.least_role))`;
    if (valid.length === groups.length) return [];
    const isValid = new Set(valid.map(({ position }) => position));
    const invalid = groups.filter((_, index) => !isValid.has(index + 1));
    const revoked = new Map(invalid.flatMap(([text, { leases }]) => leases.map((lease) => [lease, text] as const)));
    // A lease whose credential was renewed meanwhile has another key, which the next poll checks.
    return current.filter((lease) => revoked.has(lease) && revoked.get(lease) === textOf(keyOf(lease)));
  }
}

/** The conditions of a lease in the database: leases with the same are checked together. */
interface LeaseKey {
  readonly userId: string | null;
  /** Null for a session. */
  readonly keyId: string | null;
  /** Null for a lease on the credential alone. */
  readonly organizationId: string | null;
  readonly projectId: string | null;
  readonly leastRole: ProjectRole;
}

const textOf = (key: LeaseKey): string => Object.values(key).join();

function keyOf({ permission: { principal, project, leastRole } }: Lease): LeaseKey {
  const { viewer } = principal;
  return {
    userId: viewer?.userId ?? null,
    keyId: viewer?.credential.kind === 'api_key' ? viewer.credential.id : null,
    organizationId: project?.organizationId ?? null,
    projectId: project?.projectId ?? null,
    leastRole: leastRole ?? 'viewer',
  };
}
