import { type DocumentNode, type GraphQLSchema, Kind, TypeInfo, visit, visitWithTypeInfo } from 'graphql';
import { inputFieldOf } from './bindings.ts';

/** The deprecation of a route, a field or an argument. Days are UTC: `2026-11-30`. */
export interface Deprecation {
  readonly since: string;
  /** The day from which it may be removed; absent if undecided. */
  readonly sunset?: string;
  /** The advice that says what to use instead. */
  readonly reason: string;
}

/**
 * Options that deprecate a field, an argument or an input field, to be spread into its own. They yield `@deprecated` in the
 * SDL, `deprecated` in the v1 documents, and the headers in the responses of routes that use it.
 */
export function deprecate(deprecation: Deprecation) {
  const { since, sunset, reason } = deprecation;
  const end = sunset ? ` Gone from ${sunset}.` : '';
  return { deprecationReason: `${reason} Deprecated since ${since}.${end}`, extensions: { deprecation } };
}

/** The deprecations of the fields, arguments and input fields that a document uses. */
export function findDeprecations(schema: GraphQLSchema, document: DocumentNode): Deprecation[] {
  const found: Deprecation[] = [];
  const types = new TypeInfo(schema);
  const collect = (element: { readonly extensions: { deprecation?: unknown } } | null | undefined) => {
    if (element?.extensions.deprecation) found.push(element.extensions.deprecation as Deprecation);
  };
  visit(
    document,
    visitWithTypeInfo(types, {
      enter(node) {
        if (node.kind === Kind.FIELD) collect(types.getFieldDef());
        if (node.kind === Kind.ARGUMENT) collect(types.getArgument());
        if (node.kind === Kind.OBJECT_FIELD) collect(inputFieldOf(types.getParentInputType(), node.name.value));
      },
    }),
  );
  return found;
}

/** The headers `Deprecation` (RFC 9745) and `Sunset` (RFC 8594), each with the earliest day of several deprecations. */
export function deprecationHeaders(...deprecations: ReadonlyArray<Deprecation | undefined>): Record<string, string> {
  const earliest = (days: ReadonlyArray<string | undefined>) => days.filter((day) => day !== undefined).sort()[0];
  const since = earliest(deprecations.map((one) => one?.since));
  const sunset = earliest(deprecations.map((one) => one?.sunset));
  return {
    ...(since && { Deprecation: `@${Date.parse(since) / 1000}` }),
    ...(sunset && { Sunset: new Date(sunset).toUTCString() }),
  };
}
