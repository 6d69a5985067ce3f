import {
  coerceInputValue,
  type GraphQLError,
  type GraphQLInputField,
  type GraphQLInputType,
  getNullableType,
  isEnumType,
  isInputObjectType,
  isListType,
  isNonNullType,
  isScalarType,
  Kind,
} from 'graphql';
import type { FieldErrors } from '../kernel/fault.ts';
import { getOrInsert } from '../kernel/map.ts';
import type { Requirement, VariableBinding, VariableBindings } from './bindings.ts';
import { type FieldConstraints, findConstraintError } from './constraints.ts';

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
  const applies = ({ condition }: Requirement) => {
    if (!condition) return true;
    const given = readValue(condition.variable);
    if (given !== undefined) return given === condition.value;
    const defaultValue = bindings.get(condition.variable)?.defaultValue;
    return defaultValue?.kind === Kind.ENUM && defaultValue.value === condition.value;
  };
  let items = 0;
  for (const [name, { type, isRequired, defaultValue, inputValues, requirements }] of bindings) {
    const given = readValue(name);
    const value = given === undefined && defaultValue?.kind === Kind.NULL ? null : given;
    if (!findConstraintError(inputValues, value)) items += countItems(type, value);
    if (items > MAX_LIST_ITEMS) return report([name], `Ensure this field has no more than ${MAX_LIST_ITEMS} items.`);
    for (const one of requirements) if (one.variable === null && applies(one)) report(one.path, one.message);
    const hasDefault = value === undefined && defaultValue !== undefined;
    const requirement = hasDefault ? undefined : requirements.find((one) => one.variable === name && applies(one))?.message;
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
