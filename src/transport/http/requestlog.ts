import type { Lifecycle } from '../../kernel/lifecycle.ts';
import type { Metrics } from '../../platform/metrics.ts';
import { attachExchange, Exchange, type ExchangeDependencies, type Middleware } from './exchange.ts';

interface LogDependencies extends ExchangeDependencies {
  readonly metrics: Metrics;
  readonly lifecycle: Lifecycle;
}

/** Opens the request's exchange; logs and measures the request when its response is closed. */
export function logRequests(dependencies: LogDependencies): Middleware {
  const { log, metrics, lifecycle } = dependencies;
  return (request, response, next) => {
    const startedAt = performance.now();
    // Read now: the GraphQL door handles a HEAD request as GET.
    const { method } = request;
    const exchange = new Exchange(request, response, dependencies);
    attachExchange(request, exchange);
    // Otherwise a client would reuse a connection that is about to close.
    if (lifecycle.isClosing) exchange.headers.push('Connection', 'close');
    response.once('close', () => {
      const { viewer, operation, operationName, isQuiet } = exchange;
      if (isQuiet) return;
      const duration = performance.now() - startedAt;
      const status = response.headersSent ? response.statusCode : null;
      metrics.requests.inc({ operation: operation ?? 'none', status: status ?? 0 });
      const isStream = response.getHeader('Content-Type') === 'text/event-stream';
      // How long the rest of an answer waits for a peer that breaks off is no measure of the server.
      const isAborted = status !== null && exchange.isAbandoned && !isStream;
      if (!isStream && !isAborted) metrics.requestSeconds.observe({ operation: operation ?? 'none' }, duration / 1000);
      if (!log.isLevelEnabled('info')) return;
      const duration_ms = Math.round(duration * 100) / 100;
      const operation_name = operationName ?? undefined;
      const user_id = viewer?.userId;
      const aborted = isAborted || undefined;
      log.info({ ...exchange.labels(), method, operation, operation_name, status, aborted, duration_ms, user_id }, 'request');
    });
    next();
  };
}
