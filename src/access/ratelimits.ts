import { RateLimiterRedis, type RateLimiterRes } from 'rate-limiter-flexible';
import { Fault } from '../kernel/fault.ts';
import type { Metrics } from '../platform/metrics.ts';
import type { Redis } from '../platform/redis.ts';
import { FixedWindowCounters, type WindowCount } from './fixedwindow.ts';

/** The rest of a budget after a request, for the headers of the response. */
export interface Allowance {
  readonly policy: string;
  readonly limit: number;
  readonly windowSeconds: number;
  readonly remaining: number;
  readonly resetSeconds: number;
}

/** The fault of a spent budget. It carries the allowance, so that the response has the same headers as any other. */
export class RateLimitFault extends Fault {
  constructor(readonly allowance: Allowance) {
    super('rate_limited', 'Request was throttled.', {
      retryAfterSeconds: allowance.resetSeconds,
      context: { limit: allowance.limit, window_seconds: allowance.windowSeconds, retry_after_seconds: allowance.resetSeconds },
    });
  }
}

/** The budgets of §8. Each call charges one request, or as many as it says, and throws a RateLimitFault when not so much remains. */
export interface RateLimits {
  /** Charges a client address for a request without a valid credential. */
  spendAnonymous(address: string): Promise<Allowance>;
  /** Charges a user, for all their sessions and keys together. */
  spendUser(userId: string, requests?: number): Promise<Allowance>;
  /** Charges a client address for a page: a budget of its own, in each process. */
  spendPage(address: string): Promise<Allowance>;
}

interface RateLimitDependencies {
  readonly limits: { readonly anonymousPerMinute: number; readonly userPerHour: number; readonly pagesPerMinute: number };
  /** Holds the counters that the replicas share; null: each process counts for itself. */
  readonly redis: Redis | null;
  readonly metrics: Metrics;
}

export function openRateLimits({ limits, ...dependencies }: RateLimitDependencies): RateLimits {
  return {
    spendAnonymous: openBudget({ policy: 'anonymous', limit: limits.anonymousPerMinute, windowSeconds: 60, ...dependencies }),
    spendUser: openBudget({ policy: 'user', limit: limits.userPerHour, windowSeconds: 3600, ...dependencies }),
    spendPage: openBudget({ policy: 'pages', limit: limits.pagesPerMinute, windowSeconds: 60, ...dependencies, redis: null }),
  };
}

interface BudgetOptions extends Omit<RateLimitDependencies, 'limits'> {
  readonly policy: string;
  readonly limit: number;
  readonly windowSeconds: number;
}

/**
 * A fixed-window rate limit; a key's window begins with its first request. While Redis is unavailable each process counts for
 * itself, and the limit holds in each of them; rate-limiter-flexible's `insuranceLimiter` does the same by `RateLimiterMemory`.
 */
function openBudget({
  policy,
  limit,
  windowSeconds,
  redis,
  metrics,
}: BudgetOptions): (key: string, requests?: number) => Promise<Allowance> {
  // From the start, so that Prometheus also sees the first rejections as an increase.
  metrics.rateLimited.inc({ policy }, 0);
  const local = new FixedWindowCounters(windowSeconds);
  const shared =
    redis &&
    new RateLimiterRedis({ points: limit, duration: windowSeconds, keyPrefix: `${redis.prefix}:${policy}`, storeClient: redis.commands });
  const count = async (key: string, requests: number): Promise<WindowCount> => {
    if (!shared || !redis) return local.count(key, requests);
    try {
      return readCount(await redis.run(() => shared.consume(key, requests)));
    } catch (failure) {
      // When the budget is spent, the limiter throws its state, which is not an Error.
      if (!(failure instanceof Error)) return readCount(failure as RateLimiterRes);
      metrics.rateLimitFallbacks.inc();
      return local.count(key, requests);
    }
  };
  return async (key, requests = 1) => {
    const spent = await count(key, requests);
    const allowance: Allowance = {
      policy,
      limit,
      windowSeconds,
      remaining: Math.max(0, limit - spent.count),
      // Floating point may leave a window a little more than its length.
      resetSeconds: Math.min(windowSeconds, Math.max(1, Math.ceil(spent.msLeft / 1000))),
    };
    if (spent.count <= limit) return allowance;
    metrics.rateLimited.inc({ policy });
    throw new RateLimitFault(allowance);
  };
}

function readCount({ consumedPoints, msBeforeNext }: RateLimiterRes): WindowCount {
  return { count: consumedPoints, msLeft: msBeforeNext };
}

/** Appends the header fields of draft-ietf-httpapi-ratelimit-headers (name, value, name, value), or updates what remains of the same budget. */
export function addRateLimitHeaders(headers: string[], allowance: Allowance): void {
  const { policy, limit, windowSeconds, remaining, resetSeconds } = allowance;
  const left = `"${policy}";r=${remaining};t=${resetSeconds}`;
  const at = headers.indexOf('RateLimit');
  if (at < 0) headers.push('RateLimit-Policy', `"${policy}";q=${limit};w=${windowSeconds}`, 'RateLimit', left);
  else headers[at + 1] = left;
}
