import DataLoader from 'dataloader';
import { openProject, type ProjectScope } from '../access/scope.ts';
import { requireSession, type Session, type Viewer } from '../access/viewer.ts';
import { Fault } from '../kernel/fault.ts';
import { parseUuid } from '../kernel/uuid.ts';
import type { Database } from '../platform/database.ts';
import type { Log } from '../platform/log.ts';

/** What the domains keep for the life of the process; each declares its own part. */
// biome-ignore lint/suspicious/noEmptyInterface: the domains fill it by declaration merging
export interface Services {}

/** Calls back once when the access to a project, or the credential, is lost; returns the function that ends the watch. */
export type WatchAccess = (project: ProjectScope, onLost: (fault: Fault) => void) => () => void;

/** What every resolver is given: one a request, whatever the door, and one an event on a subscription. */
export interface Context {
  readonly database: Database;
  readonly log: Log;
  readonly services: Services;
  readonly viewer: Viewer | null;
  readonly watchAccess: WatchAccess;
  /** Takes a fresh session token on an open socket. Throws `invalid_request` on any other door. */
  renewCredential(token: string): Promise<Session>;
  /** The one project that may be opened, where a ticket opened the socket; null: any that the viewer may see. */
  readonly onlyProject: { readonly organizationId: string; readonly projectId: string } | null;
  /** Whether the document is the client's own (limits on its cost apply) or one of the REST table. */
  readonly isClientDocument: boolean;
  /** Throws `not_authenticated` without a credential. */
  requireViewer(): Viewer;
  /** Throws `not_authenticated`, or `session_required` for an API key. */
  requireSession(): Session;
  /** Throws `not_authenticated` or `not_found`. Access is checked once a request, however often the project is named. */
  openProject(ids: { organizationId: string; projectId: string }): Promise<ProjectScope>;
  /** Answers many calls of `load` within one tick by one call of `loadMany`, which is known by its `name`. */
  loadBatched<Key extends string, Value>(name: string, key: Key, loadMany: (keys: readonly Key[]) => Promise<Value[]>): Promise<Value>;
}

export type ContextSource = Pick<
  Context,
  'database' | 'log' | 'services' | 'viewer' | 'watchAccess' | 'renewCredential' | 'onlyProject' | 'isClientDocument'
>;

export function createContext(source: ContextSource): Context {
  const { database, viewer } = source;
  const scopes = new Map<string, Promise<ProjectScope>>();
  const loaders = new Map<string, DataLoader<string, unknown>>();
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
      const key = `${ids.organizationId}/${ids.projectId}`;
      const scope = scopes.get(key) ?? openProject(database, asking, ids);
      scopes.set(key, scope);
      return scope;
    },
    loadBatched<Key extends string, Value>(name: string, key: Key, loadMany: (keys: readonly Key[]) => Promise<Value[]>) {
      const loader = loaders.get(name) ?? new DataLoader<string, unknown>((keys) => loadMany(keys as readonly Key[]));
      loaders.set(name, loader);
      return loader.load(key) as Promise<Value>;
    },
  };
}
