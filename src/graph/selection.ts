import {
  type DocumentNode,
  type FieldNode,
  type FragmentDefinitionNode,
  type GraphQLDirective,
  GraphQLIncludeDirective,
  type GraphQLResolveInfo,
  GraphQLSkipDirective,
  getDirectiveValues,
  Kind,
  type SelectionNode,
  type SelectionSetNode,
} from 'graphql';
import { getOrInsert } from '../kernel/map.ts';

type Info = Pick<GraphQLResolveInfo, 'fieldNodes' | 'fragments' | 'variableValues'>;

/** The results of `selectsAny` that depend on no variable, cached for each field of a document. */
const cache = new WeakMap<FieldNode, Map<ReadonlySet<string>, boolean>>();

/** Whether one of the named fields is selected at any depth below a field, with `@skip` and `@include` applied. */
export function selectsAny(info: Info, names: ReadonlySet<string>): boolean {
  const [node, ...others] = info.fieldNodes;
  if (!node || others.length > 0) return search(info, names).isFound;
  const cached = cache.get(node)?.get(names);
  if (cached !== undefined) return cached;
  const { isFound, isStatic } = search(info, names);
  if (isStatic) getOrInsert(cache, node, () => new Map()).set(names, isFound);
  return isFound;
}

function search({ fieldNodes, fragments, variableValues }: Info, names: ReadonlySet<string>) {
  const pending: SelectionNode[] = fieldNodes.flatMap(({ selectionSet }) => selectionSet?.selections ?? []);
  const visited = new Set<string>();
  let isStatic = true;
  const conditionOf = (node: SelectionNode, directive: GraphQLDirective) => getDirectiveValues(directive, node, variableValues)?.if;
  const isExcluded = (node: SelectionNode) =>
    conditionOf(node, GraphQLSkipDirective) === true || conditionOf(node, GraphQLIncludeDirective) === false;
  for (let node = pending.pop(); node; node = pending.pop()) {
    if (node.directives?.length) {
      isStatic = false;
      if (isExcluded(node)) continue;
    }
    if (node.kind === Kind.FIELD && names.has(node.name.value)) return { isFound: true, isStatic };
    if (node.kind !== Kind.FRAGMENT_SPREAD) pending.push(...(node.selectionSet?.selections ?? []));
    else if (!visited.has(node.name.value)) {
      visited.add(node.name.value);
      pending.push(...(fragments[node.name.value]?.selectionSet.selections ?? []));
    }
  }
  return { isFound: false, isStatic };
}

/**
 * The selections of sets in their order, each fragment followed, where it is first used, by its own; without those that are
 * skipped. Not a generator: each selection would pass through all that it is nested in.
 */
export function listSelections(
  selectionSets: readonly SelectionSetNode[],
  document: DocumentNode,
  isSkipped: (node: SelectionNode) => boolean = () => false,
): SelectionNode[] {
  const found: SelectionNode[] = [];
  const visited = new Set<string>();
  const collect = ({ selections }: SelectionSetNode) => {
    for (const node of selections) {
      if (isSkipped(node)) continue;
      found.push(node);
      if (node.kind === Kind.INLINE_FRAGMENT) collect(node.selectionSet);
      if (node.kind !== Kind.FRAGMENT_SPREAD || visited.has(node.name.value)) continue;
      visited.add(node.name.value);
      const fragment = findFragment(document, node.name.value);
      if (fragment) collect(fragment.selectionSet);
    }
  };
  selectionSets.forEach(collect);
  return found;
}

/** Of several with the same name, in a document that is not validated yet, the one that graphql-js takes: the last. */
function findFragment({ definitions }: DocumentNode, name: string): FragmentDefinitionNode | undefined {
  return definitions.findLast(
    (definition): definition is FragmentDefinitionNode => definition.kind === Kind.FRAGMENT_DEFINITION && definition.name.value === name,
  );
}
