import { maxAliasesPlugin } from '@escape.tech/graphql-armor-max-aliases';
import { maxTokensPlugin } from '@escape.tech/graphql-armor-max-tokens';
import {
  type ASTNode,
  type ASTVisitor,
  type DocumentNode,
  type ExecutionArgs,
  execute,
  GraphQLError,
  type GraphQLSchema,
  getNamedType,
  getOperationAST,
  isInputObjectType,
  Kind,
  Lexer,
  MaxIntrospectionDepthRule,
  type OperationDefinitionNode,
  Source,
  subscribe,
  TokenKind,
  type ValidationContext,
  visit,
} from 'graphql';
import type { Plugin } from 'graphql-yoga';
import type { Context } from '../../graph/context.ts';
import { createCostJudge, type JudgeCost } from '../../graph/cost.ts';
import { constraintError, readBindings, type VariableBindings, variableErrors } from '../../graph/variables.ts';
import { Fault, statusOf } from '../../kernel/fault.ts';
import { exceedsDepth } from '../../kernel/json.ts';
import { graphqlExtensions } from '../faults.ts';
import type { Documents } from './documents.ts';

const MAX_TOKENS = 2_000;
const MAX_ALIASES = 50;
export const MAX_VARIABLE_DEPTH = 520;
const MAX_DOCUMENT_DEPTH = 520;

/** What a client's document is held to before it runs. */
export function documentGuards(documents: Documents): Plugin[] {
  return [
    maxTokensPlugin({ n: MAX_TOKENS }) as Plugin,
    maxAliasesPlugin({ n: MAX_ALIASES }) as Plugin,
    {
      onParams({ params }) {
        if (exceedsDepth(params.variables, MAX_VARIABLE_DEPTH))
          throw toGraphqlError(Fault.invalidRequest(`The variables are nested deeper than ${MAX_VARIABLE_DEPTH} levels.`));
      },
      onParse({ params }) {
        if (exceedsNesting(params.source.toString()))
          throw toGraphqlError(Fault.invalidRequest(`The document is nested deeper than ${MAX_DOCUMENT_DEPTH} levels.`));
      },
      onValidate({ addValidationRule, params }) {
        addValidationRule(MaxIntrospectionDepthRule);
        addValidationRule(constraintRule);
        return ({ result, setResult }) => {
          if (!Array.isArray(result)) return;
          if (result.length === 0) return documents.accept(params.documentAST as DocumentNode);
          documents.forget(params.documentAST as DocumentNode);
          if (result.some(({ extensions }) => extensions.http)) return;
          setResult(gatherFieldErrors(params.documentAST as DocumentNode, result));
        };
      },
      onExecute({ args, setExecuteFn, setResultAndStopExecution }) {
        // The reference executor keeps the fields of an answer in the order of the document; Yoga's own does not.
        setExecuteFn(execute);
        const error = checkOperation(args);
        if (error) setResultAndStopExecution({ errors: [error] });
      },
      onSubscribe({ args, setSubscribeFn, setResultAndStopExecution }) {
        setSubscribeFn(subscribe);
        const error = checkOperation(args);
        if (error) setResultAndStopExecution({ errors: [error] });
      },
    } satisfies Plugin,
  ];
}

const brackets: Readonly<Record<string, number>> = {
  [TokenKind.BRACE_L]: 1,
  [TokenKind.BRACKET_L]: 1,
  [TokenKind.PAREN_L]: 1,
  [TokenKind.BRACE_R]: -1,
  [TokenKind.BRACKET_R]: -1,
  [TokenKind.PAREN_R]: -1,
};

/** Whether brackets stand in one another deeper than the parser should follow: it recurses. A syntax error is left to it. */
function exceedsNesting(text: string): boolean {
  const lexer = new Lexer(new Source(text));
  let depth = 0;
  try {
    for (let tokens = 0; tokens <= MAX_TOKENS && depth <= MAX_DOCUMENT_DEPTH; tokens += 1) {
      const { kind } = lexer.advance();
      if (kind === TokenKind.EOF) return false;
      depth += brackets[kind] ?? 0;
    }
  } catch {
    return false;
  }
  return depth > MAX_DOCUMENT_DEPTH;
}

