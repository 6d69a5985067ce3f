import { RateLimiterMemory, type RateLimiterRes } from 'rate-limiter-flexible';
import { Fault } from '../kernel/fault.ts';

/** What is left of a budget after a request, and the headers that say so. */
export interface Allowance {
  readonly policy: string;
  readonly limit: number;
  readonly windowSeconds: number;
  readonly remaining: number;
  readonly resetSeconds: number;
}

/** A refusal for want of budget: it carries the allowance, so that the answer shows the same headers as any other. */
export class LimitFault extends Fault {
  readonly allowance: Allowance;

  constructor(allowance: Allowance) {
    super('rate_limited', 'Request was throttled.', {
      retryAfterSeconds: allowance.resetSeconds,
      context: { limit: allowance.limit, window_seconds: allowance.windowSeconds, retry_after_seconds: allowance.resetSeconds },
    });
    this.allowance = allowance;
  }
}

/** The budgets of §8. Each call spends one; throws a LimitFault when nothing is left. */
export interface Limits {
  /** By client address: requests without a credential, or with one that is not valid. */
  spendAnonymous(address: string): Promise<Allowance>;
  /** By user: all the user's sessions and keys together. */
  spendUser(userId: string): Promise<Allowance>;
}

export function openLimits(settings: { anonymousPerMinute: number; userPerHour: number }): Limits {
  const anonymous = openBudget('anonymous', settings.anonymousPerMinute, 60);
  const user = openBudget('user', settings.userPerHour, 3600);
  return { spendAnonymous: anonymous, spendUser: user };
}

/** A budget that is whole again at the end of each window; a key's window begins with its first request. */
function openBudget(policy: string, limit: number, windowSeconds: number): (key: string) => Promise<Allowance> {
  const limiter = new RateLimiterMemory({ keyPrefix: policy, points: limit, duration: windowSeconds });
  const allowance = (state: RateLimiterRes): Allowance => ({
    policy,
    limit,
    windowSeconds,
    remaining: Math.max(0, state.remainingPoints),
    resetSeconds: Math.max(1, Math.ceil(state.msBeforeNext / 1000)),
  });
  return async (key) => {
    try {
      return allowance(await limiter.consume(key));
    } catch (refusal) {
      if (refusal instanceof Error) throw refusal;
      throw new LimitFault(allowance(refusal as RateLimiterRes));
    }
  };
}

/** The fields of the IETF's draft for rate limits (draft-ietf-httpapi-ratelimit-headers). */
export function limitHeaders(allowance: Allowance): Record<string, string> {
  const { policy, limit, windowSeconds, remaining, resetSeconds } = allowance;
  return {
    'RateLimit-Policy': `"${policy}";q=${limit};w=${windowSeconds}`,
    RateLimit: `"${policy}";r=${remaining};t=${resetSeconds}`,
  };
}
