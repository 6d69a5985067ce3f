import DataLoader from 'dataloader';
import type { ExecutionResult } from 'graphql';
import { openProject, type PrefetchedProject, type ProjectIds, type ProjectScope } from '../access/scope.ts';
import { requireSession, type Session, type Viewer } from '../access/viewer.ts';
import type { Lease, Revocable } from '../access/watch.ts';
import { Fault } from '../kernel/fault.ts';
import { toJsonText } from '../kernel/jsontext.ts';
import { parseUuid } from '../kernel/uuid.ts';
import type { Database } from '../platform/database.ts';
import type { Logger } from '../platform/logger.ts';
import { AnswerBudget, type AnswerContext, type AnswerLimits } from './answer.ts';

/** What the domains keep for the life of the process; each declares its own part. */
export interface Services {
  readonly answers: AnswerLimits;
}

/** A lease on a project for a subscription, which is ended with a fault when access to the project is lost. */
export type WatchAccess = (project: ProjectScope, subscription: Revocable) => Lease;

/** What every resolver is given: one a request, whatever the door, and one an event on a subscription. */
export interface Context extends AnswerContext {
  readonly database: Database;
  /** The log of the request or the socket, which is opened only where there is something to say. */
  readonly openLogger: () => Logger;
  readonly services: Services;
  readonly viewer: Viewer | null;
  readonly watchAccess: WatchAccess;
  /**
   * Counts the document of a subscription until the function that it returns is called. Throws `conflict` for one document too
   * many. Null where the document is the server's own.
   */
  holdDocument: (() => () => void) | null;
  /** Takes a fresh session token on an open socket. Throws `invalid_request` on any other door. */
  renewCredential(token: string): Promise<Session>;
  /** The one project that may be opened, where a ticket opened the socket; null: any that the viewer may see. */
  readonly onlyProject: { readonly organizationId: string; readonly projectId: string } | null;
  /** Throws `not_authenticated` without a credential. */
  requireViewer(): Viewer;
  /** Throws `not_authenticated`, or `session_required` for an API key. */
  requireSession(): Session;
  /** Throws `not_authenticated` or `not_found`. Access is checked once a request, however often the project is named. */
  openProject(ids: ProjectIds): Promise<ProjectScope>;
  /** Projects that were opened together, as a list: what hangs under them finds them by `findProject`. */
  keepProjects(scopes: readonly ProjectScope[]): void;
  /** The scope through which the request has reached something of the project. Throws `not_found` where it opened none. */
  findProject(projectId: string): ProjectScope;
  /** Of v1's table the operation that is asked for; null at the other doors, whose documents are the clients' own. */
  readonly route: string | null;
  /** Calls back with the result of the operation, before it is answered. */
  onResult(finish: FinishResult): void;
  /** Null where nothing waits for the result. */
  finishResult(result: ExecutionResult): Promise<void> | null;
  /** Answers many calls of `load` within one tick by one call of `loadMany`, which is known by its `name`. */
  loadBatched<Key extends string, Value>(name: string, key: Key, loadMany: (keys: readonly Key[]) => Promise<Value[]>): Promise<Value>;
  /** The same of projects: those of a list are asked about together. */
  loadByProject<Value>(name: string, scope: ProjectScope, loadMany: LoadByProject<Value>): Promise<Value>;
}

/** May change the data of a result; throws where the result must not be answered. */
export type FinishResult = (result: ExecutionResult) => Promise<void>;

/** Answers for each project, in their order. */
type LoadByProject<Value> = (database: Database, scopes: readonly ProjectScope[]) => Promise<readonly Value[]>;

export type ContextSource = Pick<
  Context,
  'database' | 'openLogger' | 'services' | 'viewer' | 'watchAccess' | 'renewCredential' | 'onlyProject' | 'route'
> & {
  /** A look at a project that the door has begun. */
  readonly prefetched?: PrefetchedProject | null;
};

export function createContext(source: ContextSource): Context {
  const { database, viewer } = source;
  let scopes: Map<string, Promise<ProjectScope>> | null = null;
  let opened: Map<string, ProjectScope> | null = null;
  let budget: AnswerBudget | null = null;
  let loaders: Map<string, DataLoader<string, unknown>> | null = null;
  let finishes: FinishResult[] | null = null;
  const requireViewer = () => {
    if (!viewer) throw Fault.notAuthenticated();
    return viewer;
  };
  const loadBatched = <Key extends string, Value>(name: string, key: Key, loadMany: (keys: readonly Key[]) => Promise<Value[]>) => {
    loaders ??= new Map();
    const loader = loaders.get(name) ?? new DataLoader<string, unknown>((keys) => loadMany(keys as readonly Key[]));
    loaders.set(name, loader);
    return loader.load(key) as Promise<Value>;
  };
  const findProject = (projectId: string) => {
    const scope = opened?.get(projectId);
    if (!scope) throw Fault.notFound();
    return scope;
  };
  // Written out: of a literal that begins with a spread V8 makes a dictionary, of 8 KiB for each request.
  return {
    database,
    openLogger: source.openLogger,
    services: source.services,
    viewer,
    watchAccess: source.watchAccess,
    holdDocument: null,
    renewCredential: source.renewCredential,
    onlyProject: source.onlyProject,
    route: source.route,
    requireViewer,
    requireSession: () => requireSession(requireViewer()),
    async openProject(ids) {
      const asking = requireViewer();
      const only = source.onlyProject;
      if (only && !isOnly(only, ids)) throw Fault.notFound();
      scopes ??= new Map();
      const key = `${ids.organizationId ?? ''}/${ids.projectId}`;
      const opening = scopes.get(key) ?? openProject(database, asking, ids, source.prefetched);
      scopes.set(key, opening);
      const scope = await opening;
      opened ??= new Map();
      opened.set(scope.projectId, scope);
      return scope;
    },
    keepProjects(found) {
      opened ??= new Map();
      for (const scope of found) opened.set(scope.projectId, scope);
    },
    findProject,
    openAnswerBudget() {
      budget ??= new AnswerBudget(source.services.answers);
      return budget;
    },
    wordAnswer: (body) => (budget?.isLarge ? budget.word(body) : toJsonText(body)),
    isLargeAnswer: () => budget?.isLarge ?? false,
    closeAnswer: () => budget?.close(),
    findExcess: () => budget?.excess ?? null,
    onResult(finish) {
      finishes ??= [];
      finishes.push(finish);
    },
    finishResult: (result) => finishes && runAll(finishes, result),
    loadBatched,
    loadByProject: (name, scope, loadMany) =>
      loadBatched(name, scope.projectId, async (ids) => [...(await loadMany(database, ids.map(findProject)))]),
  };
}

async function runAll(finishes: readonly FinishResult[], result: ExecutionResult): Promise<void> {
  for (const finish of finishes) await finish(result);
}

function isOnly(only: NonNullable<Context['onlyProject']>, { organizationId, projectId }: ProjectIds): boolean {
  const isWithin = organizationId !== null && organizationId !== undefined;
  return only.projectId === parseUuid(projectId) && (!isWithin || only.organizationId === parseUuid(organizationId));
}
