import type { Plugin } from 'graphql-yoga';
import { Fault } from '../kernel/fault.ts';
import { stringifyJson } from '../kernel/json/text.ts';
import type { ValidDocuments } from './documents.ts';
import { toGraphqlError } from './mask.ts';
import type { OperationContext } from './operation.ts';

/** The characters of a subscription's variables, as JSON. */
const MAX_VARIABLES_CHARACTERS = 1_000;
/** The body of an HTTP request stays in memory with its stream: the same limit as for a socket's message. */
const MAX_BODY_BYTES = 64 * 1024;

/** Limits the memory of open subscriptions: the size of each request and, across subscriptions, the size of their documents. */
export function limitSubscriptions(documents: ValidDocuments): Plugin<OperationContext> {
  return {
    onSubscribe({ args, setResultAndStopExecution }) {
      const { document, variableValues, contextValue: context } = args;
      const tooLong =
        stringifyJson(variableValues ?? {}).length > MAX_VARIABLES_CHARACTERS
          ? `The variables of a subscription take at most ${MAX_VARIABLES_CHARACTERS} characters of JSON.`
          : (context.exchange?.bodyBytes ?? 0) > MAX_BODY_BYTES && `The body of a subscription takes at most ${MAX_BODY_BYTES} bytes.`;
      if (tooLong) setResultAndStopExecution({ errors: [toGraphqlError(Fault.invalidRequest(tooLong))] });
      context.reserveDocument = () => documents.reserve(context.requireViewer().userId, document);
    },
  };
}
