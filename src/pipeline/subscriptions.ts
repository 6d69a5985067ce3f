import type { ExecutionArgs } from 'graphql';
import type { Plugin } from 'graphql-yoga';
import { Fault } from '../kernel/fault.ts';
import { toJsonText } from '../kernel/jsontext.ts';
import type { ValidDocuments } from './documents.ts';
import type { OperationContext } from './enveloped.ts';
import { toGraphqlError } from './mask.ts';

/** The characters of a subscription's variables, as JSON: they stay in memory for as long as it does. */
const MAX_VARIABLES = 1_000;

/** Limits what subscriptions keep in memory for as long as they are open: their variables and, all together, their documents. */
export function limitSubscriptions(documents: ValidDocuments): Plugin<OperationContext> {
  return {
    onSubscribe({ args, setResultAndStopExecution }) {
      const { document, variableValues = {}, contextValue } = args as ExecutionArgs;
      const context = contextValue as OperationContext;
      if (toJsonText(variableValues).length > MAX_VARIABLES) {
        const fault = Fault.invalidRequest(`The variables of a subscription take at most ${MAX_VARIABLES} characters of JSON.`);
        setResultAndStopExecution({ errors: [toGraphqlError(fault)] });
      }
      context.holdDocument = () => documents.hold(context.requireViewer().userId, document);
    },
  };
}
