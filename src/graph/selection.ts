import {
  type DocumentNode,
  type FieldNode,
  type FragmentDefinitionNode,
  type GraphQLDirective,
  GraphQLIncludeDirective,
  type GraphQLResolveInfo,
  type GraphQLSchema,
  GraphQLSkipDirective,
  getDirectiveValues,
  Kind,
  type OperationDefinitionNode,
  type SelectionNode,
  type SelectionSetNode,
  type ValueNode,
  valueFromASTUntyped,
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

export interface ParsedOperation {
  readonly schema: GraphQLSchema;
  readonly document: DocumentNode;
  readonly operation: OperationDefinitionNode;
  readonly variables: Readonly<Record<string, unknown>>;
}

/** The root fields of an operation that would be executed: the first for each response name. */
export function listRootFields(parsed: ParsedOperation): FieldNode[] {
  return [...groupRootFields(parsed).values()].flatMap(([first]) => first ?? []);
}

/** The root fields of an operation that would be executed, as of `groupFields`. */
export function groupRootFields(parsed: ParsedOperation): ReadonlyMap<string, readonly FieldNode[]> {
  return groupFields([parsed.operation.selectionSet], parsed);
}

/** The fields of selection sets that would be executed, by response name: those with the same name are one field. */
export function groupFields(
  selectionSets: readonly SelectionSetNode[],
  parsed: ParsedOperation,
): ReadonlyMap<string, readonly FieldNode[]> {
  const found = new Map<string, FieldNode[]>();
  for (const node of listSelections(selectionSets, parsed.document, (selection) => isSkipped(selection, parsed)))
    if (node.kind === Kind.FIELD) getOrInsert(found, responseNameOf(node), () => []).push(node);
  return found;
}

/** Whether a field has an argument whose value is neither absent nor null. */
export function hasArgument({ arguments: given }: FieldNode, name: string, parsed: ParsedOperation): boolean {
  const value = readArgument(given?.find((argument) => argument.name.value === name)?.value, parsed);
  return value !== undefined && value !== null;
}

/**
 * Whether `@skip` or `@include` excludes a selection; a condition without a boolean value excludes nothing. Before an operation is
 * executed its variables are as they were sent; `selectsAny`, within a resolver, has those that graphql-js has coerced.
 */
function isSkipped({ directives = [] }: SelectionNode, parsed: ParsedOperation): boolean {
  return directives.some(({ name, arguments: given }) => {
    const condition = readArgument(given?.find((argument) => argument.name.value === 'if')?.value, parsed);
    return (name.value === 'skip' && condition === true) || (name.value === 'include' && condition === false);
  });
}

export function responseNameOf({ alias, name }: FieldNode): string {
  return (alias ?? name).value;
}

/** The value of a leaf, with its variable resolved; for an object, a function that reads its fields by name. */
export function readArgument(node: ValueNode | undefined, parsed: ParsedOperation): unknown {
  if (node?.kind === Kind.OBJECT) {
    const fields = new Map(node.fields.map(({ name, value }) => [name.value, value]));
    return (name: string) => readArgument(fields.get(name), parsed);
  }
  if (node?.kind !== Kind.VARIABLE) return node && valueFromASTUntyped(node);
  const name = node.name.value;
  const { operation, variables } = parsed;
  if (!Object.hasOwn(variables, name)) {
    const definition = operation.variableDefinitions?.find(({ variable }) => variable.name.value === name);
    return readArgument(definition?.defaultValue, parsed);
  }
  const value = variables[name];
  if (typeof value !== 'object' || value === null) return value;
  return (part: string) => (Object.hasOwn(value, part) ? (value as Record<string, unknown>)[part] : undefined);
}
