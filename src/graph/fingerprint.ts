import { type ASTNode, type GraphQLResolveInfo, Kind, print, visit } from 'graphql';
import { canonicalJson } from '../kernel/json.ts';

type Info = Pick<GraphQLResolveInfo, 'fieldName' | 'fieldNodes' | 'fragments' | 'variableValues'>;

/**
 * The text of a request, the same for the same request: the field, its input, and what is asked of it. White space, the name
 * of the field in the answer and the other fields of the document are no part of it; of a request of v1 neither is the
 * document, which is not the client's.
 */
export function describeRequest(info: Info, input: Readonly<Record<string, unknown>>, route: string | null): string {
  const { idempotencyKey: _key, ...asked } = input;
  return canonicalJson([info.fieldName, asked, route ?? describeSelection(info)]);
}

/** What is selected, with the fragments and the values of the variables in it. */
function describeSelection({ fieldNodes, fragments, variableValues }: Info) {
  const variables: Record<string, unknown> = Object.create(null);
  const texts: string[] = [];
  const open: ASTNode[] = fieldNodes.flatMap(({ selectionSet }) => selectionSet ?? []);
  const spread = new Set<string>();
  for (const node of open) {
    texts.push(print(node));
    visit(node, {
      Variable({ name }) {
        variables[name.value] = variableValues[name.value];
      },
      [Kind.FRAGMENT_SPREAD]({ name }) {
        const fragment = fragments[name.value];
        if (!fragment || spread.has(name.value)) return;
        spread.add(name.value);
        open.push(fragment);
      },
    });
  }
  return { texts, variables };
}
