import { Router } from 'express';
import type { Tokens } from '../access/tokens.ts';
import { foldCalls } from '../kernel/fold.ts';
import type { Lifecycle } from '../kernel/lifecycle.ts';
import type { Database } from '../platform/database.ts';
import type { Connections } from '../platform/driver.ts';
import type { Metrics } from '../platform/metrics.ts';
import type { Redis } from '../platform/redis.ts';
import { exchangeOf, sendJson } from './exchange.ts';

export interface HealthParts {
  readonly lifecycle: Lifecycle;
  readonly database: Database;
  readonly connections: Connections | null;
  readonly redis: Redis | null;
  readonly tokens: Tokens;
  readonly metrics: Metrics;
}

/** What the machines ask that run Portico: neither counted nor logged as requests are, and without a credential. */
export function createHealthDoor(parts: HealthParts): Router {
  const { lifecycle, metrics } = parts;
  const router = Router({ caseSensitive: true, strict: true });
  const readDatabase = watchDatabase(parts);

  /** The process itself: it depends on nothing, as a new process would not help. */
  router.get('/health/live', (request, response) => {
    exchangeOf(request).isQuiet = true;
    sendJson(response, 200, { status: 'live' }, noStore);
  });

  /** Whether to send requests here. Without Redis or the identity provider all goes on; without the database nothing does. */
  router.get('/health/ready', async (request, response) => {
    exchangeOf(request).isQuiet = true;
    const checks = { database: await readDatabase(), ...readOthers(parts) };
    const isDegraded = Object.values(checks).includes('down');
    const status = lifecycle.isClosing ? 'draining' : checks.database === 'down' ? 'unavailable' : isDegraded ? 'degraded' : 'ready';
    const isReady = status === 'ready' || status === 'degraded';
    sendJson(response, isReady ? 200 : 503, { status, checks }, isReady ? noStore : { ...noStore, 'Retry-After': '1' });
  });

  router.get('/metrics', async (request, response) => {
    exchangeOf(request).isQuiet = true;
    const text = await metrics.registry.metrics();
    response.writeHead(200, { ...noStore, 'Content-Type': metrics.registry.contentType });
    response.end(request.method === 'HEAD' ? undefined : text);
  });

  metrics.gauges('portico_dependency_up', 'Whether a dependency answers: 1 or 0.', 'dependency', () => {
    const checks = { database: parts.connections?.isAway ? 'down' : 'up', ...readOthers(parts) };
    return Object.fromEntries(Object.entries(checks).map(([name, state]) => [name, state === 'up' ? 1 : 0]));
  });
  return router;
}

const noStore = { 'Cache-Control': 'no-store' };

/** Asks the database itself, once for all who want to know at the same time. */
function watchDatabase({ database }: HealthParts): () => Promise<'up' | 'down'> {
  let state: 'up' | 'down' = 'up';
  const ask = foldCalls(async () => {
    try {
      await database.query`SELECT 1`;
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
