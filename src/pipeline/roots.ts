import { type DocumentNode, type FragmentDefinitionNode, GraphQLError, Kind, OperationTypeNode, type SelectionSetNode } from 'graphql';

const conditions: ReadonlySet<string> = new Set(['skip', 'include']);

/**
 * What is wrong with the subscriptions of a document, before it is validated: their root field may be under no condition,
 * also within a fragment. graphql-js' own rule would throw there, and a subscription that leaves out its root
 * field would have nothing to subscribe to.
 */
export function findConditionalRoots({ definitions }: DocumentNode): GraphQLError[] {
  const errors: GraphQLError[] = [];
  const fragments = new Map<string, FragmentDefinitionNode>();
  for (const definition of definitions) if (definition.kind === Kind.FRAGMENT_DEFINITION) fragments.set(definition.name.value, definition);
  const seen = new Set<SelectionSetNode>();
  const visitSelections = (selectionSet: SelectionSetNode | undefined) => {
    if (!selectionSet || seen.has(selectionSet)) return;
    seen.add(selectionSet);
    for (const selection of selectionSet.selections) {
      for (const directive of selection.directives ?? []) {
        const name = directive.name.value;
        if (conditions.has(name))
          errors.push(new GraphQLError(`The root field of a subscription takes no \`@${name}\`.`, { nodes: directive }));
      }
      if (selection.kind === Kind.INLINE_FRAGMENT) visitSelections(selection.selectionSet);
      if (selection.kind === Kind.FRAGMENT_SPREAD) visitSelections(fragments.get(selection.name.value)?.selectionSet);
    }
  };
  for (const definition of definitions) {
    if (definition.kind === Kind.OPERATION_DEFINITION && definition.operation === OperationTypeNode.SUBSCRIPTION)
      visitSelections(definition.selectionSet);
  }
  return errors;
}
