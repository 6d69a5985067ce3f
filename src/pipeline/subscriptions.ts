import type { ExecutionArgs } from 'graphql';
import type { GraphQLParams, Plugin } from 'graphql-yoga';
import { Fault } from '../kernel/fault.ts';
import { toJsonText } from '../kernel/jsontext.ts';
import type { ValidDocuments } from './documents.ts';
import type { OperationContext } from './enveloped.ts';
import { toGraphqlError } from './mask.ts';

/** The characters of a subscription's variables, as JSON. */
const MAX_VARIABLES = 1_000;
/** The characters of a request by HTTP, which Yoga keeps with its stream: as many as a socket's message may have. */
const MAX_PARAMS = 64 * 1024;

/** Limits what subscriptions keep in memory for as long as they are open: their requests and, all together, their documents. */
export function limitSubscriptions(documents: ValidDocuments): Plugin<OperationContext> {
  return {
    onSubscribe({ args, setResultAndStopExecution }) {
      const { document, variableValues, contextValue } = args as ExecutionArgs;
      const context = contextValue as OperationContext & { readonly params?: GraphQLParams };
      const excess = isLonger(variableValues, MAX_VARIABLES)
        ? `The variables of a subscription take at most ${MAX_VARIABLES} characters of JSON.`
        : isLonger(context.params, MAX_PARAMS) && `The request of a subscription takes at most ${MAX_PARAMS} characters.`;
      if (excess) setResultAndStopExecution({ errors: [toGraphqlError(Fault.invalidRequest(excess))] });
      context.holdDocument = () => documents.hold(context.requireViewer().userId, document);
    },
  };
}

const isLonger = (value: unknown, most: number): boolean => toJsonText(value ?? null).length > most;
