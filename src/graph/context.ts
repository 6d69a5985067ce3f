import type { ExecutionResult } from 'graphql';
import { type Allowance, RateLimitFault, type RateLimits } from '../access/ratelimits.ts';
import type { Lease, Revocable } from '../access/revocation.ts';
import type { ProjectIds, ProjectScope } from '../access/scope.ts';
import { refreshViewer, requireSession, type Session, type Viewer } from '../access/viewer.ts';
import { Fault } from '../kernel/fault.ts';
import { stringifyJson } from '../kernel/json/text.ts';
import type { KeyedSemaphore } from '../kernel/semaphore.ts';
import type { Database } from '../platform/database.ts';
import type { Logger } from '../platform/logger.ts';
import type { UserDatabases } from '../platform/userdatabases.ts';
import { type OnlyProject, OpenedProjects, type ProjectSource } from './openedprojects.ts';
import { type LoadByProject, type LoadInScope, RequestLoaders } from './requestloaders.ts';
import { ResponseBudget, type ResponseContext, type ResponseLimits } from './responsebudget.ts';

/** The maximum number of what a user or a project may have. */
interface Quotas {
  readonly dashboardsPerProject: number;
  readonly notificationBytesPerProject: number;
  /** Revoked and expired ones are not counted. */
  readonly keysPerUser: number;
  readonly idempotencyKeysPerUser: number;
}

/** The dependencies that all requests of a process share; a domain declares its own part by declaration merging. */
export interface Services {
  readonly rateLimits: RateLimits;
  /** Limits the operations that a user runs at the same time. */
  readonly semaphore: KeyedSemaphore;
  /** The same for operations with a high cost, of which a user runs one at a time. */
  readonly costlySemaphore: KeyedSemaphore;
  /** The database for each user. */
  readonly userDatabases: UserDatabases;
  readonly responseLimits: ResponseLimits;
  readonly quotas: Quotas;
}

/** Opens a lease on a project for a subscription, which is ended with a fault when access to the project is lost. */
export type WatchAccess = (project: ProjectScope, subscription: Revocable) => Lease;

/** How long an admission counts while a request waits: as long as the lease of a socket does, until it is polled. */
export const ADMISSION_MAX_AGE_MS = 1_000;

/** The context of all resolvers: one for each request, and over a WebSocket one for each event of a subscription. */
export interface Context extends ResponseContext {
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
  /** Replaces the session token of an open socket. Throws `invalid_request` over any other transport. */
  renewCredential(token: string): Promise<Session>;
  /** The only project that may be opened: that of a socket’s ticket or path. Null: any that the viewer may see. */
  readonly onlyProject: OnlyProject | null;
  /** Adds to the time that the operation has waited for others of its user, in milliseconds, for the log. */
  recordWait(milliseconds: number): void;
  /** Throws once the client has gone, over a WebSocket once it is closed: nothing more is begun for it. */
  requireClient(): void;
  /** To be called when the operation has waited. Throws `not_authenticated` if its credential was revoked meanwhile. */
  admitAgain(): Promise<void>;
  /** Charges the viewer's budget for more requests. Throws `rate_limited` if not as many remain. */
  chargeRequests(requests: number): Promise<void>;
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
  /** The v1 operation of the request; null for GraphQL, where clients write the documents. */
  readonly v1Operation: string | null;
  /** Registers a callback that runs with the result of the operation before it is sent. */
  onResult(finish: FinishResult): void;
  /** Runs the callbacks; null if there are none. */
  finishResult(result: ExecutionResult): Promise<void> | null;
  /**
   * Batches the calls of a function with the same arguments within one tick into one call, and remembers its values. The function is
   * declared outside of the resolvers: one that is created for a call would not be batched with any other.
   */
  loadBatched<Key extends string, Args extends readonly unknown[], Value>(
    loadMany: LoadMany<Key, Args, Value>,
    key: Key,
    ...args: Args
  ): Promise<Value>;
  /** The same by project. */
  loadByProject<Args extends readonly unknown[], Value>(
    loadMany: LoadByProject<Args, Value>,
    scope: ProjectScope,
    ...args: Args
  ): Promise<Value>;
  /** The same by the id of an object of a project. Throws `not_found` if the request has not opened the project. */
  loadInScope<Args extends readonly unknown[], Value>(
    loadMany: LoadInScope<Args, Value>,
    projectId: string,
    id: string,
    ...args: Args
  ): Promise<Value>;
  /** Forgets everything that was loaded. */
  clearLoaded(): void;
  /** Forgets each access that was checked. */
  clearOpened(): void;
  /**
   * Loads nothing more: when a field fails, those beside it would go on without a client. Resolves when what is being loaded has been;
   * null if nothing is.
   */
  endLoading(): Promise<unknown> | null;
}

