import type { ExecutionArgs, ExecutionResult } from 'graphql';
import { isAsyncIterable, type Plugin } from 'graphql-yoga';
import { toFault } from '../platform/errors.ts';
import { wrapFault } from './mask.ts';
import type { OperationContext } from './operation.ts';

/** Runs the `onResult` callbacks before a result is sent, such as the one that stores the response of an idempotency key. */
export function finishResponses(): Plugin {
  return {
    onExecute: ({ args }: { args: ExecutionArgs }) => ({
      onExecuteDone({ result, setResult }) {
        if (isAsyncIterable(result)) return undefined;
        const finished = (args.contextValue as OperationContext).finishResult(result);
        // Whether the response was stored is unknown: the client has to send the request again.
        return finished?.catch((failure) => setResult({ errors: [wrapFault(toFault(failure))] }));
      },
    }),
  };
}

/**
 * Reads no event of a stream before the client has been sent the one before: Yoga reads one ahead, which may take megabytes that no
 * limit would count.
 */
export function awaitClients(): Plugin {
  return {
    onSubscribe: ({ args }: { args: ExecutionArgs }) => ({
      onSubscribeResult({ result, setResult }) {
        const { whenSent } = args.contextValue as OperationContext;
        if (!whenSent || !isAsyncIterable(result)) return;
        const events = result[Symbol.asyncIterator]();
        const stream: AsyncIterableIterator<ExecutionResult> = {
          next: () => whenSent().then(() => events.next()),
          return: () => events.return?.() ?? Promise.resolve({ done: true, value: undefined }),
          [Symbol.asyncIterator]: () => stream,
        };
        setResult(stream);
      },
    }),
  };
}
