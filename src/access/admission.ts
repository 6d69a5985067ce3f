import { Fault } from '../kernel/fault.ts';
import type { Database } from '../platform/database.ts';
import { isProviderAway } from './provider.ts';
import type { Allowance, RateLimits } from './ratelimits.ts';
import { type PrefetchedProject, type ProjectIds, prefetchProject } from './scope.ts';
import type { Tokens } from './tokens.ts';
import { type FindUser, findUserById, identify, type Viewer } from './viewer.ts';

export interface AdmissionDependencies {
  readonly database: Database;
  readonly tokens: Tokens;
  readonly rateLimits: RateLimits;
}

/** Reads what an admission needs of a request, each part only when it is needed. */
interface RequestReader {
  /** The credential, or null without one. Throws `not_authenticated` for one that cannot be read. */
  readCredential(): string | null;
  /** The address that is charged for a request without a valid credential. */
  readAddress(): string;
  /** The project that the request names, null for none: it is read by the same statement as the user. Never rejects. */
  readProject?(userId: string): ProjectIds | null | Promise<ProjectIds | null>;
  /** Called with the viewer before the budget is charged: the log also names the user of a spent budget. */
  recordViewer?(viewer: Viewer): void;
}

/** The viewer of a request, and what remains of the budget that was charged. */
interface Admission {
  /** Null without a valid credential. */
  readonly viewer: Viewer | null;
  /**
   * Set for a credential that is invalid, or that cannot be checked as the identity provider is away: the caller adds the
   * allowance's headers, then throws it.
   */
  readonly fault: Fault | null;
  readonly allowance: Allowance;
  /** Null without a project, and with an API key that this process has not seen yet. */
  readonly prefetched: PrefetchedProject | null;
}

/**
 * The admission over every transport: credential → viewer → budget. A request is charged to the user's budget, or without a valid
 * credential to the address's. Throws a RateLimitFault when the budget is spent, `service_unavailable` without a database.
 */
export async function admit({ database, tokens, rateLimits }: AdmissionDependencies, request: RequestReader): Promise<Admission> {
  let viewer: Viewer | null = null;
  let fault: Fault | null = null;
  let prefetched: PrefetchedProject | null = null;
  const prefetch = async (userId: string) => {
    const project = (await request.readProject?.(userId)) ?? null;
    prefetched = project && prefetchProject(database, userId, project);
    return prefetched;
  };
  const findUser: FindUser = async (userId) => {
    const started = await prefetch(userId);
    return started ? (await started.access).user : findUserById(database, userId);
  };
  try {
    const credential = request.readCredential();
    if (credential !== null) viewer = await identify(database, tokens, credential, { findUser, prefetch });
  } catch (failure) {
    const isRefused = failure instanceof Fault && failure.code === 'not_authenticated';
    if (!isRefused && !isProviderAway(failure)) throw failure;
    fault = failure;
  }
  if (viewer) request.recordViewer?.(viewer);
  const allowance = await (viewer ? rateLimits.spendUser(viewer.userId) : rateLimits.spendAnonymous(request.readAddress()));
  return { viewer, fault, allowance, prefetched };
}
