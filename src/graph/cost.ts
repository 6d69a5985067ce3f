import { complexityFromQuery } from '@pothos/plugin-complexity';
import {
  type DocumentNode,
  GraphQLError,
  type GraphQLSchema,
  Kind,
  type OperationDefinitionNode,
  TypeInfo,
  visit,
  visitWithTypeInfo,
} from 'graphql';
import { getOrInsert } from '../kernel/map.ts';

/**
 * The limits of a client's document. A field costs one; the fields below a page cost as many times as the page has items. A
 * document without lists in lists passes with the largest pages at the full breadth.
 */
const limits = { depth: 20, breadth: 500, complexity: 50_000 };

export const MAX_COST = limits.complexity;

interface Sizes {
  readonly first?: number | null;
  readonly last?: number | null;
  readonly pageSize?: number | null;
  readonly ids?: readonly unknown[] | null;
}

/** The `complexity` of a field that is paged or takes a list of ids. The arguments of other fields do not affect the cost. */
export function pageCost({ first, last, pageSize, ids }: Sizes) {
  const size = ids ? ids.length : (first ?? last ?? pageSize ?? 20);
  return { field: 1, multiplier: Math.min(Math.max(size, 1), 100) };
}

/** The result of a cost check. */
interface CostResult {
  /** Null if it cannot be computed. */
  readonly cost: number | null;
  /** The message of the rejection; null for an operation that may run. */
  readonly exceeded: string | null;
}

/** Checks the cost of an operation with the variables of a request, which must be valid for their types (`variableErrors`). */
export type CheckCost = (variables: Readonly<Record<string, unknown>>) => CostResult;

/**
 * Creates the cost check of an operation of a valid document. The cost is computed once, or once for each request if a page size
 * depends on a variable.
 */
export function createCostCheck(schema: GraphQLSchema, document: DocumentNode, operation: OperationDefinitionNode): CheckCost {
  const fragments = document.definitions.filter(({ kind }) => kind === Kind.FRAGMENT_DEFINITION);
  const ownDocument: DocumentNode = { ...document, definitions: [operation, ...fragments] };
  if (repeatsIntrospection(schema, ownDocument))
    return () => ({
      cost: null,
      exceeded: `Introspection takes at most ${MAX_TYPE_ALIASES} aliases of \`__type\`, and ${MAX_OTHER_ALIASES} others.`,
    });
  if (dependsOnVariables(schema, ownDocument)) {
    const results = new WeakMap<object, CostResult>();
    return (variables) => getOrInsert(results, variables, () => checkCost(schema, ownDocument, variables));
  }
  // The other variables do not affect the cost.
  const withoutVariables = { ...operation, variableDefinitions: [] };
  const result = checkCost(schema, { ...ownDocument, definitions: [withoutVariables, ...fragments] }, {});
  return () => result;
}

/** Each introspection of the whole schema returns some hundreds of kilobytes. */
const MAX_OTHER_ALIASES = 3;
/** Tools that read a schema first ask in one document which fields several of the types named `__…` have. */
const MAX_TYPE_ALIASES = 10;

function repeatsIntrospection(schema: GraphQLSchema, document: DocumentNode): boolean {
  const types = new TypeInfo(schema);
  let ofType = 0;
  let others = 0;
  visit(
    document,
    visitWithTypeInfo(types, {
      Field({ alias, name }) {
        if (!alias) return;
        if (name.value === '__type') ofType += 1;
        else if (name.value === '__schema' || types.getParentType()?.name.startsWith('__')) others += 1;
      },
    }),
  );
  return ofType > MAX_TYPE_ALIASES || others > MAX_OTHER_ALIASES;
}

/** Whether an argument of a paged field contains a variable. */
function dependsOnVariables(schema: GraphQLSchema, document: DocumentNode): boolean {
  const types = new TypeInfo(schema);
  let isDependent = false;
  visit(
    document,
    visitWithTypeInfo(types, {
      Variable() {
        const field = types.getFieldDef();
        isDependent ||= field?.extensions.complexity === pageCost;
      },
    }),
  );
  return isDependent;
}

function checkCost(schema: GraphQLSchema, document: DocumentNode, variables: Readonly<Record<string, unknown>>): CostResult {
  try {
    const measured = complexityFromQuery(document, { schema, variables: { ...variables } });
    const limit = (['depth', 'breadth', 'complexity'] as const).find((name) => measured[name] > limits[name]);
    const exceeded = limit ? `The document is too large: ${limit} ${measured[limit]}, at most ${limits[limit]}.` : null;
    return { cost: measured.complexity, exceeded };
  } catch (failure) {
    // A nullable variable is valid in a non-null position with a default, and may still be null.
    if (failure instanceof GraphQLError) return { cost: null, exceeded: failure.message };
    throw failure;
  }
}
