import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { type ExecutionArgs, type ExecutionResult, execute, GraphQLError, subscribe } from 'graphql';
import type { Plugin } from 'graphql-yoga';
import { recordDuration } from '../kernel/duration.ts';
import { Fault, statusByCode } from '../kernel/fault.ts';
import { toFault } from '../platform/errors.ts';
import { findCost } from './check.ts';
import { graphqlExtensions, toGraphqlError } from './mask.ts';
import type { OperationContext } from './operation.ts';

/**
 * Executes by graphql-js itself, which keeps the fields of a response in the order of the document. Documents are not compiled:
 * generated code would have to give the same response to the byte, and be safe from code injection.
 */
export function executeWithGraphqlJs(): Plugin<OperationContext> {
  return {
    onExecute({ args, setExecuteFn }) {
      const isCostly = (findCost(args) ?? 0) > COSTLY;
      setExecuteFn(isCostly ? executeWithPermit : execute);
    },
    onSubscribe({ args, setSubscribeFn, setResultAndStopExecution }) {
      const { responseForm, subscribe: deliver } = args.contextValue as OperationContext;
      // A stream that cannot be sent would stay open behind an empty response.
      if (responseForm === 'single') setResultAndStopExecution({ errors: [toGraphqlError(Fault.invalidRequest(noStream))] });
      setSubscribeFn(deliver ?? subscribe);
    },
  };
}

/** The cost above which a user's operations run one at a time, because each of them blocks the event loop for long. */
const COSTLY = 1_000;
/** A pause that is shorter than this would be no gain for others. */
const MIN_PAUSE_MS = 5;

/** Runs one costly operation of a user at a time; the next begins after a pause as long as the event loop was busy. */
async function executeWithPermit(args: ExecutionArgs): Promise<ExecutionResult> {
  const context = args.contextValue as OperationContext;
  const permit = context.services.costlySemaphore.acquire(context.viewer?.userId ?? '', () => 0);
  let pauseMs = 0;
  try {
    if (permit.acquired) {
      await recordDuration(permit.acquired, context.recordWait);
      await context.admitAgain().catch((failure) => rejectRequest(failure, context));
    }
    const before = performance.eventLoopUtilization();
    try {
      return await execute(args);
    } finally {
      // Most of this time the event loop has been busy with this operation.
      pauseMs = performance.eventLoopUtilization(before).active;
    }
  } finally {
    if (pauseMs < MIN_PAUSE_MS) permit.release();
    else sleep(pauseMs, undefined, { ref: false }).then(permit.release);
  }
}

/** Rejects the request as its transport would have done: a credential that is no longer valid has the HTTP status 401. */
function rejectRequest(failure: unknown, { exchange }: OperationContext): never {
  const fault = toFault(failure);
  if (fault.code !== 'not_authenticated') throw fault;
  exchange?.recordError(fault.code, fault.reason);
  const http = { status: statusByCode[fault.code], headers: { 'WWW-Authenticate': 'Bearer' } };
  throw new GraphQLError(fault.message, { extensions: { ...graphqlExtensions(fault), http } });
}

const noStream = 'A subscription needs a client that takes text/event-stream, or a WebSocket.';
