import { type GraphQLInputType, getNullableType, isInputObjectType, isListType, isScalarType, Kind, type ValueNode } from 'graphql';
import { type Exact, exactMember, exactOf, keepText, toJsonText } from '../kernel/jsontext.ts';
import type { VariableBindings } from './variables.ts';

/**
 * The values of variables, or of a body that is named as they are: where they are JSON with the text that was sent, if JavaScript
 * would give that back otherwise. Anywhere else a number is what JavaScript reads.
 */
export function keepTexts(bindings: VariableBindings, values: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const exact = exactOf(values);
  if (exact === undefined) return values;
  const kept = { ...values };
  for (const [name, { type }] of bindings) {
    if (Object.hasOwn(values, name)) kept[name] = keep(type, values[name], exactMember(exact, name));
  }
  return kept;
}

function keep(type: GraphQLInputType, value: unknown, exact: Exact | undefined): unknown {
  const nullable = getNullableType(type);
  if (isScalarType(nullable)) return nullable.extensions.keepsText ? keepText(value, exact) : value;
  if (isListType(nullable) && Array.isArray(value))
    return value.map((item, index) => keep(nullable.ofType, item, exactMember(exact, index)));
  if (!isInputObjectType(nullable) || typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  const kept = { ...(value as Readonly<Record<string, unknown>>) };
  for (const [name, field] of Object.entries(nullable.getFields())) {
    if (Object.hasOwn(kept, name)) kept[name] = keep(field.type, kept[name], exactMember(exact, name));
  }
  return kept;
}

/** A literal as JSON text, with its numbers as the document spells them. Undefined for a variable that was left out. */
export function literalText(node: ValueNode, variables: Readonly<Record<string, unknown>> | null | undefined): string | undefined {
  switch (node.kind) {
    case Kind.INT:
    case Kind.FLOAT:
      return node.value;
    case Kind.STRING:
    case Kind.ENUM:
    case Kind.BOOLEAN:
      return JSON.stringify(node.value);
    case Kind.NULL:
      return 'null';
    case Kind.VARIABLE: {
      const value = variables?.[node.name.value];
      return value === undefined ? undefined : toJsonText(value);
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
