import { performance } from 'node:perf_hooks';
import { type ExecutionResult, execute, GraphQLError, subscribe } from 'graphql';
import type { Plugin } from 'graphql-yoga';
import { ADMISSION_MAX_AGE_MS } from '../graph/context.ts';
import { recordDuration } from '../kernel/duration.ts';
import { statusByCode } from '../kernel/fault.ts';
import { Pauses } from '../kernel/pauses.ts';
import { toFault } from '../platform/errors.ts';
import { findCost } from './check.ts';
import { createSubscriptionError, graphqlExtensions } from './mask.ts';
import type { OperationArgs, OperationContext } from './operation.ts';

/**
 * Executes by graphql-js itself, which keeps the fields of a response in the order of the document. Documents are not compiled:
 * generated code would have to give the same response to the byte, and be safe from code injection.
 */
export function executeWithGraphqlJs(): Plugin<OperationContext> {
  return {
    onExecute({ args, setExecuteFn }) {
      const isCostly = (findCost(args) ?? 0) > COSTLY;
      setExecuteFn(isCostly ? () => executeWithPermit(args) : execute);
      return { onExecuteDone: () => void args.contextValue.endLoading() };
    },
    onSubscribe({ args, setSubscribeFn, setResultAndStopExecution }) {
      const { responseForm, subscribe: deliver } = args.contextValue;
      // A stream that cannot be sent would stay open behind an empty response.
      if (responseForm === 'single') setResultAndStopExecution({ errors: [createSubscriptionError()] });
      setSubscribeFn(deliver ?? subscribe);
    },
  };
}

/** The cost above which a client's operations run one at a time, because each of them blocks the event loop for long. */
const COSTLY = 1_000;
const MIN_PAUSE_MS = 5;
/** The pauses after the costly operations of each user, and of all clients without a credential, of which one is executed at a time. */
const pauses = new Pauses();

async function executeWithPermit(args: OperationArgs): Promise<ExecutionResult> {
  const context = args.contextValue;
  const owner = context.exchange?.turnKey ?? context.viewer?.userId ?? 'anonymous';
  const permit = context.services.costlySemaphore.acquire(owner, () => 0);
  const beganAt = performance.now();
  try {
    if (permit.acquired) await recordDuration(permit.acquired, context.recordWait);
    const pause = pauses.find(owner);
    if (pause) await recordDuration(pause, context.recordWait);
    if (permit.acquired || performance.now() - beganAt > ADMISSION_MAX_AGE_MS)
      await context.admitAgain().catch((failure) => throwAsTransport(failure, context));
    context.requireClient();
    const before = performance.eventLoopUtilization();
    try {
      return await execute(args);
    } finally {
      await context.endLoading();
      // Most of this time the event loop has been busy with this operation.
      const { active } = performance.eventLoopUtilization(before);
      if (active >= MIN_PAUSE_MS) pauses.begin(owner, active);
    }
  } finally {
    permit.release();
  }
}

/** Rejects the request as its transport would have done: a credential that is no longer valid has the HTTP status 401. */
function throwAsTransport(failure: unknown, { exchange }: OperationContext): never {
  const fault = toFault(failure);
  if (fault.code !== 'not_authenticated') throw fault;
  exchange?.recordError(fault.code, fault.reason);
  const http = { status: statusByCode[fault.code], headers: { 'WWW-Authenticate': 'Bearer' } };
  throw new GraphQLError(fault.message, { extensions: { ...graphqlExtensions(fault), http } });
}
