import {
  type GraphQLArgument,
  type GraphQLField,
  type GraphQLInputField,
  type GraphQLInputType,
  GraphQLNonNull,
  type GraphQLObjectType,
  type GraphQLOutputType,
  type GraphQLSchema,
  getNamedType,
  getNullableType,
  isAbstractType,
  isCompositeType,
  isEnumType,
  isInputObjectType,
  isInterfaceType,
  isLeafType,
  isListType,
  isNonNullType,
  isObjectType,
  isUnionType,
} from 'graphql';
import type { Random } from './random.ts';

/** A GraphQL request as a client would send it. */
export interface Drawn {
  readonly query: string;
  readonly operationName: string | null;
  readonly variables: Readonly<Record<string, unknown>>;
}

/** Names that every object inherits, that mean something in a result or to JavaScript, or that are literals of GraphQL. */
const hostileNames = [
  'constructor',
  '__proto__',
  'toString',
  'valueOf',
  'hasOwnProperty',
  'prototype',
  'then',
  'toJSON',
  'null',
  'true',
  'data',
  'errors',
];

const texts = ['a', '', 'é😀', '"\\', '\n', 'null', 'constructor'];
const uuid = '0190a0a0-0000-7000-8000-000000000001';

const scalars: Readonly<Record<string, readonly unknown[]>> = {
  Boolean: [true, false],
  Int: [0, 1, -1, 3, 2 ** 31 - 1],
  Float: [0, 1.5, -2e10],
  SafeInt: [0, 1, 2 ** 40],
  String: texts,
  Text: texts,
  Name: ['a', 'é😀', 'constructor'],
  ID: [uuid, 'x', ...texts, 7],
  UUID: [uuid],
  DateTime: ['2026-01-31T12:00:00.000Z', '2026-01-31T12:00:00+01:00'],
  JSON: [null, 1, 'x', [1, null], { a: { __proto__x: 1 } }],
  JSONObject: [{}, { constructor: 1 }],
};

type Field = GraphQLField<unknown, unknown>;
/** A value as a GraphQL literal and as JSON. */
interface Value {
  readonly literal: string;
  readonly json: unknown;
}
interface Declared {
  readonly name: string;
  readonly type: string;
  readonly head: string;
}

