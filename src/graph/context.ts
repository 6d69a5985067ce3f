import DataLoader from 'dataloader';
import type { ExecutionResult } from 'graphql';
import type { Lease, Revocable } from '../access/revocation.ts';
import { openProject, type PrefetchedProject, type ProjectIds, type ProjectScope } from '../access/scope.ts';
import { requireSession, type Session, type Viewer } from '../access/viewer.ts';
import { Fault } from '../kernel/fault.ts';
import { toJsonText } from '../kernel/jsontext.ts';
import { getOrInsert } from '../kernel/map.ts';
import { parseUuid } from '../kernel/uuid.ts';
import type { Database } from '../platform/database.ts';
import type { Logger } from '../platform/logger.ts';
import { AnswerBudget, type AnswerContext, type AnswerLimits } from './answer.ts';

/** The process-wide state of the domains; each domain declares its own part by declaration merging. */
export interface Services {
  readonly answers: AnswerLimits;
}

/** Opens a lease on a project for a subscription, which is ended with a fault when access to the project is lost. */
export type WatchAccess = (project: ProjectScope, subscription: Revocable) => Lease;

/** The context of all resolvers: one for each request, at every door, and one for each event of a subscription. */
export interface Context extends AnswerContext {
  readonly database: Database;
  /** The log of the request or the socket, opened only when something is logged. */
  readonly openLogger: () => Logger;
  readonly services: Services;
  readonly viewer: Viewer | null;
  readonly watchAccess: WatchAccess;
  /**
   * Counts the document of a subscription until the returned function is called. Throws `conflict` beyond the limit. Null
   * if the document is the server's own.
   */
  reserveDocument: (() => () => void) | null;
  /** Replaces the session token of an open socket. Throws `invalid_request` at any other door. */
  renewCredential(token: string): Promise<Session>;
  /** The only project that may be opened, for a socket opened with a ticket; null: any that the viewer may see. */
  readonly onlyProject: { readonly organizationId: string; readonly projectId: string } | null;
  /** Throws `not_authenticated` without a credential. */
  requireViewer(): Viewer;
  /** Throws `not_authenticated`, or `session_required` for an API key. */
  requireSession(): Session;
  /** Throws `not_authenticated` or `not_found`. Access is checked once per request, however often the project is named. */
  openProject(ids: ProjectIds): Promise<ProjectScope>;
  /** Registers projects that were opened together, as a list, so that resolvers below them can use `findProject`. */
  registerProjects(scopes: readonly ProjectScope[]): void;
  /** The scope of a project that the request has opened. Throws `not_found` if it has not. */
  findProject(projectId: string): ProjectScope;
  /** The v1 route of the request; null at the other doors, where clients write the documents. */
  readonly route: string | null;
  /** Registers a callback that runs with the result of the operation before it is sent. */
  onResult(finish: FinishResult): void;
  /** Runs the callbacks; null if there are none. */
  finishResult(result: ExecutionResult): Promise<void> | null;
  /** Batches the calls with the same `name` within one tick into one call of `loadMany`, which returns a value for each key, in order. */
  loadBatched<Key extends string, Value>(name: string, key: Key, loadMany: LoadMany<Key, Value>): Promise<Value>;
  /** The same by project, for a field of projects in a list. */
  loadByProject<Value>(name: string, scope: ProjectScope, loadMany: LoadByProject<Value>): Promise<Value>;
  /** Forgets everything that was loaded, as a write is about to change it: a document may have several mutations. */
  clearLoaded(): void;
}

/** May change the data of a result; throws if the result must not be sent. */
type FinishResult = (result: ExecutionResult) => Promise<void>;

type LoadMany<Key extends string, Value> = (keys: readonly Key[]) => Promise<readonly Value[]>;

/** Returns a value for each project, in order. */
type LoadByProject<Value> = (database: Database, scopes: readonly ProjectScope[]) => Promise<readonly Value[]>;

export type ContextSource = Pick<
  Context,
  'database' | 'openLogger' | 'services' | 'viewer' | 'watchAccess' | 'renewCredential' | 'onlyProject' | 'route'
> & {
  /** A lookup of a project that the door has started. */
  readonly prefetched?: PrefetchedProject | null;
};

export function createContext(source: ContextSource): Context {
  const { database, viewer } = source;
  let scopes: Map<string, Promise<ProjectScope>> | null = null;
  let opened: Map<string, ProjectScope> | null = null;
  let budget: AnswerBudget | null = null;
  let loaders: Map<string, DataLoader<string, unknown>> | null = null;
  let callbacks: FinishResult[] | null = null;
  const requireViewer = () => {
    if (!viewer) throw Fault.notAuthenticated();
    return viewer;
  };
  const loadBatched = <Key extends string, Value>(name: string, key: Key, loadMany: LoadMany<Key, Value>) => {
    loaders ??= new Map();
    const loader = getOrInsert(loaders, name, () => new DataLoader<string, unknown>((keys) => loadMany(keys as readonly Key[])));
    return loader.load(key) as Promise<Value>;
  };
  const findProject = (projectId: string) => {
    const scope = opened?.get(projectId);
    if (!scope) throw Fault.notFound();
    return scope;
  };
  // No spread: V8 turns an object literal that begins with one into a dictionary, of 8 KiB for each request.
  return {
    database,
    openLogger: source.openLogger,
    services: source.services,
    viewer,
    watchAccess: source.watchAccess,
    reserveDocument: null,
    renewCredential: source.renewCredential,
    onlyProject: source.onlyProject,
    route: source.route,
    requireViewer,
    requireSession: () => requireSession(requireViewer()),
    async openProject(ids) {
      const requester = requireViewer();
      const only = source.onlyProject;
      if (only && !isOnly(only, ids)) throw Fault.notFound();
      scopes ??= new Map();
      const key = `${ids.organizationId ?? ''}/${ids.projectId}`;
      const scope = await getOrInsert(scopes, key, () => openProject(database, requester, ids, source.prefetched));
      opened ??= new Map();
      opened.set(scope.projectId, scope);
      return scope;
    },
    registerProjects(projects) {
      opened ??= new Map();
      for (const scope of projects) opened.set(scope.projectId, scope);
    },
    findProject,
    openAnswerBudget() {
      budget ??= new AnswerBudget(source.services.answers);
      return budget;
    },
    serializeAnswer: (body) => (budget?.isLarge ? budget.serialize(body) : toJsonText(body)),
    findAnswerBudget: () => budget,
    onResult(callback) {
      callbacks ??= [];
      callbacks.push(callback);
    },
    finishResult: (result) => callbacks && runAll(callbacks, result),
    loadBatched,
    clearLoaded() {
      loaders = null;
    },
    loadByProject: (name, scope, loadMany) => loadBatched(name, scope.projectId, async (ids) => loadMany(database, ids.map(findProject))),
  };
}

async function runAll(callbacks: readonly FinishResult[], result: ExecutionResult): Promise<void> {
  for (const callback of callbacks) await callback(result);
}

function isOnly(only: NonNullable<Context['onlyProject']>, { organizationId, projectId }: ProjectIds): boolean {
  const hasOrganization = organizationId !== null && organizationId !== undefined;
  return only.projectId === parseUuid(projectId) && (!hasOrganization || only.organizationId === parseUuid(organizationId));
}
