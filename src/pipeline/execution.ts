import { type ExecutionArgs, type ExecutionResult, execute, subscribe } from 'graphql';
import type { Plugin } from 'graphql-yoga';
import { Fault } from '../kernel/fault.ts';
import { findCost } from './check.ts';
import type { OperationContext } from './enveloped.ts';
import { toGraphqlError } from './mask.ts';

/**
 * Executes by graphql-js itself, which keeps the fields of an answer in the order of the document. Documents are not compiled:
 * generated code would have to give the same answer to the byte, and be safe from code injection.
 */
export function executeByReference(): Plugin<OperationContext> {
  return {
    onExecute({ args, setExecuteFn }) {
      const isCostly = (findCost(args) ?? 0) > COSTLY;
      setExecuteFn(isCostly ? executeInTurn : execute);
    },
    onSubscribe({ args, setSubscribeFn, setResultAndStopExecution }) {
      const { delivery, subscribe: deliver } = args.contextValue as OperationContext;
      // A stream that cannot be sent would stay open behind an empty answer.
      if (delivery === 'whole') setResultAndStopExecution({ errors: [toGraphqlError(Fault.invalidRequest(noStream))] });
      setSubscribeFn(deliver ?? subscribe);
    },
  };
}

/** The cost above which the operations of a user are executed one by one: each takes the event loop for long. */
const COSTLY = 1_000;

async function executeInTurn(args: ExecutionArgs): Promise<ExecutionResult> {
  const context = args.contextValue as OperationContext;
  const turn = context.services.costlyTurns.take(context.viewer?.userId ?? '', () => 0);
  try {
    if (turn.beginning) {
      await turn.beginning;
      await context.admitAgain();
    }
    return await execute(args);
  } finally {
    turn.end();
  }
}

const noStream = 'A subscription needs a client that takes text/event-stream, or a WebSocket.';
