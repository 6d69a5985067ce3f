import {
  type FieldNode,
  type GraphQLDirective,
  GraphQLIncludeDirective,
  type GraphQLResolveInfo,
  GraphQLSkipDirective,
  getDirectiveValues,
  Kind,
  type SelectionNode,
} from 'graphql';

type Info = Pick<GraphQLResolveInfo, 'fieldNodes' | 'fragments' | 'variableValues'>;

/** What a selection asks for, where no variable decides it: found once for each field of a document. */
const decided = new WeakMap<FieldNode, Map<ReadonlySet<string>, boolean>>();

/** Whether one of the fields is asked for at any depth below a field; what is left out by `@skip` or `@include` is not. */
export function asksFor(info: Info, names: ReadonlySet<string>): boolean {
  const [node, ...others] = info.fieldNodes;
  if (!node || others.length > 0) return search(info, names).isFound;
  const known = decided.get(node)?.get(names);
  if (known !== undefined) return known;
  const { isFound, isDecided } = search(info, names);
  if (isDecided) decided.set(node, (decided.get(node) ?? new Map()).set(names, isFound));
  return isFound;
}

function search({ fieldNodes, fragments, variableValues }: Info, names: ReadonlySet<string>) {
  const open: SelectionNode[] = fieldNodes.flatMap(({ selectionSet }) => selectionSet?.selections ?? []);
  const spread = new Set<string>();
  let isDecided = true;
  const isOn = (node: SelectionNode, directive: GraphQLDirective) => getDirectiveValues(directive, node, variableValues)?.if;
  for (let node = open.pop(); node; node = open.pop()) {
    if (node.directives?.length) {
      isDecided = false;
      if (isOn(node, GraphQLSkipDirective) === true || isOn(node, GraphQLIncludeDirective) === false) continue;
    }
    if (node.kind === Kind.FIELD && names.has(node.name.value)) return { isFound: true, isDecided };
    if (node.kind !== Kind.FRAGMENT_SPREAD) open.push(...(node.selectionSet?.selections ?? []));
    else if (!spread.has(node.name.value)) {
      spread.add(node.name.value);
      open.push(...(fragments[node.name.value]?.selectionSet.selections ?? []));
    }
  }
  return { isFound: false, isDecided };
}
