import type { ExecutionResult } from 'graphql';
import { isAsyncIterable, type Plugin } from 'graphql-yoga';
import type { OperationContext } from './operation.ts';

/**
 * Reads no event of a stream before the client has been sent the one before: Yoga reads one ahead, which may take megabytes that no
 * limit would count.
 */
export function awaitClients(): Plugin<OperationContext> {
  return {
    onSubscribe: ({ args }) => ({
      onSubscribeResult({ result, setResult }) {
        const { whenSent } = args.contextValue;
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
