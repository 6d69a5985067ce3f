import type { ServerResponse } from 'node:http';
import type { Lifecycle } from '../../kernel/lifecycle.ts';
import { LineLimit } from '../../platform/linelimit.ts';
import type { Metrics } from '../../platform/metrics.ts';
import { attachExchange, Exchange, type ExchangeDependencies, type Middleware } from './exchange.ts';

interface LogDependencies extends ExchangeDependencies {
  readonly metrics: Metrics;
  readonly lifecycle: Lifecycle;
}

/** Opens the request's exchange; logs and measures the request when its response is closed. */
export function logRequests(dependencies: LogDependencies): Middleware {
  const { lifecycle } = dependencies;
  const lineLimit = new LineLimit();
  return (request, response, next) => {
    const startedAt = performance.now();
    // Read now: the GraphQL handler serves a HEAD request as GET.
    const { method } = request;
    const exchange = new Exchange(request, response, dependencies);
    attachExchange(request, exchange);
    // Otherwise a client would reuse a connection that is about to close.
    if (lifecycle.isClosing) exchange.headers.push('Connection', 'close');
    response.once('close', () => {
      if (!exchange.isQuiet) record(dependencies, exchange, { method, response, durationMs: performance.now() - startedAt, lineLimit });
    });
    next();
  };
}

interface Served {
  readonly method: string | undefined;
  readonly response: ServerResponse;
  readonly durationMs: number;
  /** For requests that no budget limits: of clients without a credential, and those beyond the budget of a user. */
  readonly lineLimit: LineLimit;
}

/** Counts, measures and logs a request whose response is closed. */
function record({ log, metrics }: LogDependencies, exchange: Exchange, { method, response, durationMs, lineLimit }: Served): void {
  const { viewer, operation, route, operationName, waitedMs, errorCodes, reason } = exchange;
  const label = operation ?? 'none';
  const status = response.headersSent ? response.statusCode : null;
  const isStream = response.getHeader('Content-Type') === 'text/event-stream';
  // The time for which the rest of a response waits for a peer that breaks off says nothing about the server.
  const isAborted = status !== null && exchange.isAbandoned && !isStream;
  metrics.requests.inc({ operation: label, status: status ?? 0 });
  if (errorCodes) for (const code of errorCodes) metrics.errors.inc({ operation: label, code });
  if (!isStream && !isAborted) metrics.requestDuration.observe({ operation: label }, durationMs / 1000);
  if (!log.isLevelEnabled('info')) return;
  const omitted = viewer && status !== 429 ? 0 : lineLimit.spend();
  if (omitted === null) return;
  const fields = {
    ...exchange.labels(),
    method,
    operation,
    route: route ?? undefined,
    operation_name: operationName ?? undefined,
    status,
    ...(errorCodes && (exchange.isGraphql ? { error_codes: errorCodes } : { code: errorCodes[0] })),
    reason: reason ?? undefined,
    aborted: isAborted || undefined,
    duration_ms: round(durationMs),
    waited_ms: waitedMs === null ? undefined : round(waitedMs),
    user_id: viewer?.userId,
    omitted: omitted || undefined,
  };
  log.info(fields, 'request');
}

const round = (milliseconds: number) => Math.round(milliseconds * 100) / 100;
