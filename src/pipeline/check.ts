import {
  type DocumentNode,
  type ExecutionResult,
  type FieldNode,
  GraphQLError,
  type GraphQLSchema,
  getOperationAST,
  type OperationDefinitionNode,
  OperationTypeNode,
} from 'graphql';
import type { Plugin } from 'graphql-yoga';
import { findInaccessibleFields, type InaccessibleField } from '../graph/accesscheck.ts';
import { readBindings, type VariableBindings } from '../graph/bindings.ts';
import { type CheckCost, createCostCheck, LIMITS } from '../graph/cost.ts';
import { keepTexts } from '../graph/kepttexts.ts';
import { groupRootFields, listRootFields, type ParsedOperation, responseNameOf } from '../graph/parsedoperation.ts';
import { countRequests } from '../graph/requestcount.ts';
import { variableErrors } from '../graph/variableerrors.ts';
import { Fault, type FieldErrors } from '../kernel/fault.ts';
import { forgetJsonPart } from '../kernel/json/exact.ts';
import { getOrInsert } from '../kernel/map.ts';
import { failedResult, maskError, toGraphqlError } from './mask.ts';
import type { OperationArgs, OperationContext } from './operation.ts';
import { literalErrorsByDocument } from './validation.ts';

/**
 * Rejects an operation with invalid variables or literals, or too high a cost, before it is executed, unless its transport has
 * done so.
 */
export function checkOperations(): Plugin<OperationContext> {
  /** Null for an operation that starts at once; resolves to whether it was rejected. */
  const check = ({ args, setResultAndStopExecution }: OperationStart): Promise<boolean> | null => {
    const rejection = args.contextValue.isChecked ? null : (checkOperation(args) ?? chargeRequests(args));
    if (!rejection) return null;
    return Promise.resolve(rejection).then((result) => {
      if (result) setResultAndStopExecution(result);
      return result !== null;
    });
  };
  return {
    onExecute(start) {
      const onExecuteDone = ({ result, setResult }: { result: unknown; setResult(result: ExecutionResult): void }) =>
        setResult(addCost(start.args, result as ExecutionResult));
      const hooks = asksForCost(start.args) ? { onExecuteDone } : undefined;
      const checking = check(start);
      return checking ? checking.then((isRejected) => (isRejected ? undefined : hooks)) : hooks;
    },
    onSubscribe(start) {
      return check(start)?.then(() => {});
    },
  };
}

function asksForCost({ contextValue }: OperationArgs): boolean {
  return contextValue.exchange?.asksForCost ?? false;
}

/** Adds the cost of a checked operation to its result, if the client asks for it. */
function addCost(args: OperationArgs, result: ExecutionResult): ExecutionResult {
  const cost = asksForCost(args) ? findCost(args) : null;
  return cost === null ? result : { ...result, extensions: { ...result.extensions, cost: { requested: cost, limit: LIMITS.complexity } } };
}

/** The cost of an operation that has been checked; null if it cannot be computed. */
export function findCost({ document, operationName, variableValues }: OperationArgs): number | null {
  const operation = getOperationAST(document, operationName);
  return (operation && policies.get(operation)?.checkCost(variableValues ?? {}).cost) ?? null;
}

