import {
  type DefinitionNode,
  type DocumentNode,
  type FragmentDefinitionNode,
  type GraphQLInputField,
  type GraphQLInputType,
  type GraphQLSchema,
  getNamedType,
  isInputObjectType,
  isNonNullType,
  Kind,
  type OperationDefinitionNode,
  TypeInfo,
  typeFromAST,
  type ValueNode,
  visit,
  visitWithTypeInfo,
} from 'graphql';
import { getOrInsert } from '../kernel/map.ts';
import type { FieldConstraints, InputValue } from './constraints.ts';

/** A variable of an operation: its type and what takes it. */
export interface VariableBinding {
  readonly type: GraphQLInputType;
  readonly isRequired: boolean;
  /** Whether its default is null, which not everything that takes it allows. */
  readonly isNullByDefault: boolean;
  /** The input fields and arguments that take it. */
  readonly inputValues: readonly InputValue[];
  /** The last of them, by which the field errors of services are named. */
  readonly inputValue: InputValue | null;
  /** The variables beside it, each with the value that makes this one required. */
  readonly requirements: readonly Requirement[];
}

interface Requirement {
  readonly variable: string;
  readonly value: string;
  readonly message: string;
}

/** The variables of an operation, by name; read once for each document. */
export type VariableBindings = ReadonlyMap<string, VariableBinding>;

export function readBindings(schema: GraphQLSchema, document: DocumentNode, operation: OperationDefinitionNode): VariableBindings {
  const inputValues = createInputValueReader(schema, document)(operation);
  const bindings = new Map<string, VariableBinding>();
  for (const { variable, type: typeNode, defaultValue } of operation.variableDefinitions ?? []) {
    const type = typeFromAST(schema, typeNode) as GraphQLInputType | undefined;
    const name = variable.name.value;
    if (!type) continue;
    const isRequired = isNonNullType(type) && !defaultValue;
    const own = inputValues.get(name) ?? [];
    const requirements = own.some(({ extensions }) => extensions.requiredFor) ? readRequirements(operation, name, own) : [];
    const isNullByDefault = defaultValue?.kind === Kind.NULL;
    bindings.set(name, { type, isRequired, isNullByDefault, inputValues: own, inputValue: own.at(-1) ?? null, requirements });
  }
  return bindings;
}

/** What takes the variables of an operation or a fragment, by their names, and the fragments that it uses. */
interface DefinitionUses {
  readonly inputValues: ReadonlyMap<string, readonly InputValue[]>;
  readonly fragments: readonly FragmentDefinitionNode[];
}

/**
 * Creates a function that returns what takes each of an operation's variables, by its name, in the operation and the fragments that it
 * uses. Each fragment is walked once, however many operations use it.
 */
export function createInputValueReader(
  schema: GraphQLSchema,
  document: DocumentNode,
): (operation: OperationDefinitionNode) => ReadonlyMap<string, readonly InputValue[]> {
  const fragments = new Map<string, FragmentDefinitionNode>();
  for (const definition of document.definitions) {
    if (definition.kind === Kind.FRAGMENT_DEFINITION) fragments.set(definition.name.value, definition);
  }
  const known = new Map<DefinitionNode, DefinitionUses>();
  return (operation) => {
    const inputValues = new Map<string, InputValue[]>();
    const reached = new Set<OperationDefinitionNode | FragmentDefinitionNode>([operation]);
    // What is added to a set while it is iterated comes later in the iteration.
    for (const definition of reached) {
      const uses = getOrInsert(known, definition, () => readUses(schema, definition, fragments));
      for (const [name, taking] of uses.inputValues) getOrInsert(inputValues, name, (): InputValue[] => []).push(...taking);
      for (const fragment of uses.fragments) reached.add(fragment);
    }
    return inputValues;
  };
}

function readUses(
  schema: GraphQLSchema,
  definition: OperationDefinitionNode | FragmentDefinitionNode,
  fragments: ReadonlyMap<string, FragmentDefinitionNode>,
): DefinitionUses {
  const inputValues = new Map<string, InputValue[]>();
  const used = new Set<FragmentDefinitionNode>();
  const collect = (value: ValueNode, inputValue: InputValue | null | undefined) => {
    if (value.kind === Kind.VARIABLE && inputValue) getOrInsert(inputValues, value.name.value, (): InputValue[] => []).push(inputValue);
  };
  const types = new TypeInfo(schema);
  visit(
    definition,
    visitWithTypeInfo(types, {
      Argument: (node) => collect(node.value, types.getArgument()),
      ObjectField: (node) => collect(node.value, inputFieldOf(types.getParentInputType(), node.name.value)),
      FragmentSpread({ name }) {
        const fragment = fragments.get(name.value);
        if (fragment) used.add(fragment);
      },
    }),
  );
  return { inputValues, fragments: [...used] };
}

/**
 * What the input objects of an operation require of a variable that stands beside others in one. A requirement inside a fragment is
 * checked by the service instead.
 */
function readRequirements(operation: OperationDefinitionNode, name: string, inputValues: readonly InputValue[]): Requirement[] {
  const requirements: Requirement[] = [];
  visit(operation, {
    ObjectValue({ fields }) {
      const variables = new Map(
        fields.map(({ name: field, value }) => [field.value, value.kind === Kind.VARIABLE ? value.name.value : null]),
      );
      for (const { name: field, extensions } of inputValues) {
        const { requiredFor } = extensions as FieldConstraints;
        const variable = requiredFor && variables.get(field) === name ? variables.get(requiredFor.field) : null;
        if (requiredFor && variable) requirements.push({ variable, value: requiredFor.value, message: requiredFor.message });
      }
    },
  });
  return requirements;
}

export function inputFieldOf(parent: GraphQLInputType | null | undefined, name: string): GraphQLInputField | undefined {
  const type = getNamedType(parent);
  return isInputObjectType(type) ? type.getFields()[name] : undefined;
}
