import { type ExecutionResult, type GraphQLSchema, getOperationAST } from 'graphql';
import type { Context } from '../../graph/context.ts';
import { exceedsDepth } from '../../kernel/json.ts';
import type { Exchange } from '../exchange.ts';
import type { Documents } from './documents.ts';
import { checkOperation, MAX_VARIABLE_DEPTH } from './guards.ts';
import { maskError } from './mask.ts';

interface DirectParts {
  readonly schema: GraphQLSchema;
  readonly documents: Documents;
}

/**
 * What nearly every request is: a query or a mutation whose document was found valid before. Its result, as Yoga's whole
 * pipeline would find it, at a fraction of the cost; null for whatever else is asked, which goes that way.
 */
export async function executeDirectly(
  { schema, documents }: DirectParts,
  body: Readonly<Record<string, unknown>>,
  exchange: Exchange,
  openContext: () => Context,
): Promise<ExecutionResult | null> {
  const request = readRequest(body);
  const known = request && documents.find(request.query, request.operationName);
  if (!known) return null;
  const { operationName, variables: variableValues } = request;
  const { document } = known;
  exchange.operation = known.label;
  exchange.operationName = getOperationAST(document, operationName)?.name?.value.slice(0, 100) ?? null;
  const contextValue = openContext();
  const refusal = checkOperation({ schema, document, operationName, variableValues, contextValue });
  if (refusal) return { errors: [refusal] };
  const result = await known.run(contextValue, variableValues);
  return result.errors ? { ...result, errors: result.errors.map((error) => maskError(error, exchange.log)) } : result;
}

interface Request {
  readonly query: string;
  readonly operationName: string | null;
  readonly variables: Readonly<Record<string, unknown>>;
}

/** Null for a body with anything unusual in it. */
function readRequest({ query, operationName = null, variables, extensions, ...others }: Readonly<Record<string, unknown>>): Request | null {
  for (const _name in others) return null;
  if (typeof query !== 'string' || (operationName !== null && typeof operationName !== 'string')) return null;
  if (extensions !== undefined && extensions !== null) return null;
  const values = variables ?? {};
  if (typeof values !== 'object' || Array.isArray(values) || exceedsDepth(values, MAX_VARIABLE_DEPTH)) return null;
  return { query, operationName, variables: values as Readonly<Record<string, unknown>> };
}

/** The types of an answer that is given whole, as Yoga prefers them: the last that fits. */
const mediaTypes = ['application/graphql-response+json', 'application/json'];

/**
 * The media type in which Yoga would answer what is no stream: of what the client accepts, in its order and whatever the
 * weights, the first that fits. Null where none does.
 */
export function chooseMediaType(accept: string | undefined): string | null {
  for (const part of (accept || '*/*').toLowerCase().replace(/\s/g, '').split(',')) {
    const [type = '', ...parameters] = part.split(';');
    const charset = parameters.find((parameter) => parameter.includes('charset=')) ?? 'charset=utf-8';
    const pattern = type.split('/');
    if (charset !== 'charset=utf-8') continue;
    const fitting = mediaTypes.filter((mediaType) =>
      mediaType.split('/').every((half, index) => pattern[index] === '*' || pattern[index] === half),
    );
    const chosen = fitting.at(-1);
    if (chosen) return chosen;
  }
  return null;
}
