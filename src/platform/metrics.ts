import { Counter, Gauge, Histogram, Registry } from 'prom-client';

/** Seconds: most answers take a few milliseconds, and after a second and a half an outage is given up on. */
const LATENCY_BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5];

/**
 * What Prometheus reads at /metrics. Every label has few values: a route's or a schema's name, a status, a code of ours,
 * never what a client can choose.
 */
export interface Metrics {
  readonly registry: Registry;
  readonly requests: Counter<'operation' | 'status'>;
  readonly requestSeconds: Histogram<'operation'>;
  readonly socketOperations: Counter<'operation'>;
  readonly socketCloses: Counter<'code'>;
  readonly upgradeRefusals: Counter<'code'>;
  readonly limited: Counter<'policy'>;
  readonly limitFallbacks: Counter;
  /** A figure that is read when it is asked for; `read` may tell several, by label. */
  gauge(name: string, help: string, read: () => number): void;
  gauges<Label extends string>(name: string, help: string, label: Label, read: () => Readonly<Record<string, number>>): void;
}

export function openMetrics(): Metrics {
  const registry = new Registry();
  const registers = [registry];
  return {
    registry,
    requests: new Counter({
      name: 'portico_requests_total',
      help: 'HTTP requests answered, by operation and status; status 0: the client left before the answer.',
      labelNames: ['operation', 'status'],
      registers,
    }),
    requestSeconds: new Histogram({
      name: 'portico_request_duration_seconds',
      help: 'From the first byte of a request to the last of its answer, by operation. Streams are not in it.',
      labelNames: ['operation'],
      buckets: LATENCY_BUCKETS,
      registers,
    }),
    socketOperations: new Counter({
      name: 'portico_socket_operations_total',
      help: 'GraphQL operations begun on WebSockets.',
      labelNames: ['operation'],
      registers,
    }),
    socketCloses: new Counter({
      name: 'portico_socket_closes_total',
      help: 'WebSockets closed, by closing code; other: a code of the client’s own.',
      labelNames: ['code'],
      registers,
    }),
    upgradeRefusals: new Counter({
      name: 'portico_upgrade_refusals_total',
      help: 'WebSocket upgrades refused, by reason.',
      labelNames: ['code'],
      registers,
    }),
    limited: new Counter({
      name: 'portico_rate_limited_total',
      help: 'Requests refused for want of budget, by policy.',
      labelNames: ['policy'],
      registers,
    }),
    limitFallbacks: new Counter({
      name: 'portico_rate_limit_fallbacks_total',
      help: 'Requests that this process counted by itself, as Redis did not.',
      registers,
    }),
    gauge(name, help, read) {
      new Gauge({
        name,
        help,
        registers,
        collect() {
          this.set(read());
        },
      });
    },
    gauges(name, help, label, read) {
      new Gauge({
        name,
        help,
        labelNames: [label],
        registers,
        collect() {
          for (const [value, figure] of Object.entries(read())) this.set({ [label]: value } as Record<typeof label, string>, figure);
        },
      });
    },
  };
}
