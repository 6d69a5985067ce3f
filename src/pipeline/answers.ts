import { setImmediate as nextImmediate } from 'node:timers/promises';
import { type ExecutionArgs, type ExecutionResult, GraphQLError } from 'graphql';
import { isAsyncIterable, type Plugin } from 'graphql-yoga';
import { findAnswerExcess, refuseAnswer } from '../graph/answer.ts';
import { Fault } from '../kernel/fault.ts';
import { exceedsBytes } from '../kernel/size.ts';
import { toFault } from '../platform/errors.ts';
import type { OperationContext } from './enveloped.ts';
import { toGraphqlError } from './mask.ts';

/** The largest event that is delivered: a client can ask for the same field by many names. */
const MAX_EVENT_BYTES = 4 * 1024 * 1024;

/** Has results finished that something waits for: what is kept of an answer is kept before it is sent. */
export function finishAnswers(): Plugin {
  return {
    onExecute: ({ args }: { args: ExecutionArgs }) => ({
      onExecuteDone({ result, setResult }) {
        if (isAsyncIterable(result)) return undefined;
        const finishing = (args.contextValue as OperationContext).finishResult(result);
        // Whether it was kept is unknown: the client has to ask again.
        return finishing?.catch((failure) => setResult({ errors: [toError(toFault(failure))] }));
      },
    }),
  };
}

/** Refuses a result that is too large, before it is serialized; of a stream, the event that is. */
export function limitAnswers(): Plugin {
  return {
    onExecute: ({ args }: { args: ExecutionArgs }) => ({
      onExecuteDone({ result, setResult }) {
        const context = args.contextValue as OperationContext;
        const check = () => {
          // The text is made of the result before that, or is begun.
          setImmediate(() => context.closeAnswer());
          if (isAsyncIterable(result)) return;
          const excess = findAnswerExcess(result, context);
          if (excess) setResult({ errors: [toError(refuseAnswer(excess, context.advice))] });
        };
        // To measure a large one takes a while, as its execution did: others go between.
        return context.isLargeAnswer() ? nextImmediate().then(check) : check();
      },
    }),
    onSubscribe: () => ({
      onSubscribeResult: ({ result: events }) => ({
        onNext({ result, setResult }) {
          try {
            checkEventSize(result as ExecutionResult);
          } catch (failure) {
            setResult({ errors: [toError(toFault(failure))] });
            if (Symbol.asyncIterator in events) events.return?.();
          }
        },
      }),
    }),
  };
}

/** Throws `invalid_request` where a result is too large to be made into text. */
export function checkEventSize(result: ExecutionResult): void {
  if (!exceedsBytes(result.data, MAX_EVENT_BYTES)) return;
  throw Fault.invalidRequest(`An event would be larger than ${MAX_EVENT_BYTES} bytes: select fewer fields of it.`);
}

/** A GraphQL error with its fault, which v1 formats for itself. */
function toError(fault: Fault): GraphQLError {
  const { message, extensions } = toGraphqlError(fault);
  return new GraphQLError(message, { originalError: fault, extensions });
}
