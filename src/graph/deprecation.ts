import { type DocumentNode, type GraphQLSchema, getNamedType, isInputObjectType, Kind, TypeInfo, visit, visitWithTypeInfo } from 'graphql';

/** What is told of a route, a field or an argument that will go. Days are UTC: `2026-11-30`. */
export interface Deprecation {
  readonly since: string;
  /** The day from which it may be gone; left out where that is not decided. */
  readonly sunset?: string;
  /** What to use instead. */
  readonly reason: string;
}

/**
 * The one flag that deprecates a field, an argument or an input field: spread it into its options. The SDL says
 * `@deprecated`, the v1 documents `deprecated`, and routes that use it answer with the headers.
 */
export function deprecate(deprecation: Deprecation) {
  const { since, sunset, reason } = deprecation;
  const end = sunset ? ` Gone from ${sunset}.` : '';
  return { deprecationReason: `${reason} Deprecated since ${since}.${end}`, extensions: { deprecation } };
}

/** The deprecations of all that a document uses. */
export function findDeprecations(schema: GraphQLSchema, document: DocumentNode): Deprecation[] {
  const found: Deprecation[] = [];
  const types = new TypeInfo(schema);
  const note = (element: { readonly extensions: { deprecation?: unknown } } | null | undefined) => {
    if (element?.extensions.deprecation) found.push(element.extensions.deprecation as Deprecation);
  };
  visit(
    document,
    visitWithTypeInfo(types, {
      enter(node) {
        if (node.kind === Kind.FIELD) note(types.getFieldDef());
        if (node.kind === Kind.ARGUMENT) note(types.getArgument());
        if (node.kind === Kind.OBJECT_FIELD) {
          const parent = getNamedType(types.getParentInputType());
          if (isInputObjectType(parent)) note(parent.getFields()[node.name.value]);
        }
      },
    }),
  );
  return found;
}

/** `Deprecation` (RFC 9745) and `Sunset` (RFC 8594): of several, the earliest of each. */
export function deprecationHeaders(...deprecations: ReadonlyArray<Deprecation | undefined>): Record<string, string> {
  const earliest = (days: ReadonlyArray<string | undefined>) => days.filter((day) => day !== undefined).sort()[0];
  const since = earliest(deprecations.map((one) => one?.since));
  const sunset = earliest(deprecations.map((one) => one?.sunset));
  return {
    ...(since && { Deprecation: `@${Date.parse(since) / 1000}` }),
    ...(sunset && { Sunset: new Date(sunset).toUTCString() }),
  };
}
