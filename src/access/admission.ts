import { Fault } from '../kernel/fault.ts';
import type { Database } from '../platform/database.ts';
import type { Allowance, Limits } from './limits.ts';
import { type PrefetchedProject, type ProjectIds, prefetchProject } from './scope.ts';
import type { Tokens } from './tokens.ts';
import { type FindUser, findUserAlone, identify, type Viewer } from './viewer.ts';

export interface AdmissionParts {
  readonly database: Database;
  readonly tokens: Tokens;
  readonly limits: Limits;
}

/** The credential and the address of a request: neither is read before it is needed. */
interface Applicant {
  /** The credential, or null without one. Throws `not_authenticated` for one that cannot be read. */
  readCredential(): string | null;
  /** The address that is charged without a good credential. */
  readAddress(): string;
  /** The project that the request names, null for none: it is looked up along with the user. Never rejects. */
  readProject?(): ProjectIds | null | Promise<ProjectIds | null>;
}

/** The viewer who came in, and what is left of the budget that was charged. */
interface Admission {
  /** Null without a credential. */
  readonly viewer: Viewer | null;
  /** Set for a credential that is not valid: the caller throws it when it has shown the allowance. */
  readonly fault: Fault | null;
  readonly allowance: Allowance;
  /** Null without a project, and with an API key that this process does not know yet. */
  readonly prefetched: PrefetchedProject | null;
}

/**
 * The admission at every door: credential → viewer → budget. A request costs one of the user's budget, or without a valid
 * credential of the address's. Throws a LimitFault when the budget is spent, `service_unavailable` without a database.
 */
export async function admit({ database, tokens, limits }: AdmissionParts, applicant: Applicant): Promise<Admission> {
  let viewer: Viewer | null = null;
  let fault: Fault | null = null;
  let prefetched: PrefetchedProject | null = null;
  const expectUser = async (userId: string) => {
    const project = (await applicant.readProject?.()) ?? null;
    prefetched = project && prefetchProject(database, userId, project);
    return prefetched;
  };
  const findUser: FindUser = async (userId) => {
    const look = await expectUser(userId);
    return look ? (await look.standing).user : findUserAlone(database, userId);
  };
  try {
    const credential = applicant.readCredential();
    if (credential !== null) viewer = await identify(database, tokens, credential, { findUser, expectUser });
  } catch (failure) {
    if (!(failure instanceof Fault) || failure.code !== 'not_authenticated') throw failure;
    fault = failure;
  }
  const allowance = await (viewer ? limits.spendUser(viewer.userId) : limits.spendAnonymous(applicant.readAddress()));
  return { viewer, fault, allowance, prefetched };
}
