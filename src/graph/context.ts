import DataLoader from 'dataloader';
import { openProject, type ProjectScope } from '../access/scope.ts';
import { requireSession, type Session, type Viewer } from '../access/viewer.ts';
import type { Shown, Watched } from '../access/watch.ts';
import { Fault } from '../kernel/fault.ts';
import { parseUuid } from '../kernel/uuid.ts';
import type { Database } from '../platform/database.ts';
import type { Log } from '../platform/log.ts';

/** What the domains keep for the life of the process; each declares its own part. */
// biome-ignore lint/suspicious/noEmptyInterface: the domains fill it by declaration merging
export interface Services {}

/** Watches the access to a project for as long as something shows it, and ends that with a fault when the access is lost. */
export type WatchAccess = (project: ProjectScope, shown: Shown) => Watched;

/** What every resolver is given: one a request, whatever the door, and one an event on a subscription. */
export interface Context {
  readonly database: Database;
  /** The log of the request or the socket, which is opened only where there is something to say. */
  readonly openLog: () => Log;
  readonly services: Services;
  readonly viewer: Viewer | null;
  readonly watchAccess: WatchAccess;
  /** Takes a fresh session token on an open socket. Throws `invalid_request` on any other door. */
  renewCredential(token: string): Promise<Session>;
  /** The one project that may be opened, where a ticket opened the socket; null: any that the viewer may see. */
  readonly onlyProject: { readonly organizationId: string; readonly projectId: string } | null;
  /** Throws `not_authenticated` without a credential. */
  requireViewer(): Viewer;
  /** Throws `not_authenticated`, or `session_required` for an API key. */
  requireSession(): Session;
  /** Throws `not_authenticated` or `not_found`. Access is checked once a request, however often the project is named. */
  openProject(ids: { organizationId: string; projectId: string }): Promise<ProjectScope>;
  /** The scope through which the request has reached something of the project. Throws `not_found` where it opened none. */
  findProject(projectId: string): Promise<ProjectScope>;
  /** Answers many calls of `load` within one tick by one call of `loadMany`, which is known by its `name`. */
  loadBatched<Key extends string, Value>(name: string, key: Key, loadMany: (keys: readonly Key[]) => Promise<Value[]>): Promise<Value>;
}

export type ContextSource = Pick<
  Context,
  'database' | 'openLog' | 'services' | 'viewer' | 'watchAccess' | 'renewCredential' | 'onlyProject'
>;

export function createContext(source: ContextSource): Context {
  const { database, viewer } = source;
  let scopes: Map<string, Promise<ProjectScope>> | null = null;
  let loaders: Map<string, DataLoader<string, unknown>> | null = null;
  const requireViewer = () => {
    if (!viewer) throw Fault.notAuthenticated();
    return viewer;
  };
  return {
    ...source,
    requireViewer,
    requireSession: () => requireSession(requireViewer()),
    async openProject(ids) {
      const asking = requireViewer();
      const only = source.onlyProject;
      if (only && (only.organizationId !== parseUuid(ids.organizationId) || only.projectId !== parseUuid(ids.projectId)))
        throw Fault.notFound();
      scopes ??= new Map();
      const key = `${ids.organizationId}/${ids.projectId}`;
      const scope = scopes.get(key) ?? openProject(database, asking, ids);
      scopes.set(key, scope);
      return scope;
    },
    async findProject(projectId) {
      const opened = await Promise.all([...(scopes?.values() ?? [])].map((scope) => scope.catch(() => null)));
      const found = opened.find((scope) => scope?.projectId === projectId);
      if (!found) throw Fault.notFound();
      return found;
    },
    loadBatched<Key extends string, Value>(name: string, key: Key, loadMany: (keys: readonly Key[]) => Promise<Value[]>) {
      loaders ??= new Map();
      const loader = loaders.get(name) ?? new DataLoader<string, unknown>((keys) => loadMany(keys as readonly Key[]));
      loaders.set(name, loader);
      return loader.load(key) as Promise<Value>;
    },
  };
}
