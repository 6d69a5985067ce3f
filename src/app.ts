import { mkdir } from 'node:fs/promises';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Limits, openLimits } from './access/limits.ts';
import { openTokens, type Tokens } from './access/tokens.ts';
import { AccessWatch } from './access/watch.ts';
import type { Config } from './config.ts';
import { Consoles } from './consoles/consoles.ts';
import { Lifecycle } from './kernel/lifecycle.ts';
import { Hubs } from './notifications/hubs.ts';
import { pruneNotifications } from './notifications/retention.ts';
import { type Database, type DatabaseOptions, openDatabase } from './platform/database.ts';
import type { Connections } from './platform/driver.ts';
import { scheduleJob } from './platform/jobs.ts';
import { createLog, type Log } from './platform/log.ts';
import { type Metrics, openMetrics } from './platform/metrics.ts';
import { openLocalWakeups, openSharedWakeups } from './platform/wakeups.ts';
import { schema } from './schema.ts';
import { deleteOldTickets } from './tickets/service.ts';
import { createGraphqlDoor } from './transport/graphql/door.ts';
import { createHttpHandler } from './transport/http.ts';
import { allowOrigins, readAddresses } from './transport/peer.ts';
import { createHttpServer } from './transport/server.ts';
import { createSocketDoor, type SocketDoor } from './transport/websocket/upgrade.ts';

export interface App {
  readonly database: Database;
  readonly tokens: Tokens;
  readonly limits: Limits;
  readonly log: Log;
  readonly metrics: Metrics;
  /** What is open now, besides the requests under way. */
  count(): { sockets: number; hubs: number; followers: number; watched: number };
  /** Opens the port; returns the address with the port that was given. */
  listen(port: number, host: string): Promise<AddressInfo>;
  /** Stops taking requests, lets those under way finish, and closes everything in reverse order of opening. */
  close(): Promise<void>;
}

/** How often old tickets and, where a retention is set, old notifications are removed. */
const TIDY_INTERVAL_MS = 600_000;

interface Overrides {
  readonly log?: Log;
  readonly database?: DatabaseOptions;
}

/** The composition root: opens everything once. On failure, what was opened before is closed again. */
export async function createApp(config: Config, overrides: Overrides = {}): Promise<App> {
  const lifecycle = new Lifecycle();
  try {
    await mkdir(config.dataDir, { recursive: true, mode: 0o700 });
    const log = overrides.log ?? createLog(config.logLevel);
    const metrics = openMetrics();
    const { database, connections } = await openDatabase(config, lifecycle, { log, ...overrides.database });
    const redis = config.redis && (await import('./platform/redis.ts')).openRedis(config.redis, lifecycle, log);
    const tokens = await openTokens(config, lifecycle, log);
    const limits = openLimits({ limits: config.limits, redis, metrics });
    const watch = new AccessWatch({ database, log });
    lifecycle.onClose(() => watch.close());
    const hubs = new Hubs({ database, wakeups: redis ? openSharedWakeups(redis) : openLocalWakeups(), log });
    const tidy = async () => {
      await deleteOldTickets(database);
      if (config.retentionDays !== null) await pruneNotifications(database, config.retentionDays);
    };
    lifecycle.onClose(scheduleJob('tidy', TIDY_INTERVAL_MS, tidy, log));
    const consoles = new Consoles({ database, watch, log, limits: config.consoles });
    lifecycle.onClose(() => consoles.close());
    const services = { notifications: hubs, consoles };
    const addresses = readAddresses(config.trustedProxies);
    const health = { lifecycle, connections, redis, metrics };
    const parts = { schema, database, services, watch, tokens, limits, log, config, addresses, ...health };
    const graphql = createGraphqlDoor(parts);
    const server = createHttpServer(createHttpHandler({ ...parts, graphql }), config);
    const sockets = createSocketDoor({ ...parts, getEnveloped: graphql.getEnveloped, isAllowedOrigin: allowOrigins(parts) });
    server.on('upgrade', sockets.upgrade);
    lifecycle.onClose(() => closeServer(server));
    // The server waits for its answers: those that stream events must have ended before.
    lifecycle.onClose(() => hubs.close());
    // Of several replicas one that stops lets its balancer notice; an embedded database has only this one.
    const drainMs = config.drainSeconds * 1000;
    lifecycle.onClose(() => Promise.all([sockets.drain(drainMs), config.database && sleep(drainMs)]));
    measure({ metrics, connections, hubs, consoles, sockets });
    return {
      database,
      tokens,
      limits,
      log,
      metrics,
      count: () => ({ sockets: sockets.count(), ...hubs.count(), watched: watch.size }),
      listen: (port, host) => listen(server, port, host),
      close: () => lifecycle.close(),
    };
  } catch (failure) {
    await lifecycle.close().catch(() => {});
    throw failure;
  }
}

interface Measured {
  readonly metrics: Metrics;
  readonly connections: Connections | null;
  readonly hubs: Hubs;
  readonly consoles: Consoles;
  readonly sockets: SocketDoor;
}

function measure({ metrics, connections, hubs, consoles, sockets }: Measured): void {
  metrics.gauge('portico_sockets', 'WebSockets open.', () => sockets.count());
  metrics.gauge('portico_feed_hubs', 'Projects whose notifications are being streamed.', () => hubs.count().hubs);
  metrics.gauge('portico_feed_followers', 'Feeds open, over WebSockets and server-sent events.', () => hubs.count().followers);
  metrics.gauge(
    'portico_feed_lag_entries',
    'Notifications in the log that this process has not read, in the worst project.',
    () => hubs.measure().lag,
  );
  metrics.gauge(
    'portico_feed_backlog_entries',
    'How far the slowest feed is behind what this process has read.',
    () => hubs.measure().backlog,
  );
  metrics.gauge(
    'portico_feed_reads_waiting',
    'Feeds that wait for their turn to read the log for themselves.',
    () => hubs.measure().waiting,
  );
  metrics.gauges('portico_consoles', 'Console sessions open, with somebody attached and without.', 'state', () => consoles.count());
  if (connections) {
    metrics.gauges('portico_database_connections', 'The pool: busy and idle connections, and queries that wait for one.', 'state', () =>
      connections.count(),
    );
  }
}

function listen(server: Server, port: number, host: string): Promise<AddressInfo> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, () => resolve(server.address() as AddressInfo));
  });
}

/** How long requests under way may take to end. */
const GRACE_MS = 10_000;

/** Takes no more connections, and waits for the requests under way; a connection that has become idle is closed at once. */
async function closeServer(server: Server): Promise<void> {
  const closed = new Promise((resolve) => server.close(resolve));
  const sweeping = setInterval(() => server.closeIdleConnections(), 50);
  const deadline = setTimeout(() => server.closeAllConnections(), GRACE_MS);
  await closed;
  clearInterval(sweeping);
  clearTimeout(deadline);
}
