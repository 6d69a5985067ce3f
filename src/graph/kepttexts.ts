import {
  type GraphQLInputType,
  type GraphQLNamedInputType,
  getNamedType,
  getNullableType,
  isInputObjectType,
  isListType,
  isScalarType,
  Kind,
  type ValueNode,
} from 'graphql';
import { exceedsDepth, MAX_JSON_DEPTH } from '../kernel/json/depth.ts';
import { findJsonPart, withExactText } from '../kernel/json/exact.ts';
import type { JsonPart } from '../kernel/json/read.ts';
import { stringifyJson } from '../kernel/json/text.ts';
import { getOrInsert } from '../kernel/map.ts';
import { exceedsBytesInAnySpelling } from '../kernel/size.ts';
import type { VariableBindings } from './bindings.ts';
import { countItems, MAX_LIST_ITEMS } from './variableerrors.ts';

/**
 * The values of variables, or of a body whose fields are named like them. A value of a JSON scalar keeps the text that was
 * sent if JavaScript would serialize it differently; elsewhere a number is what JavaScript parses. Only the text of such a value
 * is read, and not that of one which is too large or too deep for its scalar anyway.
 */
export function keepTexts(bindings: VariableBindings, values: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  let result: Record<string, unknown> | null = null;
  let items = 0;
  for (const [name, { type }] of bindings) {
    if (!keepsText(type) || !Object.hasOwn(values, name)) continue;
    const part = findJsonPart(values);
    items += countItems(type, values[name]);
    // The request is rejected.
    if (part === undefined || items > MAX_LIST_ITEMS) return values;
    result ??= { ...values };
    result[name] = keepTextsOf(type, values[name], part.member(name));
  }
  return result ?? values;
}

/**
 * Whether a value of each type of the schema may contain one whose text is kept: reading the exact form takes much longer than
 * parsing. The types around it, such as lists, are made for each document.
 */
const keptTypes = new Map<GraphQLNamedInputType, boolean>();

function keepsText(type: GraphQLInputType): boolean {
  const named = getNamedType(type);
  return getOrInsert(keptTypes, named, () => containsKept(named, new Set()));
}

function containsKept(type: GraphQLNamedInputType, visited: Set<GraphQLNamedInputType>): boolean {
  if (isScalarType(type)) return type.extensions.keptBytes !== undefined;
  if (!isInputObjectType(type) || visited.has(type)) return false;
  visited.add(type);
  return Object.values(type.getFields()).some((field) => containsKept(getNamedType(field.type), visited));
}

function keepTextsOf(type: GraphQLInputType, value: unknown, part: JsonPart | undefined): unknown {
  const nullable = getNullableType(type);
  if (isScalarType(nullable)) {
    const { keptBytes } = nullable.extensions as { keptBytes?: number };
    const isKept = keptBytes !== undefined && !exceedsDepth(value, MAX_JSON_DEPTH) && !exceedsBytesInAnySpelling(value, keptBytes);
    return isKept ? withExactText(value, part) : value;
  }
  if (!keepsText(nullable)) return value;
  if (isListType(nullable) && Array.isArray(value) && value.length <= MAX_LIST_ITEMS)
    return value.map((item, index) => keepTextsOf(nullable.ofType, item, part?.member(index)));
  if (!isInputObjectType(nullable) || typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  const result = { ...(value as Readonly<Record<string, unknown>>) };
  for (const [name, field] of Object.entries(nullable.getFields())) {
    if (Object.hasOwn(result, name)) result[name] = keepTextsOf(field.type, result[name], part?.member(name));
  }
  return result;
}

/** A literal of JSON as text, with its numbers as the document spells them. Undefined for an absent variable. */
export function literalText(node: ValueNode, variables: Readonly<Record<string, unknown>> | null | undefined): string | undefined {
  switch (node.kind) {
    case Kind.INT:
    case Kind.FLOAT:
      return node.value;
    case Kind.STRING:
    case Kind.BOOLEAN:
      return JSON.stringify(node.value);
    case Kind.NULL:
      return 'null';
    case Kind.VARIABLE: {
      const value = variables?.[node.name.value];
      return value === undefined ? undefined : stringifyJson(value);
    }
    case Kind.LIST:
      return `[${node.values.map((item) => literalText(item, variables) ?? 'null').join(',')}]`;
    case Kind.OBJECT: {
      const members = node.fields.map(({ name, value }) => [name.value, literalText(value, variables)] as const);
      const given = members.filter(([, text]) => text !== undefined);
      return `{${given.map(([name, text]) => `${JSON.stringify(name)}:${text}`).join(',')}}`;
    }
  }
}