/** Draws a random document for a schema, nearly always a valid one, with the values of its variables. */
export function drawDocument(schema: GraphQLSchema, random: Random): Drawn {
  const isHostile = random.chance(0.3);
  const declared: Declared[] = [];
  const variables: Record<string, unknown> = {};
  const fragments: Array<{ name: string; type: string; text: string }> = [];
  /** The arguments already drawn for a field, by its alias and name. */
  const written = new Map<string, string>();
  const maybe = (probability: number, text: () => string) => (random.chance(probability) ? text() : '');

  function freshName(prefix: string, taken: ReadonlySet<string>): string {
    const name = isHostile && random.chance(0.5) ? random.pick(hostileNames) : `${prefix}${taken.size}`;
    return taken.has(name) || name === 'on' ? `${prefix}${taken.size}_` : name;
  }

  function drawVariable(type: GraphQLInputType, hasDefault: boolean): string {
    const nullable = getNullableType(type);
    const isLoose = isNonNullType(type) && random.chance(0.4);
    const spelled = isLoose ? String(nullable) : isNonNullType(type) || random.chance(0.8) ? String(type) : `${type}!`;
    const known = declared.filter((one) => one.type === spelled);
    if (known.length > 0 && random.chance(0.5)) return `$${random.pick(known).name}`;
    const name = freshName('v', new Set(declared.map((one) => one.name)));
    const needsDefault = isLoose && !hasDefault;
    const isNonNull = spelled.endsWith('!');
    const value = (mayBeNull: boolean) => drawValue(mayBeNull ? nullable : new GraphQLNonNull(nullable), false, 2);
    const initial = needsDefault || random.chance(0.3) ? ` = ${value(!isNonNull && !needsDefault).literal}` : '';
    declared.push({ name, type: spelled, head: `$${name}: ${spelled}${initial}` });
    const kind = random.below(10);
    const isGiven = kind < 6 || (isNonNull && !initial && random.chance(0.95));
    const json = isGiven ? value(!isNonNull && random.chance(0.2)).json : null;
    // An assignment to __proto__ would not create a property.
    if (isGiven || (kind < 8 && (!isNonNull || random.chance(0.2))))
      Object.defineProperty(variables, name, { value: json, enumerable: true });
    return `$${name}`;
  }

  function drawValue(type: GraphQLInputType, mayVary: boolean, depth: number): Value {
    if (!isNonNullType(type) && random.chance(0.12)) return { literal: 'null', json: null };
    if (mayVary && random.chance(0.35)) return { literal: drawVariable(type, false), json: null };
    const inner = getNullableType(type);
    if (isListType(inner)) {
      const items = Array.from({ length: random.below(3) }, () => drawValue(inner.ofType, mayVary, depth - 1));
      return { literal: `[${items.map(({ literal }) => literal).join(', ')}]`, json: items.map(({ json }) => json) };
    }
    if (isInputObjectType(inner)) {
      const fields = Object.values(inner.getFields()).filter(
        (field) => (isNonNullType(field.type) && field.defaultValue === undefined) || (depth > 0 && random.chance(0.4)),
      );
      const values = fields.map((field) => [field.name, drawValue(field.type, mayVary, depth - 1)] as const);
      return {
        literal: `{${values.map(([name, { literal }]) => `${name}: ${literal}`).join(', ')}}`,
        json: Object.fromEntries(values.map(([name, { json }]) => [name, json])),
      };
    }
    if (isEnumType(inner)) {
      const { name } = random.pick(inner.getValues());
      return { literal: name, json: name };
    }
    const json = random.pick(scalars[inner.name] ?? ['x']);
    return { literal: writeLiteral(json), json };
  }

  function drawArguments({ args }: Field): string {
    const given = args.flatMap((argument: GraphQLArgument | GraphQLInputField) => {
      const isRequired = isNonNullType(argument.type) && argument.defaultValue === undefined;
      if (!isRequired && random.chance(0.6)) return [];
      const text = random.chance(0.45)
        ? drawVariable(argument.type, argument.defaultValue !== undefined)
        : drawValue(argument.type, true, 2).literal;
      return [`${argument.name}: ${text}`];
    });
    return given.length > 0 ? `(${given.join(', ')})` : '';
  }

  function drawDirectives(): string {
    const one = (name: string) =>
      ` @${name}(if: ${random.chance(0.4) ? random.pick(['true', 'false']) : drawVariable(booleanOf(schema), false)})`;
    return maybe(0.12, () => one('skip')) + maybe(0.12, () => one('include'));
  }

  function drawField(field: Field, depth: number): string {
    const alias = random.chance(isHostile ? 0.35 : 0.15) ? `${isHostile ? aliasOf(field.name) : `${field.name}_again`}: ` : '';
    const head = `${alias}${field.name}`;
    // The arguments are mostly reused, so that equal fields can be merged.
    const args = written.get(head) ?? drawArguments(field);
    if (random.chance(0.95)) written.set(head, args);
    return `${head}${args}${drawDirectives()}${drawBody(field.type, depth)}`;
  }

  function drawBody(outputType: GraphQLOutputType, depth: number): string {
    const type = getNamedType(outputType);
    return isCompositeType(type) ? ` ${drawSelection(type.name, depth - 1)}` : '';
  }

  function drawSpread(typeName: string, depth: number): string {
    const type = schema.getType(typeName);
    const others = isAbstractType(type) ? schema.getPossibleTypes(type).map(({ name }) => name) : interfacesOf(type);
    const target = others.length > 0 && random.chance(0.7) ? random.pick(others) : typeName;
    if (random.chance(0.5)) {
      const condition = target === typeName && random.chance(0.4) ? '' : ` on ${target}`;
      return `...${condition}${drawDirectives()} ${drawSelection(target, depth - 1)}`;
    }
    const known = fragments.filter((fragment) => fragment.type === target && fragment.text !== '');
    if (known.length > 0 && random.chance(0.6)) return `...${random.pick(known).name}${drawDirectives()}`;
    const fragment = { name: freshName('F', new Set(fragments.map(({ name }) => name))), type: target, text: '' };
    fragments.push(fragment);
    fragment.text = drawSelection(target, depth - 1);
    return `...${fragment.name}${drawDirectives()}`;
  }

  function drawSelection(typeName: string, depth: number): string {
    const type = schema.getType(typeName);
    const fields: Field[] = isObjectType(type) || isInterfaceType(type) ? Object.values(type.getFields()) : [];
    const fitting = depth > 0 ? fields : fields.filter((field) => isLeafType(getNamedType(field.type)));
    const parts: string[] = [];
    const chosen: Field[] = [];
    for (let count = 1 + random.below(4); count > 0; count -= 1) {
      const kind = random.below(100);
      if (kind < 12 && parts.length > 0) parts.push(random.pick(parts));
      else if (kind < 20 && chosen.length > 0) {
        const { name, type: again, args } = random.pick(chosen);
        if (args.length === 0) parts.push(`${name}${drawDirectives()}${drawBody(again, depth)}`);
      } else if (kind < 38 && depth > 0) parts.push(drawSpread(typeName, depth));
      else if (kind < 44 || fitting.length === 0 || isUnionType(type))
        parts.push(`${maybe(0.3, () => `${aliasOf('__typename')}: `)}__typename${drawDirectives()}`);
      else {
        const field = random.pick(fitting);
        chosen.push(field);
        parts.push(drawField(field, depth));
      }
    }
    return `{ ${parts.length > 0 ? parts.join(' ') : '__typename'} }`;
  }

  const isMutation = random.chance(0.06);
  const root = (isMutation ? schema.getMutationType() : schema.getQueryType()) as GraphQLObjectType;
  const body = drawSelection(root.name, isMutation ? 4 : 5);
  const name = random.chance(0.6) ? freshName('Q', new Set()) : '';
  const head = declared.length > 0 ? `(${declared.map((one) => one.head).join(', ')})` : '';
  const others = name !== '' && random.chance(0.1) ? ' query Other { __typename }' : '';
  const definitions = fragments.map((fragment) => ` fragment ${fragment.name} on ${fragment.type} ${fragment.text}`).join('');
  return {
    query: `${isMutation ? 'mutation' : 'query'} ${name}${head} ${body}${others}${definitions}`,
    operationName: name !== '' && (others !== '' || random.chance(0.5)) ? name : null,
    variables,
  };
}

/** A hostile alias that is always the same for a field, so that two occurrences can be merged. */
function aliasOf(name: string): string {
  const sum = [...name].reduce((total, letter) => total + letter.charCodeAt(0), 0);
  return hostileNames[sum % hostileNames.length] ?? 'x';
}

function interfacesOf(type: unknown): string[] {
  return isObjectType(type) || isInterfaceType(type) ? type.getInterfaces().map(({ name }) => name) : [];
}

function booleanOf(schema: GraphQLSchema): GraphQLInputType {
  const argument = schema.getDirective('skip')?.args[0];
  if (!argument) throw new Error('the schema has no @skip');
  return argument.type;
}

function writeLiteral(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(writeLiteral).join(', ')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  return `{${Object.entries(value)
    .map(([name, part]) => `${name}: ${writeLiteral(part)}`)
    .join(', ')}}`;
}
