import { execute, subscribe } from 'graphql';
import type { Plugin } from 'graphql-yoga';
import { Fault } from '../kernel/fault.ts';
import type { OperationContext } from './enveloped.ts';
import { toGraphqlError } from './mask.ts';

/**
 * Executes by graphql-js itself, which keeps the fields of an answer in the order of the document. Documents are not compiled:
 * generated code would have to give the same answer to the byte, and be safe from code injection.
 */
export function executeByReference(): Plugin<OperationContext> {
  return {
    onExecute({ setExecuteFn }) {
      setExecuteFn(execute);
    },
    onSubscribe({ args, setSubscribeFn, setResultAndStopExecution }) {
      const { delivery, subscribe: deliver } = args.contextValue as OperationContext;
      // A stream that cannot be sent would stay open behind an empty answer.
      if (delivery === 'whole') setResultAndStopExecution({ errors: [toGraphqlError(Fault.invalidRequest(noStream))] });
      setSubscribeFn(deliver ?? subscribe);
    },
  };
}

const noStream = 'A subscription needs a client that takes text/event-stream, or a WebSocket.';
