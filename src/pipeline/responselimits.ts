import { setImmediate as nextImmediate } from 'node:timers/promises';
import type { ExecutionResult } from 'graphql';
import { isAsyncIterable, type Plugin } from 'graphql-yoga';
import { findResponseOverflow, responseTooLarge } from '../graph/responseoverflow.ts';
import { Fault } from '../kernel/fault.ts';
import { exceedsBytes } from '../kernel/size.ts';
import { toFault } from '../platform/errors.ts';
import { replaceByFault, wrapFault } from './mask.ts';
import type { OperationContext } from './operation.ts';

/** The largest event that is delivered: a client can select the same field under many aliases. */
const MAX_EVENT_BYTES = 4 * 1024 * 1024;

/** Rejects a result that is too large before it is serialized; of a stream, only the event that is. */
export function limitResponses(): Plugin<OperationContext> {
  return {
    onExecute: ({ args }) => ({
      onExecuteDone({ result, setResult }) {
        const context = args.contextValue;
        const check = () => {
          // By then the result is serialized, or its serialization has begun.
          setImmediate(() => context.findResponseBudget()?.close());
          if (isAsyncIterable(result)) return;
          const exceeded = findResponseOverflow(result, context);
          if (exceeded) setResult(replaceByFault(result, responseTooLarge(exceeded, context.advice)));
        };
        // Measuring a large result takes a while, as its execution did: other work runs first.
        return context.findResponseBudget()?.isLarge ? nextImmediate().then(check) : check();
      },
    }),
    onSubscribe: () => ({
      onSubscribeResult: ({ result: events }) => ({
        onNext({ result, setResult }) {
          try {
            checkEventSize(result as ExecutionResult);
          } catch (failure) {
            setResult({ errors: [wrapFault(toFault(failure))] });
            if (Symbol.asyncIterator in events) events.return?.();
          }
        },
      }),
    }),
  };
}

/** Throws `invalid_request` for an event that is too large to be serialized. */
export function checkEventSize(result: ExecutionResult): void {
  if (!exceedsBytes(result.data, MAX_EVENT_BYTES)) return;
  throw Fault.invalidRequest(`An event would be larger than ${MAX_EVENT_BYTES} bytes: select fewer fields of it.`);
}
