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
export const LIMITS = { depth: 20, breadth: 500, complexity: 50_000 };

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
  const { introspectionCost, isRepeated, dependsOnVariables } = readDocument(schema, ownDocument);
  if (isRepeated) return () => ({ cost: null, exceeded: REPEATED_INTROSPECTION });
  const check = (counted: DocumentNode, variables: Readonly<Record<string, unknown>>) =>
    checkCost(schema, counted, variables, introspectionCost);
  if (dependsOnVariables) {
    const results = new WeakMap<object, CostResult>();
    return (variables) => getOrInsert(results, variables, () => check(ownDocument, variables));
  }
  // The other variables do not affect the cost.
  const withoutVariables = { ...operation, variableDefinitions: [] };
  const result = check({ ...ownDocument, definitions: [withoutVariables, ...fragments] }, {});
  return () => result;
}

const sizeNames: ReadonlySet<string> = new Set(['first', 'last', 'pageSize', 'ids'] satisfies Array<keyof Sizes>);

/**
 * A document whose operations cost as little as those of another one may: a page has one item if its size depends on a variable. The
 * other arguments of paged fields are left out, as they do not affect the cost.
 */
export function takeSmallestPages(schema: GraphQLSchema, document: DocumentNode): DocumentNode {
  const types = new TypeInfo(schema);
  const isPaged = () => types.getFieldDef()?.extensions.complexity === pageCost;
  return visit(
    document,
    visitWithTypeInfo(types, {
      Argument: ({ name }) => (isPaged() && !sizeNames.has(name.value) ? null : undefined),
      Variable: () => (isPaged() ? { kind: Kind.INT, value: '1' } : undefined),
    }),
  );
}

/** Tools that read a schema first ask in one document which fields several of the types named `__…` have. */
const MAX_TYPE_ALIASES = 10;
/** Each introspection of the whole schema returns some hundreds of kilobytes. */
const MAX_SCHEMA_ALIASES = 1;
/** Of introspected fields without fields of their own. An alias of any other would repeat all that is below it. */
const MAX_LEAF_ALIASES = 3;
const REPEATED_INTROSPECTION =
  `Introspection takes at most ${MAX_TYPE_ALIASES} aliases of \`__type\`, ${MAX_SCHEMA_ALIASES} of \`__schema\`, ` +
  `${MAX_LEAF_ALIASES} of fields without fields of their own, and none of others.`;
/** The cost of `__schema`, which blocks the event loop for long: above `COSTLY`, so each client has one executed at a time. */
const SCHEMA_COST = 2_000;
/** The cost of `__type`: several of them in an operation are above `COSTLY`. */
const TYPE_COST = 200;

/** The facts that a document says about its cost, whatever the variables. */
interface CostFacts {
  readonly introspectionCost: number;
  /** Whether introspection has more aliases than tools need. */
  readonly isRepeated: boolean;
  /** Whether an argument of a paged field contains a variable. */
  readonly dependsOnVariables: boolean;
}

function readDocument(schema: GraphQLSchema, document: DocumentNode): CostFacts {
  const types = new TypeInfo(schema);
  const aliases = { type: 0, schema: 0, leaf: 0, other: 0 };
  let introspectionCost = 0;
  let dependsOnVariables = false;
  visit(
    document,
    visitWithTypeInfo(types, {
      Field({ alias, name, selectionSet }) {
        if (name.value === '__schema') introspectionCost += SCHEMA_COST;
        if (name.value === '__type') introspectionCost += TYPE_COST;
        if (!alias) return;
        if (name.value === '__type') aliases.type += 1;
        else if (name.value === '__schema') aliases.schema += 1;
        else if (types.getParentType()?.name.startsWith('__')) aliases[selectionSet ? 'other' : 'leaf'] += 1;
      },
      Variable() {
        dependsOnVariables ||= types.getFieldDef()?.extensions.complexity === pageCost;
      },
    }),
  );
  const { type, schema: whole, leaf, other } = aliases;
  const isRepeated = type > MAX_TYPE_ALIASES || whole > MAX_SCHEMA_ALIASES || leaf > MAX_LEAF_ALIASES || other > 0;
  return { introspectionCost, isRepeated, dependsOnVariables };
}

/** The message for a document that is beyond a limit. */
export function tooLarge(limit: keyof typeof LIMITS, measured: number): string {
  return `The document is too large: ${limit} ${measured}, at most ${LIMITS[limit]}.`;
}

function checkCost(
  schema: GraphQLSchema,
  document: DocumentNode,
  variables: Readonly<Record<string, unknown>>,
  introspectionCost: number,
): CostResult {
  try {
    const counted = complexityFromQuery(document, { schema, variables: { ...variables } });
    const measured = { ...counted, complexity: counted.complexity + introspectionCost };
    const limit = (['depth', 'breadth', 'complexity'] as const).find((name) => measured[name] > LIMITS[name]);
    const exceeded = limit ? tooLarge(limit, measured[limit]) : null;
    return { cost: measured.complexity, exceeded };
  } catch (failure) {
    // A nullable variable with a default is valid among the non-null items of a list, and may still be null.
    if (failure instanceof GraphQLError) return { cost: null, exceeded: failure.message };
    throw failure;
  }
}
