import { createHash } from 'node:crypto';
import {
  extendSchema,
  type GraphQLObjectType,
  type GraphQLOutputType,
  type GraphQLResolveInfo,
  type GraphQLSchema,
  getNamedType,
  isAbstractType,
  isEnumType,
  isLeafType,
  isListType,
  isNonNullType,
  isObjectType,
  parse,
} from 'graphql';
import { Fault } from '../../src/kernel/fault.ts';

/** Kinds of types and arguments that Portico's own schema does not have, or not yet. */
const additions = parse(`
  interface Probe { id: ID! key: String at(moment: DateTime, text: Text = "x"): String! peers(first: Int = 2): [Probe!]! }
  type ProbeA implements Probe { id: ID! key: String at(moment: DateTime, text: Text = "x"): String! peers(first: Int = 2): [Probe!]! only: Int! }
  type ProbeB implements Probe { id: ID! key: String at(moment: DateTime, text: Text = "x"): String! peers(first: Int = 2): [Probe!]! lists: [[Int!]!] }
  union ProbeEither = ProbeA | ProbeB | Dashboard
  input ProbeInput { a: Int = 1 b: String c: [Severity!] d: ProbeInput e: JSON required: Boolean! = false moment: DateTime }
  extend type Query {
    probe(input: ProbeInput = { a: 3 }, list: [Int], matrix: [[ID!]], json: JSON, flag: Boolean! = true, size: Int! = 4): Probe
    either(severity: Severity = info): [ProbeEither]
    must(id: ID!): ProbeB!
  }
`);

/**
 * Copies a schema with resolvers whose result depends only on the path and the arguments: a value, a promise of one, null,
 * or a rejection. Every text in a result contains the serialized arguments.
 */
export function makeProbe(schema: GraphQLSchema): GraphQLSchema {
  const probe = extendSchema(schema, additions);
  for (const type of Object.values(probe.getTypeMap())) {
    if (isAbstractType(type)) type.resolveType = (value) => (value as { type: string }).type;
    if (!isObjectType(type) || type.name.startsWith('__')) continue;
    for (const field of Object.values(type.getFields())) field.resolve = (_source, args, _context, info) => answer(probe, args, info);
  }
  return probe;
}

function answer(schema: GraphQLSchema, args: unknown, info: GraphQLResolveInfo): unknown {
  const path = writePath(info.path);
  const place = `${path}(${serialize(args)})`;
  const dice = createHash('sha1').update(place).digest();
  const kind = dice[0] ?? 0;
  if (kind < 16) return Promise.reject(Fault.invalidRequest(`refused at ${place}`));
  const value = kind < 28 ? null : makeValue(schema, info.returnType, place, dice, 1);
  // In lists nothing fails synchronously: graphql-js would then leave later rejections of other items unhandled.
  const isInList = /\/\d/.test(path);
  return kind < 150 && !isInList ? value : Promise.resolve(value);
}

function makeValue(schema: GraphQLSchema, type: GraphQLOutputType, place: string, dice: Buffer, at: number): unknown {
  const roll = dice[at % 20] ?? 0;
  if (isNonNullType(type)) return makeValue(schema, type.ofType, place, dice, at);
  if (isListType(type)) {
    const mayLack = !isNonNullType(type.ofType) || isLeafType(getNamedType(type.ofType));
    return Array.from({ length: roll % 4 }, (_, index) =>
      mayLack && (dice[(at + index + 1) % 20] ?? 0) < 8 ? null : makeValue(schema, type.ofType, place, dice, at + index + 1),
    );
  }
  if (isEnumType(type)) return type.getValues()[roll % type.getValues().length]?.value;
  if (isObjectType(type)) return { type: type.name };
  if (isAbstractType(type)) return { type: (schema.getPossibleTypes(type)[(dice[19] ?? 0) % 2] as GraphQLObjectType).name };
  const { name } = type;
  if (name === 'Boolean') return roll % 2 === 0;
  // Some of the numbers are not valid for Int.
  if (name === 'Int' || name === 'SafeInt' || name === 'Float') return roll < 6 ? 1.5 : roll;
  if (name === 'DateTime') return new Date(1_700_000_000_000 + roll);
  if (name === 'JSON' || name === 'JSONObject') return { place, roll };
  return place;
}

/** Serializes a value so that an omitted field, null and undefined differ, and so do a Date and its text. */
function serialize(value: unknown): string {
  if (value instanceof Date) return `Date ${value.toISOString()}`;
  if (Array.isArray(value)) return `[${value.map(serialize).join(',')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'undefined';
  return `{${Object.entries(value)
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([name, part]) => `${name}:${serialize(part)}`)
    .join(',')}}`;
}

function writePath(path: GraphQLResolveInfo['path'] | undefined): string {
  return path ? `${writePath(path.prev)}/${path.key}` : '';
}
