import {
  coerceInputValue,
  type DefinitionNode,
  type DocumentNode,
  type FragmentDefinitionNode,
  type GraphQLArgument,
  type GraphQLError,
  type GraphQLInputField,
  type GraphQLInputType,
  type GraphQLSchema,
  getNamedType,
  getNullableType,
  isEnumType,
  isInputObjectType,
  isListType,
  isNonNullType,
  isScalarType,
  Kind,
  type OperationDefinitionNode,
  TypeInfo,
  typeFromAST,
  type ValueNode,
  visit,
  visitWithTypeInfo,
} from 'graphql';
import type { FieldErrors } from '../kernel/fault.ts';
import { getOrInsert } from '../kernel/map.ts';
import { lengthProblem } from '../kernel/text.ts';

/** The constraints that an input field or argument declares in its `extensions`, beyond its type. */
export interface FieldConstraints {
  readonly maxItems?: number;
  /** In code points, for a text whose scalar allows more. */
  readonly maxLength?: number;
  readonly minimum?: number;
  /** For the cursor of a list; whether it is one of this list is known when the list is read. */
  readonly isCursor?: boolean;
  /** For a field that may be absent, but not null. */
  readonly rejectsNull?: boolean;
  /** The value of another field that makes this one required, and the message for a request without it. */
  readonly requiredFor?: { readonly field: string; readonly value: string; readonly message: string };
}

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

/** What takes a value in the schema, as `__InputValue` of an introspection. */
export type InputValue = GraphQLInputField | GraphQLArgument;

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

/** The message for a cursor that is malformed, or of another list. */
export const NOT_A_CURSOR = 'Not a valid cursor.';

/**
 * The most characters of a cursor. That of a name of 255 characters of four bytes has some 1,400; and a document may have thousands
 * of lists that each decode the same variable.
 */
const MAX_CURSOR_LENGTH = 2_000;

/** The most messages that a request is answered with: a list may have hundreds of thousands of items. */
const MAX_MESSAGES = 1_000;

/** The most items of all lists among the variables of a request. A list that is part of a JSON literal has no limit of its own. */
export const MAX_LIST_ITEMS = 1_000;

/** The number of items in a list and in the lists that are its items. */
export function countItems(type: GraphQLInputType, value: unknown): number {
  const nullable = getNullableType(type);
  if (!isListType(nullable) || !Array.isArray(value)) return 0;
  let count = value.length;
  if (isListType(getNullableType(nullable.ofType))) for (const item of value) count += countItems(nullable.ofType, item);
  return count;
}

/** Thrown to end the search for further errors. */
const enoughErrors = new Error('enough errors are known');

/**
 * The errors of the variables of a request, by field, up to `MAX_MESSAGES`; null if there are none. The errors of an input object
 * are reported by the names of its fields, those of any other variable by its own name. No message names a GraphQL type (§7.4).
 */
export function variableErrors(bindings: VariableBindings, values: Readonly<Record<string, unknown>>): FieldErrors | null {
  const found = new Map<string, Set<string>>();
  let count = 0;
  const report = (path: Path, message: string) => {
    const [field, ...rest] = path.filter((part) => typeof part === 'string');
    const item = path.find((part) => typeof part === 'number');
    const name = [field ?? 'input', ...rest].join('.');
    getOrInsert(found, name, () => new Set<string>()).add(item === undefined ? message : `Item ${item + 1}: ${message}`);
    count += 1;
    if (count >= MAX_MESSAGES) throw enoughErrors;
  };
  try {
    reportErrors(bindings, values, report);
  } catch (failure) {
    if (failure !== enoughErrors) throw failure;
  }
  if (found.size === 0) return null;
  // Without a prototype, so that `__proto__` is an ordinary field name.
  const errors: Record<string, string[]> = Object.create(null);
  for (const [name, messages] of found) errors[name] = [...messages];
  return errors;
}

function reportErrors(bindings: VariableBindings, values: Readonly<Record<string, unknown>>, report: Report): void {
  const readValue = (name: string) => (Object.hasOwn(values, name) ? values[name] : undefined);
  let items = 0;
  for (const [name, { type, isRequired, isNullByDefault, inputValues, requirements }] of bindings) {
    const given = readValue(name);
    const value = given === undefined && isNullByDefault ? null : given;
    if (!findConstraintError(inputValues, value)) items += countItems(type, value);
    if (items > MAX_LIST_ITEMS) return report([name], `Ensure this field has no more than ${MAX_LIST_ITEMS} items.`);
    const requirement = requirements.find((one) => readValue(one.variable) === one.value)?.message;
    const hasFields = isInputObjectType(getNullableType(type)) && typeof value === 'object' && value !== null && !Array.isArray(value);
    checkGiven({ type, isRequired, inputValues, requirement, value }, [name], report, hasFields ? [] : [name]);
  }
}

/** A variable, or a field of an input object, with its value; undefined if it is absent. */
interface Given extends Pick<VariableBinding, 'type' | 'isRequired' | 'inputValues'> {
  readonly value: unknown;
  /** The message for a request without it, if another value requires it. */
  readonly requirement: string | undefined;
}

