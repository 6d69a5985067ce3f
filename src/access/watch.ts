import type { ProjectRole } from '../generated/prisma/enums.ts';
import { Fault } from '../kernel/fault.ts';
import type { Database } from '../platform/database.ts';
import { scheduleJob } from '../platform/jobs.ts';
import type { Log } from '../platform/log.ts';
import type { Viewer } from './viewer.ts';

/** Who holds what is watched. */
export interface Holder {
  /** Looked at anew each time: a credential that was renewed counts from the next look on. */
  readonly viewer: Viewer | null;
  /** Called when the credential has expired or was revoked, or when a project that was being shown is lost. */
  onLost?(fault: Fault): void;
}

/** What shows a project, and ends when that is lost. */
export interface Shown {
  end(fault: Fault): void;
}

/** Something that lives on after its access was checked: a socket, or a stream of one project. */
export class Watched {
  readonly holder: Holder;
  readonly project: { readonly organizationId: string; readonly projectId: string } | null;
  readonly shown: Shown | null;
  /** The least role in the project with which it may stay; null: any. */
  readonly role: ProjectRole | null;
  readonly #watch: AccessWatch;

  constructor(watch: AccessWatch, { holder, project, shown, role }: Pick<Watched, 'holder' | 'project' | 'shown' | 'role'>) {
    this.#watch = watch;
    this.holder = holder;
    this.project = project;
    this.shown = shown;
    this.role = role;
  }

  stop(): void {
    this.#watch.delete(this);
  }
}

const LOOK_INTERVAL_MS = 1_000;

/** Looks every second whether what was opened may stay open: one statement, however much there is. */
export class AccessWatch {
  readonly #database: Database;
  readonly #watched = new Set<Watched>();
  readonly #stopLooking: () => void;

  constructor({ database, log }: { database: Database; log: Log }) {
    this.#database = database;
    this.#stopLooking = scheduleJob('look at the access', LOOK_INTERVAL_MS, () => this.#look(), log);
  }

  /** Watches a credential, and the project that is shown to whoever holds it, if any, and their role in it. */
  add(holder: Holder, project: Watched['project'] = null, shown: Shown | null = null, role: ProjectRole | null = null): Watched {
    const watched = new Watched(this, { holder, project, shown, role });
    this.#watched.add(watched);
    return watched;
  }

  delete(watched: Watched): void {
    this.#watched.delete(watched);
  }

  get size(): number {
    return this.#watched.size;
  }

  close(): void {
    this.#stopLooking();
    this.#watched.clear();
  }

  async #look(): Promise<void> {
    if (this.#watched.size === 0) return;
    const now = new Date();
    const current = [...this.#watched].filter((watched) => {
      const credential = watched.holder.viewer?.credential;
      const isExpired = !credential || (credential.kind === 'session' && credential.expires <= now);
      if (isExpired) this.#lose(watched, new Fault('not_authenticated', 'credential_expired'));
      return !isExpired;
    });
    const lost = await this.#findLost(current, now);
    for (const watched of lost) this.#lose(watched, new Fault('permission_denied', 'access_lost'));
  }

  #lose(watched: Watched, fault: Fault): void {
    if (!this.#watched.delete(watched)) return;
    watched.holder.onLost?.(fault);
    watched.shown?.end(fault);
  }

  /** Asked once for each (user, key, project, role), however many sockets share it. */
  async #findLost(current: readonly Watched[], now: Date): Promise<Watched[]> {
    const byAccess = new Map<string, Watched[]>();
    for (const watched of current) {
      const access = accessOf(watched);
      const sharing = byAccess.get(access);
      if (sharing) sharing.push(watched);
      else byAccess.set(access, [watched]);
    }
    if (byAccess.size === 0) return [];
    const good = await this.#database.query<{ access: string }>`
      SELECT wanted.access
      FROM unnest(${[...byAccess.keys()]}::text[]) AS wanted (access)
      CROSS JOIN LATERAL (
        SELECT split_part(wanted.access, '/', 1)::uuid AS user_id, nullif(split_part(wanted.access, '/', 2), '')::uuid AS key_id,
          nullif(split_part(wanted.access, '/', 3), '')::uuid AS organization_id,
          nullif(split_part(wanted.access, '/', 4), '')::uuid AS project_id,
          coalesce(nullif(split_part(wanted.access, '/', 5), ''), 'viewer')::project_role AS least_role
      ) AS part
      JOIN users ON users.id = part.user_id AND users.disabled_at IS NULL
      LEFT JOIN api_keys AS key ON key.id = part.key_id
      LEFT JOIN projects AS project ON project.id = part.project_id AND project.organization_id = part.organization_id
      LEFT JOIN organization_members AS organization_member
        ON organization_member.organization_id = project.organization_id AND organization_member.user_id = part.user_id
      LEFT JOIN project_members AS project_member
        ON project_member.project_id = project.id AND project_member.user_id = part.user_id
      WHERE (part.key_id IS NULL OR (key.revoked IS NULL AND (key.expires IS NULL OR key.expires > ${now}) AND key.id IS NOT NULL))
        AND (part.project_id IS NULL OR organization_member.role <> 'member' OR (
          organization_member.role = 'member' AND project_member.role >= part.least_role))`;
    for (const { access } of good) byAccess.delete(access);
    return [...byAccess.values()].flat();
  }
}

function accessOf({ holder: { viewer }, project, role }: Watched): string {
  const keyId = viewer?.credential.kind === 'api_key' ? viewer.credential.id : '';
  return `${viewer?.userId}/${keyId}/${project?.organizationId ?? ''}/${project?.projectId ?? ''}/${role ?? ''}`;
}