/** A list literal that is longer than its field declares. (Variables are looked at before the execution.) */
function constraintRule(context: ValidationContext): ASTVisitor {
  return {
    ObjectField(node) {
      const parent = getNamedType(context.getParentInputType());
      const field = isInputObjectType(parent) ? parent.getFields()[node.name.value] : undefined;
      const value = node.value.kind === Kind.LIST ? node.value.values : node.value.kind === Kind.NULL ? null : undefined;
      const problem = field ? constraintError(field, value) : null;
      if (problem) context.reportError(new GraphQLError(problem, { nodes: node.value, extensions: { code: 'validation_failed' } }));
    },
  };
}

/** Literals that a scalar refuses are field errors, as variables are: named by the field or argument that they stand in. */
function gatherFieldErrors(document: DocumentNode, errors: readonly GraphQLError[]): GraphQLError[] {
  const refused = new Map<unknown, GraphQLError>(
    errors.flatMap((error) => (error.extensions.code === 'validation_failed' ? [[error.nodes?.[0], error] as const] : [])),
  );
  const others = errors.filter((error) => error.extensions.code !== 'validation_failed');
  if (others.length > 0) return others.map((error) => toGraphqlError(Fault.invalidRequest(error.message), error.nodes));
  const fields: Record<string, string[]> = Object.create(null);
  const names: string[] = [];
  visit(document, {
    enter(node, key, parent) {
      if (node.kind === Kind.ARGUMENT || node.kind === Kind.OBJECT_FIELD) names.push(node.name.value);
      const error = refused.get(node);
      const item = Array.isArray(parent) ? `Item ${Number(key) + 1}: ` : '';
      if (error) (fields[names.at(-1) ?? 'input'] ??= []).push(item + error.message);
    },
    leave(node) {
      if (node.kind === Kind.ARGUMENT || node.kind === Kind.OBJECT_FIELD) names.pop();
    },
  });
  return [toGraphqlError(Fault.invalidFields(fields))];
}

/** What an operation is held to, whoever asks for it. */
interface Demands {
  readonly bindings: VariableBindings;
  readonly judgeCost: JudgeCost;
}

/** Yoga keeps parsed documents: what is read of one is kept as long. */
const demandsOf = new WeakMap<OperationDefinitionNode, Demands>();

/**
 * Why an operation is not run: the field errors of its variables, or its cost; null where nothing is wrong. Whose
 * variables are wrong, and who may not ask at all, is told only that.
 */
export function checkOperation({ schema, document, operationName, variableValues, contextValue }: ExecutionArgs): GraphQLError | null {
  const operation = getOperationAST(document, operationName);
  if (!operation) return null;
  const { bindings, judgeCost } = demandsOf.get(operation) ?? readDemands(schema, document, operation);
  const variables = variableValues ?? {};
  const fields = variableErrors(bindings, variables);
  if (fields) return toGraphqlError((contextValue as Context).viewer ? Fault.invalidFields(fields) : Fault.notAuthenticated());
  const excess = judgeCost(variables);
  return excess === null ? null : toGraphqlError(Fault.invalidRequest(excess));
}

function readDemands(schema: GraphQLSchema, document: DocumentNode, operation: OperationDefinitionNode): Demands {
  const demands = { bindings: readBindings(schema, document, operation), judgeCost: createCostJudge(schema, document, operation) };
  demandsOf.set(operation, demands);
  return demands;
}

/** A refusal before the execution: 400, except to clients that speak the older media type, which has 200 for all. */
export function toGraphqlError(fault: Fault, nodes?: readonly ASTNode[]): GraphQLError {
  return new GraphQLError(fault.message, {
    nodes,
    extensions: { ...graphqlExtensions(fault), http: { status: statusOf[fault.code], spec: true } },
  });
}
