import { totalmem } from 'node:os';
import type { Consoles } from './consoles/consoles.ts';
import type { KeyedSemaphore } from './kernel/semaphore.ts';
import type { Hubs } from './notifications/hubs.ts';
import type { PoolState } from './platform/driver.ts';
import { countInternalErrors } from './platform/faultlog.ts';
import { countJobFailures } from './platform/jobs.ts';
import type { Metrics } from './platform/metrics.ts';
import type { ConnectionBuffers } from './transport/http/connectionbuffers.ts';
import type { SocketUpgrades } from './transport/sockets/upgrades.ts';

/** The parts of the process that the gauges measure. */
interface GaugeSources {
  readonly metrics: Metrics;
  readonly pool: PoolState | null;
  readonly semaphore: KeyedSemaphore;
  readonly hubs: Hubs;
  readonly consoles: Consoles;
  readonly sockets: SocketUpgrades;
  readonly buffers: ConnectionBuffers;
  readonly buffersLimit: number;
}

/** The memory that the process may use, in bytes: that of its container, or else of the machine. */
const MEMORY_LIMIT = Math.min(process.constrainedMemory() || Number.POSITIVE_INFINITY, totalmem());

/** Registers the metrics that are computed when they are scraped. */
export function registerGauges({ metrics, pool, semaphore, hubs, consoles, sockets, buffers, buffersLimit }: GaugeSources): void {
  metrics.counter(
    'portico_internal_errors_total',
    'Failures that are defects, over every transport; each has a line in the log.',
    countInternalErrors,
  );
  // The label is not `job`, which Prometheus sets to the name of what it scrapes.
  metrics.counters('portico_job_failures_total', 'Runs of periodic jobs that failed.', 'name', countJobFailures);
  metrics.gauge('portico_operations_executing', 'Operations under way, without subscriptions that have begun.', () => semaphore.executing);
  metrics.gauge('portico_operations_waiting', 'Operations that wait for others of their user.', () => semaphore.waiting);
  metrics.gauge('portico_sockets', 'WebSockets open.', () => sockets.size);
  metrics.gauge('portico_unread_bytes', 'What waits in memory for peers that do not read.', () => buffers.bytes);
  metrics.gauge('portico_unread_limit_bytes', 'How much may wait for them: MAX_UNREAD_MIB.', () => buffersLimit);
  metrics.gauge('portico_memory_limit_bytes', 'The memory of the container, or of the machine.', () => MEMORY_LIMIT);
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
  if (pool) {
    metrics.gauges('portico_database_connections', 'The pool: busy and idle connections, and queries that wait for one.', 'state', () =>
      pool.count(),
    );
  }
}
