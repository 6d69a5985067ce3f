import { type DocumentNode, type FragmentDefinitionNode, GraphQLError, Kind, OperationTypeNode, type SelectionSetNode } from 'graphql';

const conditionalDirectives: ReadonlySet<string> = new Set(['skip', 'include']);

/**
 * An error for each `@skip` and `@include` on the root field of a subscription, also within fragments, found before the document
 * is validated: the validation rule of graphql-js throws for them, and a subscription without its root field has no events.
 */
export function findConditionalRoots({ definitions }: DocumentNode): GraphQLError[] {
  const errors: GraphQLError[] = [];
  const fragments = new Map<string, FragmentDefinitionNode>();
  for (const definition of definitions) if (definition.kind === Kind.FRAGMENT_DEFINITION) fragments.set(definition.name.value, definition);
  const visited = new Set<SelectionSetNode>();
  const visitSelections = (selectionSet: SelectionSetNode | undefined) => {
    if (!selectionSet || visited.has(selectionSet)) return;
    visited.add(selectionSet);
    for (const selection of selectionSet.selections) {
      for (const directive of selection.directives ?? []) {
        const name = directive.name.value;
        if (conditionalDirectives.has(name))
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
