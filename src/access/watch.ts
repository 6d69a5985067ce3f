import { Fault } from '../kernel/fault.ts';
import type { Database } from '../platform/database.ts';
import { scheduleJob } from '../platform/jobs.ts';
import type { Log } from '../platform/log.ts';
import type { Viewer } from './viewer.ts';

/** Something that lives on after its access was checked: a socket, a stream. */
export interface Watched {
  /** Who holds it now: a renewed credential counts from the next look on. */
  readonly viewer: () => Viewer;
  /** The project that it shows, if it shows one. */
  readonly project: { readonly organizationId: string; readonly projectId: string } | null;
  /** Called once, when the credential has expired or was revoked, or the user has lost the project. */
  readonly onLost: (fault: Fault) => void;
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

  /** Returns the function that ends the watching. */
  add(watched: Watched): () => void {
    this.#watched.add(watched);
    return () => void this.#watched.delete(watched);
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
      const { credential } = watched.viewer();
      const isExpired = credential.kind === 'session' && credential.expires <= now;
      if (isExpired) this.#lose(watched, new Fault('not_authenticated', 'credential_expired'));
      return !isExpired;
    });
    const lost = await this.#findLost(current, now);
    for (const watched of lost) this.#lose(watched, new Fault('permission_denied', 'access_lost'));
  }

  #lose(watched: Watched, fault: Fault): void {
    if (this.#watched.delete(watched)) watched.onLost(fault);
  }

  /** Asked once for each (user, key, project), however many sockets share it. */
  async #findLost(current: readonly Watched[], now: Date): Promise<Watched[]> {
    const byAccess = new Map<string, Watched[]>();
    for (const watched of current) {
      const access = accessOf(watched);
      byAccess.set(access, [...(byAccess.get(access) ?? []), watched]);
    }
    if (byAccess.size === 0) return [];
    const good = await this.#database.$queryRaw<Array<{ access: string }>>`
      SELECT wanted.access
      FROM unnest(${[...byAccess.keys()]}::text[]) AS wanted (access)
      CROSS JOIN LATERAL (
        SELECT split_part(wanted.access, '/', 1)::uuid AS user_id, nullif(split_part(wanted.access, '/', 2), '')::uuid AS key_id,
          nullif(split_part(wanted.access, '/', 3), '')::uuid AS organization_id,
          nullif(split_part(wanted.access, '/', 4), '')::uuid AS project_id
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
          organization_member.role = 'member' AND project_member.role IS NOT NULL))`;
    for (const { access } of good) byAccess.delete(access);
    return [...byAccess.values()].flat();
  }
}

function accessOf({ viewer, project }: Watched): string {
  const { userId, credential } = viewer();
  const keyId = credential.kind === 'api_key' ? credential.id : '';
  return [userId, keyId, project?.organizationId ?? '', project?.projectId ?? ''].join('/');
}
