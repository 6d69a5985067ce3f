import type { Lifecycle } from '../../kernel/lifecycle.ts';
import type { Metrics } from '../../platform/metrics.ts';
import { Exchange, type ExchangeParts, type Middleware, openExchange } from './exchange.ts';
import { standardHeaders } from './headers.ts';

type LogParts = Omit<ExchangeParts, 'headers'> & { readonly metrics: Metrics; readonly lifecycle: Lifecycle };

/** Opens the request's exchange, and writes its line to the log when the answer has gone. */
export function logRequests(logParts: LogParts): Middleware {
  const { log, metrics, lifecycle } = logParts;
  const parts = { ...logParts, headers: standardHeaders };
  return (request, response, next) => {
    const began = performance.now();
    // A HEAD request is handed on as GET.
    const { method } = request;
    const exchange = new Exchange(request, parts);
    openExchange(request, exchange);
    // A client that kept the connection would find it closed at the next request.
    if (lifecycle.isClosing) exchange.headers.push('Connection', 'close');
    response.once('close', () => {
      const { viewer, operation, operationName, isQuiet } = exchange;
      if (isQuiet) return;
      const duration = performance.now() - began;
      const status = response.headersSent ? response.statusCode : null;
      metrics.requests.inc({ operation: operation ?? 'none', status: status ?? 0 });
      const isStream = response.getHeader('Content-Type') === 'text/event-stream';
      if (!isStream) metrics.requestSeconds.observe({ operation: operation ?? 'none' }, duration / 1000);
      if (!log.isLevelEnabled('info')) return;
      const duration_ms = Math.round(duration * 100) / 100;
      const operation_name = operationName ?? undefined;
      const user_id = viewer?.userId;
      log.info({ ...exchange.labels(), method, operation, operation_name, status, duration_ms, user_id }, 'request');
    });
    next();
  };
}
