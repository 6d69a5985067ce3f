import type { ExecutionResult, GraphQLError } from 'graphql';
import { isAsyncIterable, mapAsyncIterator, type Plugin, processRegularResult } from 'graphql-yoga';
import { Fault } from '../kernel/fault.ts';
import { stringifyJson } from '../kernel/json/text.ts';
import { getOrInsert } from '../kernel/map.ts';
import { toFault } from '../platform/errors.ts';
import { logCause } from '../platform/faultlog.ts';
import { createSubscriptionError, formatError, maskResult, toStreamError } from './mask.ts';
import type { HttpServerContext, OperationContext } from './operation.ts';

/** Masks and formats the results of Yoga's own HTTP handler: each result of a stream, or a single one in the chosen media type. */
export function formatResults(): Plugin<OperationContext, HttpServerContext> {
  return {
    onResultProcess({ result, setResult, resultProcessor, setResultProcessor, serverContext }) {
      const { openContext, mediaType, streams, exchange, beginStream } = serverContext;
      const mask = (one: ExecutionResult) => withText(maskResult(one, () => openContext().openLogger(), exchange));
      const reject = (error: GraphQLError) => {
        if (isAsyncIterable(result)) void result[Symbol.asyncIterator]().return?.();
        setResult(mask({ errors: [error] }));
        setResultProcessor(processRegularResult, mediaType ?? 'application/json');
      };
      // Clients try again after the status of `toStreamError`; the event `complete` of a stream would say that nothing follows.
      if (streams.isClosed && (isAsyncIterable(result) || !mediaType))
        return reject(toStreamError(Fault.tryLater('the streams are closed')));
      if (isAsyncIterable(result)) {
        // Yoga reads the header `Accept` in a way of its own: what it cannot send would stay open behind an empty response.
        if (!resultProcessor) return reject(createSubscriptionError());
        try {
          beginStream();
        } catch (failure) {
          const fault = toFault(failure);
          logCause(fault, { log: openContext().openLogger() });
          return reject(toStreamError(fault));
        }
        return setResult(mapAsyncIterator(result, mask));
      }
      if (mediaType || !resultProcessor) setResultProcessor(processRegularResult, mediaType ?? 'application/json');
      if (Array.isArray(result)) return;
      const masked = mask(result as ExecutionResult);
      setResult(masked);
      const context = openContext();
      if (masked.errors || !context.findResponseBudget()?.isLarge) return;
      // In steps, as any large response: Yoga would serialize it in one.
      return (context.serializeResponse(result) as Promise<Buffer>).then((text) =>
        setResult({ ...masked, stringify: () => text.toString() }),
      );
    },
    onResponse({ response: { headers }, serverContext }) {
      // nginx would collect events until its buffer is full: by HTTP/1.1 over TLS a client would not even get the headers.
      if (headers.get('content-type') === 'text/event-stream') {
        headers.set('X-Accel-Buffering', 'no');
        // Yoga lets a cache store events, and one of them may contain a ticket or a new key.
        headers.set('Cache-Control', 'no-store');
      }
      // Yoga waits until the client has read the response, and for ever once the client has gone.
      serverContext.exchange?.releasePermit();
    },
  };
}

/**
 * A masked result that Yoga serializes by `stringifyJson`. Yoga reads the HTTP status and headers of each error, and makes a new error of it:
 * of thousands it gets one for each status with its headers.
 */
export function withText<Result extends ExecutionResult>(result: Result): Result & { stringify(result: ExecutionResult): string } {
  const { errors } = result;
  if (!errors) return { ...result, stringify: stringifyJson };
  const byStatus = new Map<string | undefined, GraphQLError>();
  for (const error of errors) getOrInsert(byStatus, JSON.stringify(error.extensions.http), () => error);
  return {
    ...result,
    errors: [...byStatus.values()],
    stringify: (sent) => stringifyJson({ ...sent, errors: errors.map(formatError) }),
  };
}
