import { RateLimiterMemory, RateLimiterRedis, type RateLimiterRes } from 'rate-limiter-flexible';
import { Fault } from '../kernel/fault.ts';
import type { Metrics } from '../platform/metrics.ts';
import type { Redis } from '../platform/redis.ts';

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

interface LimitParts {
  readonly limits: { readonly anonymousPerMinute: number; readonly userPerHour: number };
  /** Where the replicas count together; null: each for itself. */
  readonly redis: Redis | null;
  readonly metrics: Metrics;
}

export function openLimits({ limits, ...parts }: LimitParts): Limits {
  return {
    spendAnonymous: openBudget({ policy: 'anonymous', limit: limits.anonymousPerMinute, windowSeconds: 60, ...parts }),
    spendUser: openBudget({ policy: 'user', limit: limits.userPerHour, windowSeconds: 3600, ...parts }),
  };
}

interface BudgetParts extends Omit<LimitParts, 'limits'> {
  readonly policy: string;
  readonly limit: number;
  readonly windowSeconds: number;
}

/**
 * A budget that is whole again at the end of each window; a key's window begins with its first request. While Redis is
 * away each process counts for itself: a limit may then be spent once in each of them, but there always is one.
 */
function openBudget({ policy, limit, windowSeconds, redis, metrics }: BudgetParts): (key: string) => Promise<Allowance> {
  const window = { points: limit, duration: windowSeconds };
  const own = new RateLimiterMemory({ ...window, keyPrefix: policy });
  const shared = redis && new RateLimiterRedis({ ...window, keyPrefix: `${redis.prefix}:${policy}`, storeClient: redis.commands });
  const consume = async (key: string): Promise<RateLimiterRes> => {
    if (!shared || !redis) return own.consume(key);
    try {
      return await redis.ask(() => shared.consume(key));
    } catch (failure) {
      if (!(failure instanceof Error)) throw failure;
      metrics.limitFallbacks.inc();
      return own.consume(key);
    }
  };
  const allowance = (state: RateLimiterRes): Allowance => ({
    policy,
    limit,
    windowSeconds,
    remaining: Math.max(0, state.remainingPoints),
    resetSeconds: Math.max(1, Math.ceil(state.msBeforeNext / 1000)),
  });
  return async (key) => {
    try {
      return allowance(await consume(key));
    } catch (refusal) {
      if (refusal instanceof Error) throw refusal;
      metrics.limited.inc({ policy });
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
