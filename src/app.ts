import { mkdir, readFile } from 'node:fs/promises';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import pLimit from 'p-limit';
import { type Limits, openLimits } from './access/limits.ts';
import { openTokens, type Tokens } from './access/tokens.ts';
import { RevocationWatcher } from './access/watch.ts';
import { deleteOldTaskCounters } from './compute/overview.ts';
import type { Config } from './config.ts';
import { Consoles } from './consoles/consoles.ts';
import { deleteOldAnswers } from './graph/kept.ts';
import { Lifecycle } from './kernel/lifecycle.ts';
import { Hubs } from './notifications/hubs.ts';
import { pruneNotifications } from './notifications/retention.ts';
import { createPipeline, type Pipeline } from './pipeline/pipeline.ts';
import { readTrusted } from './pipeline/trusted.ts';
import { type Database, type DatabaseOptions, openDatabase } from './platform/database.ts';
import type { PoolState } from './platform/driver.ts';
import { OperatorError } from './platform/failure.ts';
import { collectGarbage } from './platform/garbage.ts';
import { scheduleJob } from './platform/jobs.ts';
import { createLogger, type Logger } from './platform/logger.ts';
import { type Metrics, openMetrics } from './platform/metrics.ts';
import { openLocalWakeups, openSharedWakeups } from './platform/wakeups.ts';
import { schema } from './schema.ts';
import { deleteOldTickets } from './tickets/service.ts';
import { createGraphqlDoor } from './transport/graphql/door.ts';
import { Backlog } from './transport/http/backlog.ts';
import type { DemoOffer } from './transport/http/desk.ts';
import { createHttpHandler } from './transport/http/http.ts';
import { allowOrigins, readAddresses } from './transport/http/peer.ts';
import { createHttpServer } from './transport/http/server.ts';
import { bindRoute } from './transport/rest/route.ts';
import { routes } from './transport/rest/routes.ts';
import { warmUp } from './transport/rest/warmup.ts';
import { createSocketDoor, type SocketDoor } from './transport/sockets/upgrade.ts';

export interface App {
  readonly database: Database;
  readonly tokens: Tokens;
  readonly limits: Limits;
  readonly log: Logger;
  readonly metrics: Metrics;
  /** The numbers of what is open now, besides the requests under way. */
  count(): { sockets: number; hubs: number; followers: number; watched: number };
  /**
   * Reads what clients will read, so that the first of them need not wait, and collects the garbage of the start. The replica
   * is not ready until then.
   */
  warmUp(): Promise<void>;
  /** Lets people of this machine sign in at the desk as one of the demo. */
  offerDemo(offer: DemoOffer): void;
  /** Opens the port; returns the address with the port that was given. */
  listen(port: number, host: string): Promise<AddressInfo>;
  /** Stops taking requests, lets those under way finish, and closes everything in reverse order of opening. */
  close(): Promise<void>;
}

/** How often old tickets, kept answers and counters are removed, and, where a retention is set, old notifications. */
const TIDY_INTERVAL_MS = 600_000;
/** How long a replica warms up before it collects the garbage of its start, and after. */
const WARM_UP_MS = 750;
const WARM_AGAIN_MS = 250;
/** Of answers that are larger than most: what they take of the memory and the database is what the others do not have. */
const LARGE_ANSWERS_AT_ONCE = 1;

interface Overrides {
  readonly log?: Logger;
  readonly database?: DatabaseOptions;
  readonly server?: { readonly patienceMs: number };
}

