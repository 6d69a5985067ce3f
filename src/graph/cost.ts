import { complexityFromQuery } from '@pothos/plugin-complexity';
import {
  type DocumentNode,
  GraphQLError,
  type GraphQLField,
  type GraphQLSchema,
  isInterfaceType,
  isObjectType,
  Kind,
  type OperationDefinitionNode,
  TypeInfo,
  visit,
  visitWithTypeInfo,
} from 'graphql';

/** What a client's document may cost. A field costs one; what hangs under a page costs as often as the page has items. */
const limits = { depth: 12, breadth: 500, complexity: 20_000 };

const sizes: ReadonlySet<string> = new Set(['first', 'last', 'pageSize']);
const single = { field: 1, multiplier: 1 };

const ofPage = ({ first, last, pageSize }: Readonly<Record<string, unknown>>) => {
  const size = Number(first ?? last ?? pageSize ?? 20);
  return { field: 1, multiplier: Math.min(Math.max(size, 1), 100) };
};

const isPaged = ({ args }: GraphQLField<unknown, unknown>) => args.some(({ name }) => sizes.has(name));

/** Tells each field what it costs: only of those that are paged do the arguments count. */
export function declareCosts(schema: GraphQLSchema): GraphQLSchema {
  for (const type of Object.values(schema.getTypeMap())) {
    if (!isObjectType(type) && !isInterfaceType(type)) continue;
    for (const field of Object.values(type.getFields()))
      field.extensions = { ...field.extensions, complexity: isPaged(field) ? ofPage : single };
  }
  return schema;
}

/** Why an operation is not run with such variables; null when nothing is wrong. Variables fit their declared types (`variableErrors`). */
export type JudgeCost = (variables: Readonly<Record<string, unknown>>) => string | null;

/** Judges an operation of a valid document: once for all, where no page takes a variable. */
export function createCostJudge(schema: GraphQLSchema, document: DocumentNode, operation: OperationDefinitionNode): JudgeCost {
  const fragments = document.definitions.filter(({ kind }) => kind === Kind.FRAGMENT_DEFINITION);
  const own: DocumentNode = { ...document, definitions: [operation, ...fragments] };
  if (takesVariables(schema, own)) return (variables) => judge(schema, own, variables);
  // Of the other variables none is looked at, so that the verdict is the same whatever they hold.
  const judged = judge(schema, { ...own, definitions: [{ ...operation, variableDefinitions: [] }, ...fragments] }, {});
  return () => judged;
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
        isTaken ||= Boolean(field && isPaged(field));
      },
    }),
  );
  return isTaken;
}

function judge(schema: GraphQLSchema, document: DocumentNode, variables: Readonly<Record<string, unknown>>): string | null {
  try {
    const cost = complexityFromQuery(document, { schema, variables: { ...variables } });
    const exceeded = (['depth', 'breadth', 'complexity'] as const).find((name) => cost[name] > limits[name]);
    return exceeded ? `The document is too large: ${exceeded} ${cost[exceeded]}, at most ${limits[exceeded]}.` : null;
  } catch (failure) {
    // A variable may be null, and yet stand where null may not be.
    if (failure instanceof GraphQLError) return failure.message;
    throw failure;
  }
}
