import { readFile } from 'node:fs/promises';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { openRateLimits, type RateLimits } from './access/ratelimits.ts';
import { RevocationWatcher } from './access/revocation.ts';
import { openTokens, type Tokens } from './access/tokens.ts';
import { deleteEndedApiKeys } from './accounts/service.ts';
import { deleteOldTaskCounters } from './compute/overview.ts';
import type { Config } from './config.ts';
import { Consoles } from './consoles/consoles.ts';
import { deleteOldRecords } from './consoles/store.ts';
import { registerGauges } from './gauges.ts';
import type { Services } from './graph/context.ts';
import { deleteOldStoredResponses } from './graph/storedresponse.ts';
import { ConcurrencyLimit } from './kernel/concurrencylimit.ts';
import { FairLimit } from './kernel/fairlimit.ts';
import { Lifecycle } from './kernel/lifecycle.ts';
import { KeyedSemaphore } from './kernel/semaphore.ts';
import { Hubs } from './notifications/hubs.ts';
import { pruneNotifications } from './notifications/retention.ts';
import { createPipeline, type Pipeline } from './pipeline/pipeline.ts';
import { readTrusted } from './pipeline/trusted.ts';
import { type Database, type DatabaseOptions, openDatabase, vacuumEmbedded } from './platform/database.ts';
import { collectGarbage } from './platform/garbage.ts';
import { scheduleJob } from './platform/jobs.ts';
import { createLogger, type Logger } from './platform/logger.ts';
import { type Metrics, openMetrics } from './platform/metrics.ts';
import { OperatorError } from './platform/operatorerror.ts';
import { listRights } from './platform/rights.ts';
import { UserDatabases } from './platform/userdatabases.ts';
import { openLocalWakeups, openSharedWakeups } from './platform/wakeups.ts';
import { schema } from './schema.ts';
import { deleteOldTickets } from './tickets/service.ts';
import { createGraphqlHandler } from './transport/graphql/handler.ts';
import { createHttpHandler, type HttpDependencies } from './transport/handler.ts';
import { createClientAddresses, createOriginCheck } from './transport/http/addresses.ts';
import { ConnectionBuffers } from './transport/http/connectionbuffers.ts';
import { createCors } from './transport/http/cors.ts';
import { EventStreams } from './transport/http/eventstreams.ts';
import { createHttpServer } from './transport/http/server.ts';
import type { DemoOffer } from './transport/pages/desk.ts';
import { type BoundRoute, bindRoute } from './transport/rest/route.ts';
import { routes } from './transport/rest/routes.ts';
import { warmUp } from './transport/rest/warmup.ts';
import { SocketUpgrades } from './transport/sockets/upgrades.ts';
import { UserRates } from './transport/sockets/userrates.ts';

export interface App {
  readonly database: Database;
  readonly tokens: Tokens;
  readonly rateLimits: RateLimits;
  readonly log: Logger;
  readonly metrics: Metrics;
  /** The numbers of operations under way, and of open sockets, hubs, followers and leases. */
  count(): { executing: number; sockets: number; hubs: number; followers: number; leases: number };
  /**
   * Runs typical requests and collects the garbage of the start, so that the first clients need not wait. The replica is not
   * ready until then.
   */
  warmUp(): Promise<void>;
  /** Lets browsers on this machine sign in at the desk as one of the demo's users. */
  offerDemo(offer: DemoOffer): void;
  /** Opens the port; returns the address with the actual port. */
  listen(port: number, host: string): Promise<AddressInfo>;
  /** Accepts no more requests, waits for those in progress, and closes everything in reverse order of opening. */
  close(): Promise<void>;
}

/**
 * How often what is old is deleted: tickets, stored responses, API keys, counters and, where a setting says for how long they
 * are kept, notifications and the records of consoles.
 */
const CLEANUP_INTERVAL_MS = 600_000;
/**
 * The first part of the warm-up. Each round sends as many concurrent reads as the pool has connections, so that all of them are
 * opened. A connection prepares only the statements that it has run: after a single round some would lack a statement.
 */
const OPENING = { rounds: 4, patienceMs: 750 };
/**
 * The second part of the warm-up, after a garbage collection, which also discards compiled code. It reads until V8 has compiled
 * what the first requests of clients need. Four reads at once, because concurrent reads, as clients send them, reach that in fewer
 * rounds than single ones.
 */
const REPEATING = { rounds: 40, atOnce: 4, patienceMs: 1_500 };
/** The operations of a user that are executed at the same time. */
const OPERATIONS_AT_ONCE = 8;
/** Of those operations, the ones whose cost is above `COSTLY` (`pipeline/execution.ts`). */
const COSTLY_OPERATIONS_AT_ONCE = 1;
/** Large responses are read and serialized one at a time, so that memory and the database remain available to the others. */
const LARGE_RESPONSES_AT_ONCE = 1;

