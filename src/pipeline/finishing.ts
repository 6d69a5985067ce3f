import { isAsyncIterable, type Plugin } from 'graphql-yoga';
import { toFault } from '../platform/errors.ts';
import { replaceByFault } from './mask.ts';
import type { OperationContext } from './operation.ts';

/** Runs the `onResult` callbacks before a result is sent, such as the one that stores the response of an idempotency key. */
export function finishResponses(): Plugin<OperationContext> {
  return {
    onExecute: ({ args }) => ({
      onExecuteDone({ result, setResult }) {
        if (isAsyncIterable(result)) return undefined;
        const finished = args.contextValue.finishResult(result);
        // Whether the response was stored is unknown: the client has to send the request again.
        return finished?.catch((failure) => setResult(replaceByFault(result, toFault(failure))));
      },
    }),
  };
}
