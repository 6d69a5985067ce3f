import {
  type DocumentNode,
  type FieldNode,
  type FragmentDefinitionNode,
  type GraphQLSchema,
  Kind,
  type OperationDefinitionNode,
  type SelectionNode,
  type SelectionSetNode,
  type ValueNode,
  valueFromASTUntyped,
} from 'graphql';
import { getOrInsert } from '../kernel/map.ts';

/** An operation that is not executed yet, with its variables as they were sent. */
export interface ParsedOperation {
  readonly schema: GraphQLSchema;
  readonly document: DocumentNode;
  readonly operation: OperationDefinitionNode;
  readonly variables: Readonly<Record<string, unknown>>;
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
 * executed its variables are as they were sent; `findSelected`, within a resolver, has those that graphql-js has coerced.
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

/** An object that is an argument, or a part of one: its fields are read by their names. */
export class ObjectArgument {
  constructor(readonly field: (name: string) => unknown) {}
}

/** The value of a leaf, with its variable resolved; an `ObjectArgument` for an object. */
export function readArgument(node: ValueNode | undefined, parsed: ParsedOperation): unknown {
  if (node?.kind === Kind.OBJECT) {
    const fields = new Map(node.fields.map(({ name, value }) => [name.value, value]));
    return new ObjectArgument((name) => readArgument(fields.get(name), parsed));
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
  return new ObjectArgument((part) => (Object.hasOwn(value, part) ? (value as Record<string, unknown>)[part] : undefined));
}
