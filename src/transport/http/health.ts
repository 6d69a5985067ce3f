import { setTimeout as sleep } from 'node:timers/promises';
import type { Router } from 'express';
import type { Tokens } from '../../access/tokens.ts';
import { coalesceCalls } from '../../kernel/coalesce.ts';
import type { Lifecycle } from '../../kernel/lifecycle.ts';
import type { Database } from '../../platform/database.ts';
import type { PoolState } from '../../platform/driver.ts';
import { toFault } from '../../platform/errors.ts';
import { logCause } from '../../platform/faultlog.ts';
import type { Logger } from '../../platform/logger.ts';
import type { Metrics } from '../../platform/metrics.ts';
import type { Redis } from '../../platform/redis.ts';
import { exchangeOf } from './exchange.ts';
import { send, sendJson } from './send.ts';

export interface HealthDependencies {
  readonly lifecycle: Lifecycle;
  readonly database: Database;
  readonly pool: PoolState | null;
  readonly redis: Redis | null;
  readonly tokens: Tokens;
  readonly metrics: Metrics;
  readonly log: Logger;
}

/** `incomplete`: PostgreSQL answers, but tables are missing. */
type State = 'up' | 'down' | 'incomplete';

/** The pause after a rendering of the metrics, in multiples of the time that it took. */
const RENDER_PAUSE_FACTOR = 9;

const noStore = { 'Cache-Control': 'no-store' };

/** Adds the endpoints for orchestrators and monitors, without a credential, a budget or a log line. */
export function addHealth(router: Router, dependencies: HealthDependencies): void {
  const { lifecycle, metrics, pool } = dependencies;
  const checkDatabase = createDatabaseCheck(dependencies);

  /** Liveness depends on nothing else: a new process would not bring it back. */
  router.get('/health/live', (request, response) => {
    exchangeOf(request).isQuiet = true;
    sendJson(response, 200, { status: 'live' }, noStore);
  });

  /** Readiness depends on the database alone; without Redis or the identity provider the process is degraded. */
  router.get('/health/ready', async (request, response) => {
    exchangeOf(request).isQuiet = true;
    const checks = { database: await checkDatabase(), ...readOthers(dependencies) };
    const status = readinessOf(lifecycle, checks);
    const isServing = isReady(status);
    sendJson(response, isServing ? 200 : 503, { status, checks }, isServing ? noStore : { ...noStore, 'Retry-After': '1' });
  });

  const renderMetrics = createMetricsRenderer(metrics);
  router.get('/metrics', async (request, response) => {
    exchangeOf(request).isQuiet = true;
    send(response, 200, await renderMetrics(), metrics.registry.contentType, noStore);
  });

  /** The states that are known without a query, so that a scrape does not wait for the database. */
  const readKnown = (): Record<string, State> => ({ database: pool?.isAway ? 'down' : 'up', ...readOthers(dependencies) });
  metrics.gauge('portico_ready', 'Whether the process is ready for requests: 1 or 0.', () =>
    isReady(readinessOf(lifecycle, readKnown())) ? 1 : 0,
  );
  metrics.gauges('portico_dependency_up', 'Whether a dependency answers: 1 or 0.', 'dependency', () =>
    Object.fromEntries(Object.entries(readKnown()).map(([name, state]) => [name, state === 'up' ? 1 : 0])),
  );
}

/**
 * Renders the metrics: requests that wait share a rendering, which begins after the last of them. As anybody may ask, and each rendering
 * takes milliseconds, they take at most a tenth of the process's time together.
 */
function createMetricsRenderer({ registry }: Metrics): () => Promise<string> {
  let text = '';
  let nextAt = 0;
  const render = coalesceCalls(async () => {
    const pauseMs = nextAt - performance.now();
    if (pauseMs > 0) await sleep(pauseMs);
    const began = performance.now();
    try {
      text = await registry.metrics();
    } finally {
      const ended = performance.now();
      nextAt = ended + (ended - began) * RENDER_PAUSE_FACTOR;
    }
  });
  return async () => {
    await render();
    return text;
  };
}

const isReady = (status: string): boolean => status === 'ready' || status === 'degraded';

function readinessOf({ isClosing, isStarting }: Lifecycle, checks: Readonly<Record<string, State>>): string {
  if (isClosing) return 'draining';
  if (checks.database !== 'up') return 'unavailable';
  if (isStarting) return 'starting';
  return Object.values(checks).includes('down') ? 'degraded' : 'ready';
}

/** Queries the database; concurrent requests share one query. Of several failures in a row the first one is logged. */
function createDatabaseCheck({ database, pool, log }: HealthDependencies): () => Promise<State> {
  let state: State = 'up';
  const query = coalesceCalls(async () => {
    try {
      await database.query<{ alive: number }>`SELECT 1 AS alive`;
      await pool?.checkTables();
      state = pool?.lacksTables ? 'incomplete' : 'up';
    } catch (failure) {
      if (state === 'up') logCause(toFault(failure), { log: log.child({ check: 'ready' }) });
      state = pool?.lacksTables ? 'incomplete' : 'down';
    }
  });
  return async () => {
    await query();
    return state;
  };
}

function readOthers({ redis, tokens }: HealthDependencies): Record<string, State> {
  return {
    ...(redis && { redis: redis.isAway ? 'down' : 'up' }),
    ...(!tokens.local && { identity_provider: tokens.isAway ? 'down' : 'up' }),
  };
}
