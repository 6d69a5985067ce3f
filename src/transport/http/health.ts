import { Router } from 'express';
import type { Tokens } from '../../access/tokens.ts';
import { coalesceCalls } from '../../kernel/coalesce.ts';
import type { Lifecycle } from '../../kernel/lifecycle.ts';
import type { Database } from '../../platform/database.ts';
import type { PoolState } from '../../platform/driver.ts';
import type { Metrics } from '../../platform/metrics.ts';
import type { Redis } from '../../platform/redis.ts';
import { exchangeOf } from './exchange.ts';
import { send, sendJson } from './send.ts';

export interface HealthParts {
  readonly lifecycle: Lifecycle;
  readonly database: Database;
  readonly connections: PoolState | null;
  readonly redis: Redis | null;
  readonly tokens: Tokens;
  readonly metrics: Metrics;
}

/** The endpoints for the machines that run Portico: without a credential, a budget or a log line. */
export function createHealthDoor(parts: HealthParts): Router {
  const { lifecycle, metrics } = parts;
  const router = Router({ caseSensitive: true, strict: true });
  const readDatabase = watchDatabase(parts);

  /** Liveness depends on nothing else: a new process would not bring it back. */
  router.get('/health/live', (request, response) => {
    exchangeOf(request).isQuiet = true;
    sendJson(response, 200, { status: 'live' }, noStore);
  });

  /** Readiness depends on the database alone; without Redis or the identity provider the process is degraded. */
  router.get('/health/ready', async (request, response) => {
    exchangeOf(request).isQuiet = true;
    const checks = { database: await readDatabase(), ...readOthers(parts) };
    const isDegraded = Object.values(checks).includes('down');
    const hindrance = lifecycle.isClosing
      ? 'draining'
      : checks.database === 'down'
        ? 'unavailable'
        : lifecycle.isStarting
          ? 'starting'
          : null;
    const status = hindrance ?? (isDegraded ? 'degraded' : 'ready');
    const isReady = hindrance === null;
    sendJson(response, isReady ? 200 : 503, { status, checks }, isReady ? noStore : { ...noStore, 'Retry-After': '1' });
  });

  router.get('/metrics', async (request, response) => {
    exchangeOf(request).isQuiet = true;
    send(response, 200, await metrics.registry.metrics(), metrics.registry.contentType, noStore);
  });

  metrics.gauges('portico_dependency_up', 'Whether a dependency answers: 1 or 0.', 'dependency', () => {
    const checks = { database: parts.connections?.isAway ? 'down' : 'up', ...readOthers(parts) };
    return Object.fromEntries(Object.entries(checks).map(([name, state]) => [name, state === 'up' ? 1 : 0]));
  });
  return router;
}

const noStore = { 'Cache-Control': 'no-store' };

/** Asks the database; requests at the same time share one question. */
function watchDatabase({ database }: HealthParts): () => Promise<'up' | 'down'> {
  let state: 'up' | 'down' = 'up';
  const ask = coalesceCalls(async () => {
    try {
      await database.query<{ alive: number }>`SELECT 1 AS alive`;
      state = 'up';
    } catch {
      state = 'down';
    }
  });
  return async () => {
    await ask();
    return state;
  };
}

function readOthers({ redis, tokens }: HealthParts): Record<string, 'up' | 'down'> {
  return {
    ...(redis && { redis: redis.isAway ? 'down' : 'up' }),
    ...(!tokens.local && { identity_provider: tokens.isAway ? 'down' : 'up' }),
  };
}
