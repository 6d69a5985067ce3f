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

/**
 * What a client's document may cost. A field costs one; what hangs under a page costs as often as the page has items. A
 * document without lists in lists passes with the largest pages, as broad as it may be.
 */
const limits = { depth: 20, breadth: 500, complexity: 50_000 };

export const MAX_COST = limits.complexity;

interface Sizes {
  readonly first?: number | null;
  readonly last?: number | null;
  readonly pageSize?: number | null;
  readonly ids?: readonly unknown[] | null;
}

/** The `complexity` of a field that is paged, or takes a list of ids: of no other field do the arguments count. */
export function pageCost({ first, last, pageSize, ids }: Sizes) {
  const size = ids ? ids.length : (first ?? last ?? pageSize ?? 20);
  return { field: 1, multiplier: Math.min(Math.max(size, 1), 100) };
}

/** What an operation costs, and why it is not run at that; its cost is null where that cannot be told. */
export interface Judgement {
  readonly cost: number | null;
  readonly excess: string | null;
}

/** Judges an operation with the variables of a request, which fit their declared types (`variableErrors`). */
export type JudgeCost = (variables: Readonly<Record<string, unknown>>) => Judgement;

/** Judges an operation of a valid document: once for all, where no page takes a variable. */
export function createCostJudge(schema: GraphQLSchema, document: DocumentNode, operation: OperationDefinitionNode): JudgeCost {
  const fragments = document.definitions.filter(({ kind }) => kind === Kind.FRAGMENT_DEFINITION);
  const own: DocumentNode = { ...document, definitions: [operation, ...fragments] };
  if (repeatsIntrospection(schema, own))
    return () => ({ cost: null, excess: `Introspection takes at most ${MAX_INTROSPECTION_ALIASES} aliases.` });
  if (takesVariables(schema, own)) return (variables) => judge(schema, own, variables);
  // Of the other variables none is looked at, so that the verdict is the same whatever they hold.
  const judged = judge(schema, { ...own, definitions: [{ ...operation, variableDefinitions: [] }, ...fragments] }, {});
  return () => judged;
}

/** The schema is some hundreds of kilobytes, each time that it is asked for. */
const MAX_INTROSPECTION_ALIASES = 3;

function repeatsIntrospection(schema: GraphQLSchema, document: DocumentNode): boolean {
  const types = new TypeInfo(schema);
  let aliases = 0;
  visit(
    document,
    visitWithTypeInfo(types, {
      Field({ alias, name }) {
        const isWithin = types.getParentType()?.name.startsWith('__') || name.value === '__schema' || name.value === '__type';
        if (alias && isWithin) aliases += 1;
      },
    }),
  );
  return aliases > MAX_INTROSPECTION_ALIASES;
}

/** Whether a variable stands in what a page is asked for. */
function takesVariables(schema: GraphQLSchema, document: DocumentNode): boolean {
  const types = new TypeInfo(schema);
  let isTaken = false;
  visit(
    document,
    visitWithTypeInfo(types, {
      Variable() {
        const field = types.getFieldDef();
        isTaken ||= field?.extensions.complexity === pageCost;
      },
    }),
  );
  return isTaken;
}

function judge(schema: GraphQLSchema, document: DocumentNode, variables: Readonly<Record<string, unknown>>): Judgement {
  try {
    const measured = complexityFromQuery(document, { schema, variables: { ...variables } });
    const exceeded = (['depth', 'breadth', 'complexity'] as const).find((name) => measured[name] > limits[name]);
    const excess = exceeded ? `The document is too large: ${exceeded} ${measured[exceeded]}, at most ${limits[exceeded]}.` : null;
    return { cost: measured.complexity, excess };
  } catch (failure) {
    // A variable may be null, and yet stand where null may not be.
    if (failure instanceof GraphQLError) return { cost: null, excess: failure.message };
    throw failure;
  }
}