interface Overrides {
  readonly log?: Logger;
  readonly database?: DatabaseOptions;
}

/** The composition root: opens everything once. On failure, what was opened before is closed again. */
export async function createApp(config: Config, overrides: Overrides = {}): Promise<App> {
  const lifecycle = new Lifecycle();
  try {
    const log = overrides.log ?? createLogger(config.logLevel);
    const pipeline = await openPipeline(config);
    const metrics = openMetrics();
    const rights = listRights({ deletesConsoleRecords: config.consoleRecordDays !== null });
    const { database, pool } = await openDatabase(config, lifecycle, { log, rights, ...overrides.database });
    const redis = config.redis && (await import('./platform/redis.ts')).openRedis(config.redis, lifecycle, log);
    const tokens = await openTokens(config, lifecycle, log);
    const rateLimits = openRateLimits({ limits: config.rateLimits, redis, metrics });
    const watch = new RevocationWatcher({ database, log });
    lifecycle.onClose(() => watch.close());
    const hubs = new Hubs({ database, wakeups: redis ? openSharedWakeups(redis) : openLocalWakeups(), log });
    // For a start that fails before the transports are open: once they are, the hubs close before the server.
    lifecycle.onClose(() => hubs.close());
    scheduleCleanups(config, database, lifecycle, log);
    const consoles = new Consoles({ database, watch, log, limits: config.consoles });
    lifecycle.onClose(() => consoles.close());
    const services = createServices({ config, database, rateLimits, hubs, consoles, log });
    const addresses = createClientAddresses(config.trustedProxies);
    const buffers = new ConnectionBuffers({ limits: config.buffers, onEnd: () => metrics.unreadEnds.inc() });
    const health = { lifecycle, pool, redis, metrics };
    const dependencies = { schema, pipeline, database, services, watch, tokens, rateLimits, log, config, addresses, buffers, ...health };
    let demo: DemoOffer | null = null;
    const { server, sockets, rest } = openTransports({ ...dependencies, demoOffer: () => demo }, lifecycle);
    registerGauges({ metrics, pool, ...services, sockets, buffers, buffersLimit: config.buffers.inAll });
    return {
      database,
      tokens,
      rateLimits,
      log,
      metrics,
      count: () => ({ executing: services.semaphore.executing, sockets: sockets.size, ...hubs.count(), leases: watch.size }),
      warmUp: () => {
        const opening = { ...OPENING, atOnce: config.database?.poolSize ?? 1 };
        return lifecycle.runStartup(
          warmUp(rest, { ...dependencies, ...opening })
            .then(collectGarbage)
            .then(() => warmUp(rest, { ...dependencies, ...REPEATING })),
        );
      },
      offerDemo: (offer) => {
        demo = offer;
      },
      listen: (port, host) => listen(server, port, host),
      close: () => lifecycle.close(),
    };
  } catch (failure) {
    await lifecycle.close().catch(() => {});
    throw failure;
  }
}

/** Opens the pipeline, with the trusted documents of a file if one is configured. Throws an OperatorError for an unusable file. */
async function openPipeline({ trusted, subscriptionsPerUser }: Config): Promise<Pipeline> {
  if (!trusted) return createPipeline(schema, { subscriptionsPerUser });
  try {
    const texts = readTrusted(await readFile(trusted.path, 'utf8'));
    return createPipeline(schema, { trusted: { texts, isOnly: trusted.isOnly }, subscriptionsPerUser });
  } catch (failure) {
    const { message } = failure as Error;
    throw new OperatorError(`TRUSTED_DOCUMENTS: ${trusted.path} cannot be used. ${message}`);
  }
}

/** Deletes what is old from time to time. */
function scheduleCleanups(config: Config, database: Database, lifecycle: Lifecycle, log: Logger): void {
  const { retentionDays, consoleRecordDays } = config;
  const cleanups: Record<string, (signal: AbortSignal) => Promise<unknown>> = {
    'delete old tickets': (signal) => deleteOldTickets(database, signal),
    'delete old stored responses': (signal) => deleteOldStoredResponses(database, signal),
    'delete ended API keys': (signal) => deleteEndedApiKeys(database, signal),
    'delete old task counters': (signal) => deleteOldTaskCounters(database, signal),
    ...(config.database === null && { 'vacuum the embedded database': () => vacuumEmbedded(database) }),
    ...(consoleRecordDays !== null && {
      'delete old console records': (signal) => deleteOldRecords(database, consoleRecordDays, signal),
    }),
    ...(retentionDays !== null && { 'prune the logs': (signal) => pruneNotifications(database, retentionDays, signal) }),
  };
  for (const [name, work] of Object.entries(cleanups)) lifecycle.onClose(scheduleJob(name, CLEANUP_INTERVAL_MS, work, log));
}