/** May change the data of a result; throws if the result must not be sent. */
type FinishResult = (result: ExecutionResult) => Promise<void>;

/** Returns a value for each key, in order. The arguments are told apart by their JSON. */
export type LoadMany<Key extends string, Args extends readonly unknown[], Value> = (
  context: Context,
  keys: readonly Key[],
  ...args: Args
) => Promise<readonly Value[]>;

export interface ContextSource
  extends ProjectSource,
    Pick<Context, 'openLogger' | 'services' | 'viewer' | 'watchAccess' | 'renewCredential' | 'v1Operation'> {
  readonly recordWait?: Context['recordWait'];
  /** Receives what remains of the budget after more than one request was charged. */
  readonly recordAllowance?: (allowance: Allowance) => void;
  /** Whether the client has gone, so that nothing is begun for it: Yoga would neither read nor end a stream that opens then. */
  readonly isAbandoned?: () => boolean;
  /** Throws once the socket is closed: its operations start nothing more. */
  readonly requireOpen?: () => void;
  /** Replaces `admitAgain`, where the viewer may have been renewed meanwhile. */
  readonly admitAgain?: () => Promise<void>;
}

export function createContext(source: ContextSource): Context {
  const { viewer } = source;
  const database = viewer ? source.services.userDatabases.of(viewer.userId) : source.database;
  const projects = new OpenedProjects(source, database);
  const loaders = new RequestLoaders(database, projects);
  let budget: ResponseBudget | null = null;
  let callbacks: FinishResult[] | null = null;
  const requireViewer = () => {
    source.requireOpen?.();
    if (!viewer) throw Fault.notAuthenticated();
    return viewer;
  };
  const requireClient = () => {
    source.requireOpen?.();
    if (source.isAbandoned?.()) throw Fault.invalidRequest('The client has gone.');
  };
  // No spread: V8 turns an object literal that begins with one into a dictionary, of 8 KiB for each request.
  const context: Context = {
    database,
    openLogger: source.openLogger,
    services: source.services,
    viewer,
    watchAccess: source.watchAccess,
    reserveDocument: null,
    renewCredential: source.renewCredential,
    onlyProject: source.onlyProject,
    v1Operation: source.v1Operation,
    recordWait: source.recordWait ?? (() => {}),
    async chargeRequests(requests) {
      const { userId } = requireViewer();
      try {
        source.recordAllowance?.(await source.services.rateLimits.spendUser(userId, requests));
      } catch (failure) {
        if (failure instanceof RateLimitFault) source.recordAllowance?.(failure.allowance);
        throw failure;
      }
    },
    async admitAgain() {
      projects.dropPrefetched();
      if (source.admitAgain) await source.admitAgain();
      else if (viewer) await refreshViewer(source.database, viewer);
    },
    requireClient,
    requireViewer,
    requireSession: () => requireSession(requireViewer()),
    async openProject(ids) {
      const scope = await projects.open(requireViewer(), ids);
      requireClient();
      projects.register(scope);
      return scope;
    },
    registerProjects(scopes) {
      for (const scope of scopes) projects.register(scope);
    },
    findProject: (projectId) => projects.find(projectId),
    openResponseBudget() {
      const { maxBytes, largeResponses } = source.services.responseLimits;
      budget ??= new ResponseBudget({
        maxBytes,
        runInSlot: (task) => largeResponses.run(viewer?.userId ?? '', task),
        async admitAfter(waitedMs) {
          if (waitedMs <= ADMISSION_MAX_AGE_MS) return;
          await context.admitAgain();
          await projects.checkAgain(requireViewer());
        },
      });
      return budget;
    },
    serializeResponse: (body) => (budget?.isLarge ? budget.serialize(body) : stringifyJson(body)),
    findResponseBudget: () => budget,
    onResult(callback) {
      callbacks ??= [];
      callbacks.push(callback);
    },
    finishResult: (result) => callbacks && runAll(callbacks, result),
    loadBatched: (loadMany, key, ...args) => loaders.load(loadMany, args, key, (keys) => loadMany(context, keys, ...args)),
    clearLoaded: () => loaders.clear(),
    clearOpened: () => projects.clear(),
    endLoading() {
      budget?.stopReading();
      return loaders.end();
    },
    loadByProject: (loadMany, scope, ...args) => loaders.loadByProject(loadMany, scope, args),
    loadInScope: (loadMany, projectId, id, ...args) => loaders.loadInScope(loadMany, projectId, id, args),
  };
  return context;
}

async function runAll(callbacks: readonly FinishResult[], result: ExecutionResult): Promise<void> {
  for (const callback of callbacks) await callback(result);
}