interface OperationStart {
  readonly args: OperationArgs;
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
export function checkOperation(args: OperationArgs): ExecutionResult | Promise<ExecutionResult> | null {
  const { schema, document, operationName, variableValues } = args;
  const operation = getOperationAST(document, operationName);
  if (!operation) return null;
  const anonymous = rejectAnonymous({ schema, document, operation, variables: variableValues ?? {} }, args);
  if (anonymous) return anonymous;
  const { bindings, checkCost, literalErrors } = getOrInsert(policies, operation, () => readPolicy(schema, document, operation));
  const variables = keepTexts(bindings, variableValues ?? {});
  if (variables !== variableValues && variableValues) {
    Object.assign(args, { variableValues: variables });
    // It may take 70 times the text of its request, which is in memory as long as a stream.
    forgetJsonPart(variableValues);
  }
  const errors = variableErrors(bindings, variables);
  if (errors || literalErrors) return rejectFields({ schema, document, operation, variables }, args, { ...literalErrors, ...errors });
  const { exceeded } = checkCost(variables);
  return exceeded === null ? null : addCost(args, { errors: [toGraphqlError(Fault.invalidRequest(exceeded))] });
}

/**
 * Charges the budget for an operation that counts as several requests. The first one was charged when the request was admitted.
 * Null where nothing is to be charged; resolves with the result of an operation that exceeds the budget, of which nothing is
 * executed, or else with null.
 */
function chargeRequests(args: OperationArgs): Promise<ExecutionResult | null> | null {
  const { schema, document, operationName, variableValues, contextValue: context } = args;
  const operation = getOperationAST(document, operationName);
  if (!context.viewer || !operation) return null;
  const more = countRequests({ schema, document, operation, variables: variableValues ?? {} }) - 1;
  if (more === 0) return null;
  return context.chargeRequests(more).then(
    () => null,
    (failure) => addCost(args, failedResult(failure)),
  );
}

/**
 * The result of a mutation without a viewer. Each of its fields would find that out by itself, but only after its arguments were
 * read, which may be large. Null for all other operations.
 */
function rejectAnonymous(parsed: ParsedOperation, { contextValue: context }: OperationArgs): ExecutionResult | null {
  if (context.viewer || parsed.operation.operation !== OperationTypeNode.MUTATION) return null;
  const rejected = listUnauthenticated(listRootFields(parsed));
  return rejected.length === 0 ? null : rejectRootFields(parsed, context, rejected);
}

/** The credential and the access to what the ids name are checked first: a caller without access sees no field errors. */
async function rejectFields(
  parsed: ParsedOperation,
  { contextValue: context }: OperationArgs,
  fields: FieldErrors,
): Promise<ExecutionResult> {
  const rejected = context.viewer ? await findInaccessibleFields(parsed, context) : listUnauthenticated(listRootFields(parsed));
  if (rejected.length === 0) return { errors: [toGraphqlError(Fault.invalidFields(fields))] };
  return rejectRootFields(parsed, context, rejected);
}

function listUnauthenticated(rootFields: readonly FieldNode[]): InaccessibleField[] {
  return rootFields.filter(isProtected).map((node) => ({ node, failure: Fault.notAuthenticated() }));
}

/**
 * The same response as from an execution in which these root fields fail: they are nullable. If there are others, which are not
 * executed, it has no `data`: a null would be taken for their value.
 */
function rejectRootFields(parsed: ParsedOperation, context: OperationContext, rejected: readonly InaccessibleField[]): ExecutionResult {
  const rootFields = groupRootFields(parsed);
  const failed = new Set(rejected.map(({ node }) => responseNameOf(node)));
  const errors = rejected.map(({ node, failure }) => {
    const name = responseNameOf(node);
    const error = new GraphQLError('', { nodes: rootFields.get(name), path: [name], originalError: failure as Error });
    return maskError(error, context.openLogger());
  });
  if (parsed.operation.operation === OperationTypeNode.SUBSCRIPTION) return { errors };
  const rootTypeName = parsed.schema.getRootType(parsed.operation.operation)?.name;
  const data = Object.create(null);
  for (const [name, [node]] of rootFields) {
    const isTypename = node?.name.value === '__typename';
    if (!isTypename && !failed.has(name)) return { errors };
    data[name] = isTypename ? rootTypeName : null;
  }
  return { errors, data };
}

/** Whether a root field is about a viewer, as all are but introspection. */
function isProtected({ name }: FieldNode): boolean {
  return !name.value.startsWith('__');
}

function readPolicy(schema: GraphQLSchema, document: DocumentNode, operation: OperationDefinitionNode): Policy {
  const bindings = readBindings(schema, document, operation);
  const literalErrors = literalErrorsByDocument.get(document) ?? null;
  // A document with invalid literals is not executed, so its cost is not computed.
  return {
    bindings,
    literalErrors,
    checkCost: literalErrors ? () => ({ cost: null, exceeded: null }) : createCostCheck(schema, document, operation),
  };
}
