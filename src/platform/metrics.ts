import { Counter, Gauge, Histogram, Registry } from 'prom-client';

/** In seconds: most responses take a few milliseconds, and in an outage a request fails after some 1.3 s. */
const LATENCY_BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5];

export type Metrics = ReturnType<typeof openMetrics>;

/**
 * The metrics that Prometheus scrapes at /metrics; each property is named after its metric. Every label has few values: a
 * route's or a schema's name, a status, a code of ours, never client-supplied text.
 */
export function openMetrics() {
  const registry = new Registry();
  const registers = [registry];
  const openCounter = <Label extends string = never>(name: string, help: string, ...labelNames: Label[]) =>
    new Counter({ name, help, labelNames, registers });
  return {
    registry,
    requests: openCounter(
      'portico_requests_total',
      'HTTP requests answered, by operation and status; status 0: the client left before the response.',
      'operation',
      'status',
    ),
    requestDuration: new Histogram({
      name: 'portico_request_duration_seconds',
      help: 'From the first byte of a request to the last of its response, by operation; without streams, and without responses that the client broke off.',
      labelNames: ['operation'],
      buckets: LATENCY_BUCKETS,
      registers,
    }),
    errors: openCounter(
      'portico_errors_total',
      'Responses of requests and of GraphQL operations on WebSockets that have an error of the code, by operation and code.',
      'operation',
      'code',
    ),
    socketOperations: openCounter('portico_socket_operations_total', 'GraphQL operations begun on WebSockets.', 'operation'),
    socketOperationDuration: new Histogram({
      name: 'portico_socket_operation_duration_seconds',
      help: 'From the message of a GraphQL operation on a WebSocket to its result, by operation; of a subscription to its beginning.',
      labelNames: ['operation'],
      buckets: LATENCY_BUCKETS,
      registers,
    }),
    socketCloses: openCounter(
      'portico_socket_closes_total',
      'WebSockets closed, by closing code and Portico’s reason; none: the client closed it, or its connection broke; other: a code of the client’s own.',
      'code',
      'reason',
    ),
    upgradeRefusals: openCounter('portico_upgrade_refusals_total', 'WebSocket upgrades refused, by reason.', 'code'),
    rateLimited: openCounter('portico_rate_limited_total', 'Requests refused for want of budget, by policy.', 'policy'),
    rateLimitFallbacks: openCounter(
      'portico_rate_limit_fallbacks_total',
      'Requests that this process counted by itself, as Redis did not.',
    ),
    unreadEnds: openCounter('portico_unread_ends_total', 'Connections ended because their peers did not read what was sent to them.'),
    connectionRefusals: openCounter(
      'portico_connection_refusals_total',
      'Connections and requests refused because their address, or all together, had too many.',
    ),
    /** Registers a counter whose value is read at each scrape. */
    counter(name: string, help: string, read: () => number): void {
      new Counter({
        name,
        help,
        registers,
        collect() {
          this.reset();
          this.inc(read());
        },
      });
    },
    /** Registers a counter with one value per label value, which are read at each scrape. */
    counters<Label extends string>(name: string, help: string, label: Label, read: () => Readonly<Record<string, number>>): void {
      new Counter({
        name,
        help,
        labelNames: [label],
        registers,
        collect() {
          this.reset();
          for (const [value, figure] of Object.entries(read())) this.inc({ [label]: value } as Record<Label, string>, figure);
        },
      });
    },
    /** Registers a gauge whose value is read at each scrape. */
    gauge(name: string, help: string, read: () => number): void {
      new Gauge({
        name,
        help,
        registers,
        collect() {
          this.set(read());
        },
      });
    },
    /** Registers a gauge with one value per label value, which are read at each scrape. */
    gauges<Label extends string>(name: string, help: string, label: Label, read: () => Readonly<Record<string, number>>): void {
      new Gauge({
        name,
        help,
        labelNames: [label],
        registers,
        collect() {
          for (const [value, figure] of Object.entries(read())) this.set({ [label]: value } as Record<Label, string>, figure);
        },
      });
    },
  };
}
