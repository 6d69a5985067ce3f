import {
  type ConstValueNode,
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
  type ObjectValueNode,
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
  /** Its default, which may be null where not everything that takes it allows null. */
  readonly defaultValue: ConstValueNode | undefined;
  /** The input fields and arguments that take it. */
  readonly inputValues: readonly InputValue[];
  /** The last of them, by which the field errors of services are named. */
  readonly inputValue: InputValue | null;
  /** The requirements for a value of it, or of a field beside it that has no value. */
  readonly requirements: readonly Requirement[];
}

/** A field that an input object requires if another of its fields has a certain value. */
export interface Requirement {
  /** The variable that the field takes; null for a field that is absent or null. */
  readonly variable: string | null;
  /** The variable of the other field, and its value that makes this one required; null for a literal with that value. */
  readonly condition: { readonly variable: string; readonly value: string } | null;
  readonly field: string;
  /** The names of the field and of those that it is nested in, from below the argument on. */
  readonly path: readonly string[];
  readonly message: string;
}

/** The variables of an operation, by name; read once for each document. */
export type VariableBindings = ReadonlyMap<string, VariableBinding>;

export function readBindings(schema: GraphQLSchema, document: DocumentNode, operation: OperationDefinitionNode): VariableBindings {
  const { inputValues, requirements } = createUseReader(schema, document)(operation);
  const bindings = new Map<string, VariableBinding>();
  for (const { variable, type: typeNode, defaultValue } of operation.variableDefinitions ?? []) {
    const type = typeFromAST(schema, typeNode) as GraphQLInputType | undefined;
    const name = variable.name.value;
    if (!type) continue;
    const own = inputValues.get(name) ?? [];
    bindings.set(name, {
      type,
      isRequired: isNonNullType(type) && !defaultValue,
      defaultValue,
      inputValues: own,
      inputValue: own.at(-1) ?? null,
      requirements: requirements.filter((one) => name === (one.variable ?? one.condition?.variable)),
    });
  }
  return bindings;
}

/** How the variables of an operation are used, in its own fields and in the fragments that it uses. */
interface VariableUses {
  /** The input fields and arguments that take each variable, by its name. */
  readonly inputValues: ReadonlyMap<string, readonly InputValue[]>;
  readonly requirements: readonly Requirement[];
}

/** The same of an operation or a fragment alone, and the fragments that it uses. */
interface DefinitionUses extends VariableUses {
  readonly fragments: readonly FragmentDefinitionNode[];
}

/**
 * Creates a function that returns how an operation's variables are used. Each fragment is walked once, however many operations use
 * it.
 */
export function createUseReader(schema: GraphQLSchema, document: DocumentNode): (operation: OperationDefinitionNode) => VariableUses {
  const fragments = new Map<string, FragmentDefinitionNode>();
  for (const definition of document.definitions) {
    if (definition.kind === Kind.FRAGMENT_DEFINITION) fragments.set(definition.name.value, definition);
  }
  const known = new Map<DefinitionNode, DefinitionUses>();
  return (operation) => {
    const inputValues = new Map<string, InputValue[]>();
    const requirements: Requirement[] = [];
    const reached = new Set<OperationDefinitionNode | FragmentDefinitionNode>([operation]);
    // A definition that is added to the set while it is iterated comes later in the iteration.
    for (const definition of reached) {
      const uses = getOrInsert(known, definition, () => readUses(schema, definition, fragments));
      for (const [name, taking] of uses.inputValues) getOrInsert(inputValues, name, (): InputValue[] => []).push(...taking);
      requirements.push(...uses.requirements);
      for (const fragment of uses.fragments) reached.add(fragment);
    }
    return { inputValues, requirements };
  };
}

function readUses(
  schema: GraphQLSchema,
  definition: OperationDefinitionNode | FragmentDefinitionNode,
  fragments: ReadonlyMap<string, FragmentDefinitionNode>,
): DefinitionUses {
  const inputValues = new Map<string, InputValue[]>();
  const requirements: Requirement[] = [];
  const used = new Set<FragmentDefinitionNode>();
  /** The fields of input objects around the current value. */
  const path: string[] = [];
  const collect = (value: ValueNode, inputValue: InputValue | null | undefined) => {
    if (value.kind === Kind.VARIABLE && inputValue) getOrInsert(inputValues, value.name.value, (): InputValue[] => []).push(inputValue);
  };
  const types = new TypeInfo(schema);
  visit(
    definition,
    visitWithTypeInfo(types, {
      Argument: (node) => collect(node.value, types.getArgument()),
      ObjectField: {
        enter(node) {
          collect(node.value, inputFieldOf(types.getParentInputType(), node.name.value));
          path.push(node.name.value);
        },
        leave() {
          path.pop();
        },
      },
      ObjectValue(node) {
        requirements.push(...readRequirements(types.getInputType(), node, path));
      },
      FragmentSpread({ name }) {
        const fragment = fragments.get(name.value);
        if (fragment) used.add(fragment);
      },
    }),
  );
  return { inputValues, requirements, fragments: [...used] };
}

/** The requirements of an input object for fields that have no value, or that of a variable. `path` names the fields around it. */
export function readRequirements(
  type: GraphQLInputType | null | undefined,
  { fields }: ObjectValueNode,
  path: readonly string[] = [],
): Requirement[] {
  const named = getNamedType(type);
  if (!isInputObjectType(named)) return [];
  const find = (name: string) => fields.find((field) => field.name.value === name)?.value;
  return Object.values(named.getFields()).flatMap(({ name: field, extensions }) => {
    const { requiredFor } = extensions as FieldConstraints;
    const own = find(field);
    const other = requiredFor && find(requiredFor.field);
    const isGiven = own && own.kind !== Kind.NULL && own.kind !== Kind.VARIABLE;
    if (!other || isGiven) return [];
    const { value, message } = requiredFor;
    const isMet = other.kind === Kind.ENUM && other.value === value;
    if (!isMet && other.kind !== Kind.VARIABLE) return [];
    const condition = other.kind === Kind.VARIABLE ? { variable: other.name.value, value } : null;
    const variable = own?.kind === Kind.VARIABLE ? own.name.value : null;
    return [{ variable, condition, field, path: [...path, field], message }];
  });
}

export function inputFieldOf(parent: GraphQLInputType | null | undefined, name: string): GraphQLInputField | undefined {
  const type = getNamedType(parent);
  return isInputObjectType(type) ? type.getFields()[name] : undefined;
}
