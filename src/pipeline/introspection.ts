import { type ASTVisitor, GraphQLError, Kind, type SelectionSetNode, type ValidationContext } from 'graphql';

/** The fields of `__Type` whose items have such fields again. */
const typeLists = new Set(['fields', 'inputFields', 'interfaces', 'possibleTypes']);

const NESTED = 'Introspection of the whole schema takes no fields, interfaces or possible types below one another.';

/**
 * Of the whole schema, each list below another multiplies the response: 1 KB would ask for 5 MB. No tool needs one, as the standard query
 * has none; below `__type`, where graphql-js allows two, they are few.
 */
export function wholeSchemaRule(context: ValidationContext): ASTVisitor {
  const depths = new Map<string, number>();
  /** The most lists below one another in selections; each fragment is read once, also where it contains itself. */
  const depthOf = ({ selections }: SelectionSetNode): number =>
    Math.max(
      0,
      ...selections.map((selection) => {
        if (selection.kind === Kind.FRAGMENT_SPREAD) return depthOfFragment(selection.name.value);
        const below = selection.selectionSet ? depthOf(selection.selectionSet) : 0;
        return selection.kind === Kind.FIELD && typeLists.has(selection.name.value) ? below + 1 : below;
      }),
    );
  const depthOfFragment = (name: string): number => {
    const fragment = depths.has(name) ? null : context.getFragment(name);
    if (fragment) {
      depths.set(name, 0);
      depths.set(name, depthOf(fragment.selectionSet));
    }
    return depths.get(name) ?? 0;
  };
  return {
    Field(node) {
      if (node.name.value === '__schema' && node.selectionSet && depthOf(node.selectionSet) > 1)
        context.reportError(new GraphQLError(NESTED, { nodes: node }));
    },
  };
}
