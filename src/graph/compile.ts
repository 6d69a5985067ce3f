import {
  type DocumentNode,
  type ExecutionResult,
  execute,
  GraphQLError,
  type GraphQLSchema,
  getOperationAST,
  type OperationDefinitionNode,
  OperationTypeNode,
  valueFromASTUntyped,
} from 'graphql';
import { compileQuery, isCompiledQuery } from 'graphql-jit';

type Values = Readonly<Record<string, unknown>> | null | undefined;

/** Runs one operation of a document, whose variables have been checked (`variableErrors`). */
export type Operation = (contextValue: unknown, variableValues: Values) => Promise<ExecutionResult> | ExecutionResult;

/**
 * Makes a function of an operation. A query is compiled: several times as fast as walking its document on each call, with
 * a fraction of the garbage. What writes is walked: the compiler presents an input field that was left out as null, and
 * a mutation tells the two apart. Variables have been checked before: the errors of its own about them would name no node.
 */
export function compileOperation(schema: GraphQLSchema, document: DocumentNode, operationName?: string | null): Operation {
  const operation = getOperationAST(document, operationName);
  const compiled = operation?.operation === OperationTypeNode.QUERY ? compileQuery(schema, document, operationName ?? undefined) : null;
  if (!compiled || !isCompiledQuery(compiled)) return walkOperation(schema, document, operationName);
  const defaults = readDefaults(operation);
  return async (contextValue, given) => {
    const result: ExecutionResult = await compiled.query(undefined, contextValue, { ...defaults, ...given });
    return result.errors ? { errors: result.errors.map((error) => toGraphqlError(error, document)), data: result.data } : result;
  };
}

/** The compiler's errors know lines and columns alone; graphql-js has them from a source and positions in it. */
function toGraphqlError({ message, locations = [], path, originalError }: GraphQLError, { loc }: DocumentNode): GraphQLError {
  const text = loc?.source.body ?? '';
  const lineStarts = [0, ...[...text.matchAll(/\r\n|[\n\r]/g)].map((end) => end.index + end[0].length)];
  const positions = locations.map(({ line, column }) => Number(lineStarts[line - 1]) + column - 1);
  return new GraphQLError(message, { source: loc?.source, positions, path, originalError });
}

/** Runs an operation as graphql-js does. */
export function walkOperation(schema: GraphQLSchema, document: DocumentNode, operationName?: string | null): Operation {
  return (contextValue, variableValues) => execute({ schema, document, operationName, contextValue, variableValues });
}

/** The compiler knows no default for a variable that may not be null. */
function readDefaults(operation: OperationDefinitionNode | null | undefined): Record<string, unknown> {
  const definitions = operation?.variableDefinitions ?? [];
  return Object.fromEntries(
    definitions.flatMap(({ variable, defaultValue }) => (defaultValue ? [[variable.name.value, valueFromASTUntyped(defaultValue)]] : [])),
  );
}
