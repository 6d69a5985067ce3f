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
import { findInaccessibleFields, listRootFields, type ParsedOperation, responseNameOf } from '../graph/accesscheck.ts';
import { type CheckCost, createCostCheck, MAX_COST } from '../graph/cost.ts';
import { keepTexts } from '../graph/exact.ts';
import { readBindings, type VariableBindings, variableErrors } from '../graph/variables.ts';
import { forgetExactJson } from '../kernel/exactjson.ts';
import { Fault, type FieldErrors } from '../kernel/fault.ts';
import { getOrInsert } from '../kernel/map.ts';
import { maskError, toGraphqlError } from './mask.ts';
import type { OperationContext } from './operation.ts';
import { literalErrorsOf } from './validation.ts';

/**
 * Rejects an operation with invalid variables or literals, or too high a cost, before it is executed, unless its transport has
 * done so.
 */
export function checkOperations(): Plugin {
  const check = ({ args, setResultAndStopExecution }: OperationStart) => {
    const rejection = (args.contextValue as OperationContext).isChecked ? null : checkOperation(args);
    // An operation that passes starts synchronously.
    return rejection ? Promise.resolve(rejection).then((result) => setResultAndStopExecution(addCost(args, result))) : undefined;
  };
  return {
    onExecute(start) {
      const rejecting = check(start);
      if (rejecting || !asksForCost(start.args)) return rejecting;
      return { onExecuteDone: ({ result, setResult }) => setResult(addCost(start.args, result as ExecutionResult)) };
    },
    onSubscribe: check,
  };
}

function asksForCost({ contextValue }: ExecutionArgs): boolean {
  return (contextValue as OperationContext).exchange?.asksForCost ?? false;
}

/** Adds the cost of the operation to its result, if the client asks for it. */
function addCost(args: ExecutionArgs, result: ExecutionResult): ExecutionResult {
  const cost = asksForCost(args) ? findCost(args) : null;
  return cost === null ? result : { ...result, extensions: { ...result.extensions, cost: { requested: cost, limit: MAX_COST } } };
}

/** The cost of an operation that has been checked; null if it cannot be computed. */
export function findCost({ document, operationName, variableValues }: ExecutionArgs): number | null {
  const operation = getOperationAST(document, operationName);
  return (operation && policies.get(operation)?.checkCost(variableValues ?? {}).cost) ?? null;
}

interface OperationStart {
  readonly args: ExecutionArgs;
  setResultAndStopExecution(result: ExecutionResult): void;
}

/** The checks of an operation, independent of the request. */
interface Policy {
  readonly bindings: VariableBindings;
  readonly checkCost: CheckCost;
  readonly literalErrors: FieldErrors | null;
}

/** Each policy lives as long as its cached document. */
const policies = new WeakMap<OperationDefinitionNode, Policy>();

/** The result of an operation that is rejected for its variables, literals or cost; null for an operation that may run. */
export function checkOperation(args: ExecutionArgs): ExecutionResult | Promise<ExecutionResult> | null {
  const { schema, document, operationName, variableValues } = args;
  const operation = getOperationAST(document, operationName);
  if (!operation) return null;
  const { bindings, checkCost, literalErrors } = getOrInsert(policies, operation, () => readPolicy(schema, document, operation));
  const variables = keepTexts(bindings, variableValues ?? {});
  if (variables !== variableValues && variableValues) {
    Object.assign(args, { variableValues: variables });
    // It may take 70 times the text of its request, which is in memory as long as a stream.
    forgetExactJson(variableValues);
  }
  const errors = variableErrors(bindings, variables);
  if (errors || literalErrors) return rejectFields({ schema, document, operation, variables }, args, { ...literalErrors, ...errors });
  const { exceeded } = checkCost(variables);
  return exceeded === null ? null : { errors: [toGraphqlError(Fault.invalidRequest(exceeded))] };
}

/** The credential and the access to what the ids name are checked first: a caller without access sees no field errors. */
async function rejectFields(parsed: ParsedOperation, { contextValue }: ExecutionArgs, fields: FieldErrors): Promise<ExecutionResult> {
  const context = contextValue as OperationContext;
  const rootFields = listRootFields(parsed);
  const inaccessible = context.viewer
    ? await findInaccessibleFields(parsed, context)
    : rootFields.filter(isProtected).map((node) => ({ node, failure: Fault.notAuthenticated() }));
  if (inaccessible.length === 0) return { errors: [toGraphqlError(Fault.invalidFields(fields))] };
  const errors = inaccessible.map(({ node, failure }) => {
    const path = [responseNameOf(node)];
    return maskError(new GraphQLError('', { nodes: node, path, originalError: failure as Error }), context.openLogger());
  });
  // The same response as from an execution: such root fields are nullable.
  const rootTypeName = parsed.schema.getRootType(parsed.operation.operation)?.name;
  const data = Object.fromEntries(rootFields.map((node) => [responseNameOf(node), node.name.value === '__typename' ? rootTypeName : null]));
  return parsed.operation.operation === OperationTypeNode.SUBSCRIPTION ? { errors } : { errors, data };
}

/** Whether a root field is about a viewer, as all are but introspection. */
function isProtected({ name }: FieldNode): boolean {
  return !name.value.startsWith('__');
}

function readPolicy(schema: GraphQLSchema, document: DocumentNode, operation: OperationDefinitionNode): Policy {
  const bindings = readBindings(schema, document, operation);
  const literalErrors = literalErrorsOf.get(document) ?? null;
  // A document with invalid literals is not executed, so its cost is not computed.
  return {
    bindings,
    literalErrors,
    checkCost: literalErrors ? () => ({ cost: null, exceeded: null }) : createCostCheck(schema, document, operation),
  };
}
