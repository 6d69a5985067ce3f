import { type ASTNode, type GraphQLResolveInfo, Kind, print, visit } from 'graphql';
import { canonicalJson } from '../kernel/json.ts';

type Info = Pick<GraphQLResolveInfo, 'fieldName' | 'fieldNodes' | 'fragments' | 'variableValues'>;

/**
 * A canonical text of a request, equal for equal requests: the field, its input and its selection. White space, the alias of
 * the field and the other fields of the document are left out; so is the document of a v1 request, which is the server's own.
 */
export function describeRequest(info: Info, input: Readonly<Record<string, unknown>>, route: string | null): string {
  const { idempotencyKey: _key, ...fields } = input;
  return canonicalJson([info.fieldName, fields, route ?? describeSelection(info)]);
}

/** The selection, with its fragments and the values of its variables. */
function describeSelection({ fieldNodes, fragments, variableValues }: Info) {
  const variables: Record<string, unknown> = Object.create(null);
  const texts: string[] = [];
  const pending: ASTNode[] = fieldNodes.flatMap(({ selectionSet }) => selectionSet ?? []);
  const visited = new Set<string>();
  for (const node of pending) {
    texts.push(print(node));
    visit(node, {
      Variable({ name }) {
        variables[name.value] = variableValues[name.value];
      },
      [Kind.FRAGMENT_SPREAD]({ name }) {
        const fragment = fragments[name.value];
        if (!fragment || visited.has(name.value)) return;
        visited.add(name.value);
        pending.push(fragment);
      },
    });
  }
  return { texts, variables };
}
