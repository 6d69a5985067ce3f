import { type DocumentNode, GraphQLError, Kind, OperationTypeNode } from 'graphql';
import { listSelections } from '../graph/parsedoperation.ts';

const conditionalDirectives: ReadonlySet<string> = new Set(['skip', 'include']);

/** As many as graphql-js reports. */
const MAX_ERRORS = 100;

/**
 * An error for each of the first `@skip` and `@include` on the root field of a subscription, also within fragments, found before the
 * document is validated: the validation rule of graphql-js throws for them, and a subscription without its root field has no events.
 */
export function findConditionalRoots(document: DocumentNode): GraphQLError[] {
  const subscriptions = document.definitions.flatMap((definition) =>
    definition.kind === Kind.OPERATION_DEFINITION && definition.operation === OperationTypeNode.SUBSCRIPTION
      ? [definition.selectionSet]
      : [],
  );
  const directives = listSelections(subscriptions, document).flatMap((selection) => selection.directives ?? []);
  const conditional = directives.filter(({ name }) => conditionalDirectives.has(name.value));
  const reported = conditional.slice(0, MAX_ERRORS);
  return reported.map((node) => new GraphQLError(`The root field of a subscription takes no \`@${node.name.value}\`.`, { nodes: node }));
}
