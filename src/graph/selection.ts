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
import { getOrInsert } from '../kernel/map.ts';

type Info = Pick<GraphQLResolveInfo, 'fieldNodes' | 'fragments' | 'variableValues'>;

/** The results of `findSelected` that depend on no variable, cached for each field of a document. */
const cache = new WeakMap<FieldNode, Map<ReadonlySet<string>, ReadonlySet<string>>>();

/** Whether one of the named fields is selected at any depth below a field, with `@skip` and `@include` applied. */
export function selectsAny(info: Info, names: ReadonlySet<string>): boolean {
  return findSelected(info, names).size > 0;
}

/** Those of the named fields that are selected at any depth below a field, in the order of the names. */
export function findSelected(info: Info, names: ReadonlySet<string>): ReadonlySet<string> {
  const [node, ...others] = info.fieldNodes;
  if (!node || others.length > 0) return search(info, names).selected;
  const cached = cache.get(node)?.get(names);
  if (cached) return cached;
  const { selected, isStatic } = search(info, names);
  if (isStatic) getOrInsert(cache, node, () => new Map()).set(names, selected);
  return selected;
}

function search({ fieldNodes, fragments, variableValues }: Info, names: ReadonlySet<string>) {
  const pending: SelectionNode[] = fieldNodes.flatMap(({ selectionSet }) => selectionSet?.selections ?? []);
  const visited = new Set<string>();
  const found = new Set<string>();
  let isStatic = true;
  const conditionOf = (node: SelectionNode, directive: GraphQLDirective) => getDirectiveValues(directive, node, variableValues)?.if;
  const isExcluded = (node: SelectionNode) =>
    conditionOf(node, GraphQLSkipDirective) === true || conditionOf(node, GraphQLIncludeDirective) === false;
  for (let node = pending.pop(); node && found.size < names.size; node = pending.pop()) {
    if (node.directives?.length) {
      isStatic = false;
      if (isExcluded(node)) continue;
    }
    if (node.kind === Kind.FIELD && names.has(node.name.value)) found.add(node.name.value);
    if (node.kind !== Kind.FRAGMENT_SPREAD) pending.push(...(node.selectionSet?.selections ?? []));
    else if (!visited.has(node.name.value)) {
      visited.add(node.name.value);
      pending.push(...(fragments[node.name.value]?.selectionSet.selections ?? []));
    }
  }
  return { selected: new Set([...names].filter((name) => found.has(name))), isStatic };
}
