import type { ExecutionArgs } from 'graphql';
import type { GraphQLParams, Plugin } from 'graphql-yoga';
import { Fault } from '../kernel/fault.ts';
import { toJsonText } from '../kernel/jsontext.ts';
import type { ValidDocuments } from './documents.ts';
import type { OperationContext } from './enveloped.ts';
import { toGraphqlError } from './mask.ts';

/** The characters of a subscription's variables, as JSON. */
const MAX_VARIABLES_CHARACTERS = 1_000;
/** The characters of an HTTP request, which Yoga keeps in memory with its stream: the same limit as for a socket's message. */
const MAX_PARAMS_CHARACTERS = 64 * 1024;

/** Limits the memory of open subscriptions: the size of each request and, across subscriptions, the size of their documents. */
export function limitSubscriptions(documents: ValidDocuments): Plugin<OperationContext> {
  return {
    onSubscribe({ args, setResultAndStopExecution }) {
      const { document, variableValues, contextValue } = args as ExecutionArgs;
      const context = contextValue as OperationContext & { readonly params?: GraphQLParams };
      const tooLong = isLonger(variableValues, MAX_VARIABLES_CHARACTERS)
        ? `The variables of a subscription take at most ${MAX_VARIABLES_CHARACTERS} characters of JSON.`
        : isLonger(context.params, MAX_PARAMS_CHARACTERS) &&
          `The request of a subscription takes at most ${MAX_PARAMS_CHARACTERS} characters.`;
      if (tooLong) setResultAndStopExecution({ errors: [toGraphqlError(Fault.invalidRequest(tooLong))] });
      context.reserveDocument = () => documents.reserve(context.requireViewer().userId, document);
    },
  };
}

function isLonger(value: unknown, maxCharacters: number): boolean {
  return toJsonText(value ?? null).length > maxCharacters;
}
