import { execute, subscribe } from 'graphql';
import type { Plugin } from 'graphql-yoga';
import { Fault } from '../kernel/fault.ts';
import type { OperationContext } from './enveloped.ts';
import { toGraphqlError } from './mask.ts';

/**
 * Executes by graphql-js itself, which keeps the fields of an answer in the order of the document. No code is made of a
 * document: a compiled one would have to answer the same to the byte, and take no text for code.
 */
export function executeByReference(): Plugin<OperationContext> {
  return {
    onExecute({ setExecuteFn }) {
      setExecuteFn(execute);
    },
    onSubscribe({ args, setSubscribeFn, setResultAndStopExecution }) {
      const { delivery, subscribe: deliver } = args.contextValue as OperationContext;
      // A stream that nobody can send would be left open behind an empty answer.
      if (delivery === 'whole') setResultAndStopExecution({ errors: [toGraphqlError(Fault.invalidRequest(noStream))] });
      setSubscribeFn(deliver ?? subscribe);
    },
  };
}

const noStream = 'A subscription needs a client that takes text/event-stream, or a WebSocket.';