interface ServiceDependencies extends Pick<Services, 'rateLimits' | 'hubs' | 'consoles'> {
  readonly config: Config;
  readonly database: Database;
  readonly log: Logger;
}

/** The services that resolvers share for as long as the process lives. */
function createServices({ config, database, rateLimits, hubs, consoles, log }: ServiceDependencies): Services {
  return {
    rateLimits,
    semaphore: new KeyedSemaphore(OPERATIONS_AT_ONCE),
    costlySemaphore: new KeyedSemaphore(COSTLY_OPERATIONS_AT_ONCE),
    userDatabases: new UserDatabases(database, config.database?.poolSize ?? 1, log),
    hubs,
    consoles,
    responseLimits: { ...config.responses, largeResponses: new FairLimit(LARGE_RESPONSES_AT_ONCE) },
    quotas: config.quotas,
  };
}

interface TransportDependencies extends Omit<HttpDependencies, 'addCorsHeaders' | 'graphql' | 'rest'> {
  readonly config: Config;
  readonly metrics: Metrics;
  readonly buffers: ConnectionBuffers;
}

interface Transports {
  readonly server: Server;
  readonly sockets: SocketUpgrades;
  /** The routes of v1, which the warm-up requests too. */
  readonly rest: readonly BoundRoute[];
}

/** Opens the server of all transports; its port is opened later. Closed, they end before what they depend on. */
function openTransports(dependencies: TransportDependencies, lifecycle: Lifecycle): Transports {
  const { config, pipeline, services, addresses, buffers, metrics, log } = dependencies;
  const socketLimit = new ConcurrencyLimit(config.socketsPerUser);
  const streams = new EventStreams(socketLimit, config.maxConnections);
  const graphql = createGraphqlHandler({ ...dependencies, streams });
  const rest = routes.map((route) => bindRoute(schema, route));
  const isAllowedOrigin = createOriginCheck(dependencies);
  const addCorsHeaders = createCors(isAllowedOrigin);
  const userRates = new UserRates();
  const sockets = new SocketUpgrades({ ...dependencies, ...pipeline, socketLimit, userRates, isAllowedOrigin });
  const server = createHttpServer({
    handler: createHttpHandler({ ...dependencies, addCorsHeaders, graphql, rest }),
    addCorsHeaders,
    upgrade: (...offer) => sockets.upgrade(...offer),
    addresses,
    buffers,
    config,
    onRefusedConnection: () => metrics.connectionRefusals.inc(),
    onUntrustedProxy: (address) =>
      log.warn({ address }, 'X-Forwarded-For of a peer that TRUST_PROXY does not name: if it is your proxy, all its clients count as one'),
  });
  lifecycle.onClose(() => closeServer(server));
  // Closers run in reverse order: streamed responses must have ended before the server waits for its responses.
  lifecycle.onClose(() => services.hubs.close());
  lifecycle.onClose(() => streams.close());
  lifecycle.onClose(() => {
    // A stopping replica gives its balancer time to notice, and its clients to go to others. With an embedded database there are
    // none, nor before its port has opened.
    const drainMs = config.database && server.listening ? config.drainSeconds * 1000 : 0;
    return Promise.all([sockets.drain(drainMs), sleep(drainMs)]);
  });
  return { server, sockets, rest };
}

function listen(server: Server, port: number, host: string): Promise<AddressInfo> {
  return new Promise((resolve, reject) => {
    server.once('error', (failure: NodeJS.ErrnoException) =>
      reject(
        failure.code === 'EADDRINUSE'
          ? failure
          : new OperatorError(`HOST ${host} and PORT ${port} cannot be listened at (${failure.code}).`, { cause: failure }),
      ),
    );
    server.listen(port, host, () => resolve(server.address() as AddressInfo));
  });
}

/** How long requests in progress may take to finish. */
const GRACE_MS = 10_000;

/** Accepts no more connections, and waits for the requests in progress; a connection that becomes idle is closed. */
async function closeServer(server: Server): Promise<void> {
  const closed = new Promise((resolve) => server.close(resolve));
  const sweep = setInterval(() => server.closeIdleConnections(), 50);
  const deadline = setTimeout(() => server.closeAllConnections(), GRACE_MS);
  await closed;
  clearInterval(sweep);
  clearTimeout(deadline);
}
