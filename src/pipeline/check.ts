import {
  type DocumentNode,
  type ExecutionArgs,
  type ExecutionResult,
  type FieldNode,
  GraphQLError,
  type GraphQLSchema,
  getOperationAST,
  type OperationDefinitionNode,
  OperationTypeNode,
} from 'graphql';
import type { Plugin } from 'graphql-yoga';
import { createCostJudge, type JudgeCost, MAX_COST } from '../graph/cost.ts';
import { keepTexts } from '../graph/exact.ts';
import { findRefused, type Located, listRootFields } from '../graph/locate.ts';
import { readBindings, type VariableBindings, variableErrors } from '../graph/variables.ts';
import { Fault, type FieldErrors } from '../kernel/fault.ts';
import { getOrInsert } from '../kernel/map.ts';
import type { OperationContext } from './enveloped.ts';
import { maskError, toGraphqlError } from './mask.ts';
import { literalErrorsOf } from './validation.ts';

/** Refuses an operation for its fields or its cost, before it is executed, unless its door has done so. */
export function checkOperations(): Plugin {
  const refuse = ({ args, setResultAndStopExecution }: OperationStart) => {
    const refusal = (args.contextValue as OperationContext).isChecked ? null : checkOperation(args);
    // An operation that passes starts without a wait.
    return refusal ? Promise.resolve(refusal).then((result) => setResultAndStopExecution(tellCost(args, result))) : undefined;
  };
  return {
    onExecute(start) {
      const refusing = refuse(start);
      if (refusing || !asksForCost(start.args)) return refusing;
      return { onExecuteDone: ({ result, setResult }) => setResult(tellCost(start.args, result as ExecutionResult)) };
    },
    onSubscribe: refuse,
  };
}

function asksForCost({ contextValue }: ExecutionArgs): boolean {
  return (contextValue as OperationContext).exchange?.asksForCost ?? false;
}

/** The result with the cost of its operation, where the client asks for that. */
function tellCost(args: ExecutionArgs, result: ExecutionResult): ExecutionResult {
  const operation = getOperationAST(args.document, args.operationName);
  const policy = operation && policies.get(operation);
  if (!policy || !asksForCost(args)) return result;
  const { cost } = policy.judgeCost(args.variableValues ?? {});
  return cost === null ? result : { ...result, extensions: { ...result.extensions, cost: { requested: cost, limit: MAX_COST } } };
}

interface OperationStart {
  readonly args: ExecutionArgs;
  setResultAndStopExecution(result: ExecutionResult): void;
}

/** The checks of an operation, the same for every request. */
interface Policy {
  readonly bindings: VariableBindings;
  readonly judgeCost: JudgeCost;
  readonly literalErrors: FieldErrors | null;
}

/** A policy lives as long as its cached document. */
const policies = new WeakMap<OperationDefinitionNode, Policy>();

/** The result of an operation that is refused for its fields or its cost; null for an operation that may run. */
export function checkOperation(args: ExecutionArgs): ExecutionResult | Promise<ExecutionResult> | null {
  const { schema, document, operationName, variableValues } = args;
  const operation = getOperationAST(document, operationName);
  if (!operation) return null;
  const { bindings, judgeCost, literalErrors } = getOrInsert(policies, operation, () => readPolicy(schema, document, operation));
  const variables = keepTexts(bindings, variableValues ?? {});
  if (variables !== variableValues && variableValues) Object.assign(args, { variableValues: variables });
  const fields = variableErrors(bindings, variables);
  if (fields || literalErrors) return refuseFields({ schema, document, operation, variables }, args, { ...literalErrors, ...fields });
  const { excess } = judgeCost(variables);
  return excess === null ? null : { errors: [toGraphqlError(Fault.invalidRequest(excess))] };
}

/** Field errors are for viewers with access to what the ids name: the credential and the access are checked before. */
async function refuseFields(located: Located, { contextValue }: ExecutionArgs, fields: FieldErrors): Promise<ExecutionResult> {
  const context = contextValue as OperationContext;
  if (!context.viewer) return { errors: [toGraphqlError(Fault.notAuthenticated())] };
  const refused = await findRefused(located, context);
  if (refused.length === 0) return { errors: [toGraphqlError(Fault.invalidFields(fields))] };
  const errors = refused.map(({ node, failure }) => {
    const path = [responseNameOf(node)];
    return maskError(new GraphQLError('', { nodes: node, path, originalError: failure as Error }), context.openLogger());
  });
  // As an execution would have answered: such root fields are nullable.
  const data = Object.fromEntries(listRootFields(located).map((node) => [responseNameOf(node), null]));
  return located.operation.operation === OperationTypeNode.SUBSCRIPTION ? { errors } : { errors, data };
}

function responseNameOf({ alias, name }: FieldNode): string {
  return (alias ?? name).value;
}

function readPolicy(schema: GraphQLSchema, document: DocumentNode, operation: OperationDefinitionNode): Policy {
  const bindings = readBindings(schema, document, operation);
  const literalErrors = literalErrorsOf.get(document) ?? null;
  // A document with invalid literals is not run: its cost does not matter.
  return {
    bindings,
    literalErrors,
    judgeCost: literalErrors ? () => ({ cost: null, excess: null }) : createCostJudge(schema, document, operation),
  };
}