/** Reports the errors of the value itself below `prefix`. */
function checkGiven({ type, isRequired, inputValues, requirement, value }: Given, path: Path, report: Report, prefix = path): void {
  const isMissing = value === undefined || value === null;
  if (isMissing && requirement) return report(path, requirement);
  if (value === undefined) return isRequired ? report(path, 'This field is required.') : undefined;
  const constraint = findConstraintError(inputValues, value);
  if (constraint) report(prefix, constraint);
  else checkValue(type, value, prefix, report);
}

type Path = ReadonlyArray<string | number>;
type Report = (path: Path, message: string) => void;

function checkValue(type: GraphQLInputType, value: unknown, prefix: Path, report: Report): void {
  const nullable = getNullableType(type);
  if (isNonNullType(type) && value === null) return report(prefix, 'This field may not be null.');
  if (isListType(nullable) && value !== null && !Array.isArray(value)) return report(prefix, 'Expected a list of items.');
  if (isListType(nullable) && isInputObjectType(getNullableType(nullable.ofType)) && Array.isArray(value)) {
    for (const [index, item] of value.entries()) checkValue(nullable.ofType, item, [...prefix, index], report);
    return;
  }
  if (isInputObjectType(nullable) && value !== null) {
    if (typeof value !== 'object' || Array.isArray(value)) return report(prefix, 'Must be an object.');
    return checkObject(nullable.getFields(), value as Record<string, unknown>, prefix, report);
  }
  const reportInvalid = (path: Path, invalid: unknown, error: GraphQLError) =>
    report([...prefix, ...path], explainInvalid(type, path, invalid, error));
  // Suggestions take long for long values, and are not shown.
  coerceInputValue(value, type, reportInvalid, true);
}

/** Checks each field, so that no single value is coerced to a list and every declared constraint is checked. */
function checkObject(fields: Readonly<Record<string, GraphQLInputField>>, value: Record<string, unknown>, prefix: Path, report: Report) {
  for (const name of Object.keys(value)) {
    if (!Object.hasOwn(fields, name)) report([...prefix, name], 'Unknown field.');
  }
  for (const [name, field] of Object.entries(fields)) {
    const { requiredFor } = field.extensions as FieldConstraints;
    const requirement = requiredFor && value[requiredFor.field] === requiredFor.value ? requiredFor.message : undefined;
    const isRequired = isNonNullType(field.type) && field.defaultValue === undefined;
    const part = Object.hasOwn(value, name) ? value[name] : undefined;
    checkGiven({ type: field.type, isRequired, inputValues: [field], requirement, value: part }, [...prefix, name], report);
  }
}

/** The first violation among the constraints of what takes a value; null if there is none. */
export function findConstraintError(inputValues: readonly InputValue[], value: unknown): string | null {
  for (const inputValue of inputValues) {
    const problem = constraintError(inputValue, value);
    if (problem) return problem;
  }
  return null;
}

function constraintError({ type, extensions }: InputValue, value: unknown): string | null {
  const { maxItems, maxLength, minimum, isCursor, rejectsNull } = extensions as FieldConstraints;
  // A nullable variable may stand where null is not allowed, if there is a default.
  if ((rejectsNull || isNonNullType(type)) && value === null) return 'This field may not be null.';
  if (minimum !== undefined && typeof value === 'number' && value < minimum)
    return `Ensure this value is greater than or equal to ${minimum}.`;
  if (isCursor && typeof value === 'string' && !isCursorText(value)) return NOT_A_CURSOR;
  if (maxLength !== undefined && typeof value === 'string') return lengthProblem(value, maxLength);
  if (maxItems !== undefined && Array.isArray(value) && value.length > maxItems)
    return `Ensure this field has no more than ${maxItems} items.`;
  return null;
}

/** Whether a text may be a cursor: it is what its bytes are written as, without padding. */
function isCursorText(text: string): boolean {
  return text !== '' && text.length <= MAX_CURSOR_LENGTH && Buffer.from(text, 'base64url').toString('base64url') === text;
}

function explainInvalid(type: GraphQLInputType, path: Path, invalid: unknown, error: GraphQLError): string {
  if (error.extensions.code === 'validation_failed') return error.message;
  if (invalid === null || invalid === undefined) return 'This field may not be null.';
  const leaf = path.reduce<GraphQLInputType>((at) => (isListType(at) ? getNullableType(at.ofType) : at), getNullableType(type));
  if (isEnumType(leaf))
    // A longer value is not repeated: it may be a misplaced credential.
    return typeof invalid === 'string' && invalid.length <= 40 ? `"${invalid}" is not a valid choice.` : 'Not a valid choice.';
  if (!isScalarType(leaf)) return 'Not a valid value.';
  return scalarMessages[leaf.name] ?? 'Not a valid value.';
}

const scalarMessages: Readonly<Record<string, string>> = {
  Boolean: 'Must be a valid boolean.',
  Int: 'A valid integer is required.',
  Float: 'A valid number is required.',
  String: 'Not a valid string.',
  ID: 'Not a valid id.',
};