/** The composition root: opens everything once. On failure, what was opened before is closed again. */
export async function createApp(config: Config, overrides: Overrides = {}): Promise<App> {
  const lifecycle = new Lifecycle();
  try {
    await mkdir(config.dataDir, { recursive: true, mode: 0o700 });
    const log = overrides.log ?? createLogger(config.logLevel);
    const pipeline = await openPipeline(config.trusted);
    const metrics = openMetrics();
    const { database, connections } = await openDatabase(config, lifecycle, { log, ...overrides.database });
    const redis = config.redis && (await import('./platform/redis.ts')).openRedis(config.redis, lifecycle, log);
    const tokens = await openTokens(config, lifecycle, log);
    const limits = openLimits({ limits: config.limits, redis, metrics });
    const watch = new RevocationWatcher({ database, log });
    lifecycle.onClose(() => watch.close());
    const hubs = new Hubs({ database, wakeups: redis ? openSharedWakeups(redis) : openLocalWakeups(), log });
    const tidy = async () => {
      await deleteOldTickets(database);
      await deleteOldAnswers(database);
      await deleteOldTaskCounters(database);
      if (config.retentionDays !== null) await pruneNotifications(database, config.retentionDays);
    };
    lifecycle.onClose(scheduleJob('tidy', TIDY_INTERVAL_MS, tidy, log));
    const consoles = new Consoles({ database, watch, log, limits: config.consoles });
    lifecycle.onClose(() => consoles.close());
    const { dashboards, keys, keptAnswers } = config;
    const answers = { ...config.answers, inTurn: pLimit(LARGE_ANSWERS_AT_ONCE) };
    const services = { notifications: hubs, consoles, answers, dashboards, keys, keptAnswers };
    const addresses = readAddresses(config.trustedProxies);
    const backlog = new Backlog({ limits: config.unread, onEnd: () => metrics.unreadEnds.inc() });
    const health = { lifecycle, connections, redis, metrics };
    const parts = { schema, pipeline, database, services, watch, tokens, limits, log, config, addresses, backlog, ...health };
    let demo: DemoOffer | null = null;
    const graphql = createGraphqlDoor(parts);
    const rest = routes.map((route) => bindRoute(schema, route));
    const sockets = createSocketDoor({ ...parts, ...pipeline, isAllowedOrigin: allowOrigins(parts) });
    const server = createHttpServer({
      handler: createHttpHandler({ ...parts, graphql, rest, demoOffer: () => demo }),
      upgrade: sockets.upgrade,
      addresses,
      backlog,
      config,
      onRefusedConnection: () => metrics.connectionRefusals.inc(),
      ...overrides.server,
    });
    lifecycle.onClose(() => closeServer(server));
    // The server waits for its answers: those that stream events must have ended before.
    lifecycle.onClose(() => hubs.close());
    // A replica that stops gives its balancer time to notice; with an embedded database there is no other replica.
    const drainMs = config.drainSeconds * 1000;
    lifecycle.onClose(() => Promise.all([sockets.drain(drainMs), config.database && sleep(drainMs)]));
    measure({ metrics, connections, hubs, consoles, sockets, backlog });
    return {
      database,
      tokens,
      limits,
      log,
      metrics,
      count: () => ({ sockets: sockets.count(), ...hubs.count(), watched: watch.size }),
      warmUp: () => {
        const warmFor = (patienceMs: number) => warmUp(rest, { ...parts, connections: config.database?.pool ?? 1, patienceMs });
        // V8 throws code away with the garbage: what is needed is run once more.
        return lifecycle.beginWith(
          warmFor(WARM_UP_MS)
            .then(collectGarbage)
            .then(() => warmFor(WARM_AGAIN_MS)),
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

/** With the trusted documents of the file, if there is one: a file that is not good is told to the operator. */
async function openPipeline(trusted: Config['trusted']): Promise<Pipeline> {
  if (!trusted) return createPipeline(schema);
  try {
    const texts = readTrusted(await readFile(trusted.path, 'utf8'));
    return createPipeline(schema, { texts, isOnly: trusted.isOnly });
  } catch (failure) {
    const { message } = failure as Error;
    throw new OperatorError(`TRUSTED_DOCUMENTS: ${trusted.path} cannot be used. ${message}`);
  }
}

interface Measured {
  readonly metrics: Metrics;
  readonly connections: PoolState | null;
  readonly hubs: Hubs;
  readonly consoles: Consoles;
  readonly sockets: SocketDoor;
  readonly backlog: Backlog;
}

function measure({ metrics, connections, hubs, consoles, sockets, backlog }: Measured): void {
  metrics.gauge('portico_sockets', 'WebSockets open.', () => sockets.count());
  metrics.gauge('portico_unread_bytes', 'What waits in memory for peers that do not read.', () => backlog.bytes);
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
