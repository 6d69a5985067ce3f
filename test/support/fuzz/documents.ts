import fc from 'fast-check';
import {
  type GraphQLArgument,
  type GraphQLField,
  type GraphQLObjectType,
  getNamedType,
  isLeafType,
  isNonNullType,
  isObjectType,
  isUnionType,
} from 'graphql';
import { schema } from '../../../src/schema.ts';
import { type IdsOf, inputOf, nastyTexts, type Value, writeJson, writeLiteral } from './values.ts';

/** A document with the values of its variables, as JSON text. */
export interface GraphqlRequest {
  readonly query: string;
  readonly variables: string;
  readonly operationName: string | null;
}

/** A part of a document, and the variables that stand in it. */
interface Piece {
  readonly text: string;
  readonly variables: ReadonlyArray<{ readonly type: string; readonly value: Value }>;
}

/** Where a variable stands: they are numbered once the document is whole. */
const HOLE = '$?';

type Field = GraphQLField<unknown, unknown>;

/** Documents of the schema, by its types; `idsOf` gives the ids that make sense at a place. */
export function documentsOf(idsOf: IdsOf): fc.Arbitrary<GraphqlRequest> {
  const roots = [schema.getQueryType(), schema.getMutationType()] as const;
  const operations = roots.flatMap((root) => {
    if (!root) return [];
    const kind = root === schema.getQueryType() ? 'query' : 'mutation';
    const field = fc.oneof(...Object.values(root.getFields()).map((part) => fieldOf(part, 4, idsOf)));
    const counted = fc.array(field, { minLength: 1, maxLength: kind === 'query' ? 2 : 1, size: 'max' });
    return [{ weight: 3, arbitrary: counted.chain((pieces) => operationOf(kind, join(pieces))) }];
  });
  const whole = fc.oneof(...operations, { weight: 1, arbitrary: introspection });
  return fc.oneof({ weight: 3, arbitrary: whole }, { weight: 1, arbitrary: whole.chain(spoil) });
}

const introspection: fc.Arbitrary<GraphqlRequest> = fc
  .constantFrom(
    '__typename',
    '__schema { types { name fields { name type { name kind ofType { name } } } } }',
    '__type(name: "Query") { fields { name } }',
    '__type(name: "x") { name }',
  )
  .map((text) => ({ query: `{ ${text} }`, variables: '{}', operationName: null }));

function operationOf(kind: string, { text, variables }: Piece): fc.Arbitrary<GraphqlRequest> {
  const declared = variables.map(({ type }, index) => `$v${index}: ${type}`).join(', ');
  const values = `{${variables.map(({ value }, index) => `"v${index}":${writeJson(value)}`).join(',')}}`;
  const [first, ...rest] = text.split(HOLE);
  const body = first + rest.map((part, index) => `$v${index}${part}`).join('');
  const named = fc.constantFrom(['', null], ['fuzz', null], ['fuzz', 'fuzz'], ['', null], ['fuzz', 'other']) as fc.Arbitrary<
    [string, string | null]
  >;
  return named.map(([name, operationName]) => ({
    query: `${kind} ${name}${declared && `(${declared})`} { ${body} }`,
    variables: values,
    operationName,
  }));
}

function join(pieces: readonly Piece[]): Piece {
  return { text: pieces.map(({ text }) => text).join(' '), variables: pieces.flatMap(({ variables }) => variables) };
}

function fieldOf(field: Field, depth: number, idsOf: IdsOf): fc.Arbitrary<Piece> {
  const type = getNamedType(field.type);
  const given = fc.tuple(...field.args.map((argument) => argumentOf(field.name, argument, idsOf)));
  const inner = isLeafType(type) ? fc.constant<Piece>({ text: '', variables: [] }) : selectionOf(type, depth - 1, idsOf);
  const decoration = fc.constantFrom<[alias: (name: string) => string, directive: string]>(
    [() => '', ''],
    [() => '', ''],
    [(name) => `${name}_again: `, ''],
    [() => '', ' @include(if: true)'],
    [() => '__proto__: ', ''],
  );
  return fc.tuple(given, inner, decoration).map(([args, body, [alias, directive]]) => {
    const parts = join(args);
    const list = args.map(({ text }) => text).filter(Boolean);
    const text = `${alias(field.name)}${field.name}${list.length ? `(${list.join(', ')})` : ''}${directive}${body.text}`;
    return { text, variables: [...parts.variables, ...body.variables] };
  });
}

/** An argument left out, written out, or given by a variable. */
function argumentOf(owner: string, { name, type, defaultValue }: GraphQLArgument, idsOf: IdsOf): fc.Arbitrary<Piece> {
  const isRequired = isNonNullType(type) && defaultValue === undefined;
  const present = fc.tuple(inputOf(type, `${owner}.${name}`, idsOf), fc.boolean()).map(([value, isVariable]): Piece => {
    if (!isVariable) return { text: `${name}: ${writeLiteral(value)}`, variables: [] };
    return { text: `${name}: ${HOLE}`, variables: [{ type: String(type), value }] };
  });
  return isRequired
    ? present
    : fc.oneof({ weight: 2, arbitrary: fc.constant<Piece>({ text: '', variables: [] }) }, { weight: 1, arbitrary: present });
}

/** Arbitraries of types that were met before, by their depth: the schema's graph has cycles. */
const known = new Map<string, fc.Arbitrary<Piece>>();

function selectionOf(type: unknown, depth: number, idsOf: IdsOf): fc.Arbitrary<Piece> {
  if (isUnionType(type)) return fc.constant({ text: ' { __typename }', variables: [] });
  if (!isObjectType(type)) throw new Error('the schema has a kind of type that is not known here');
  const key = `${type.name} ${depth}`;
  const arbitrary = known.get(key) ?? makeSelection(type, depth, idsOf);
  known.set(key, arbitrary);
  return arbitrary;
}

function makeSelection(type: GraphQLObjectType, depth: number, idsOf: IdsOf): fc.Arbitrary<Piece> {
  const fields = Object.values(type.getFields()).filter((field) => depth > 0 || isLeafType(getNamedType(field.type)));
  const parts = fields.map((field) => ({
    weight: isLeafType(getNamedType(field.type)) ? 1 : 2,
    arbitrary: fc.constant(null).chain(() => fieldOf(field, depth, idsOf)),
  }));
  const typename = { weight: 1, arbitrary: fc.constant<Piece>({ text: '__typename', variables: [] }) };
  const selected = fc.array(fc.oneof(...parts, typename), { minLength: 1, maxLength: 3, size: 'max' }).map(join);
  const wrapper = fc.constantFrom<(text: string) => string>(
    (text) => text,
    (text) => text,
    (text) => text,
    (text) => `... on ${type.name} { ${text} }`,
    (text) => `... @include(if: true) { ${text} }`,
  );
  return fc.tuple(selected, wrapper).map(([{ text, variables }, wrap]) => ({ text: ` { ${wrap(text)} }`, variables }));
}

/** What a broken client, or a hostile one, makes of a document. */
function spoil({ query, variables, operationName }: GraphqlRequest): fc.Arbitrary<GraphqlRequest> {
  const at = fc.nat({ max: query.length });
  const tokens = [
    '{',
    '}',
    '(',
    ')',
    '[',
    '...',
    '$',
    '@',
    '!',
    '"',
    '"""',
    '#',
    ':',
    '\u0000',
    '\ud800',
    '&',
    '|',
    'fragment A on Query { ...A }',
    'nope',
    ' 1e400 ',
    '$__proto__',
    'null',
    ...nastyTexts,
  ];
  const spoiled = fc.oneof(
    at.map((end) => query.slice(0, end)),
    at.map((start) => query.slice(start)),
    fc.tuple(at, at).map(([start, length]) => query.slice(0, start) + query.slice(start + (length % 10))),
    fc.tuple(at, fc.constantFrom(...tokens)).map(([start, token]) => query.slice(0, start) + token + query.slice(start)),
    fc.tuple(at, at).map(([start, end]) => query + query.slice(Math.min(start, end), Math.max(start, end))),
    fc.constant(query.replace(/\$\w+/g, '$same')),
    fc.constant(`${query} ${query}`),
    fc.constant(query.replace(/^(query|mutation)/, 'subscription')),
  );
  const values = fc.oneof(
    fc.constant(variables),
    fc.constant('{}'),
    fc.constant(variables.replaceAll('"', "'")),
    fc.constant('[]'),
    fc.constant('null'),
    fc.constant(`{"input":${variables}}`),
  );
  return fc.tuple(spoiled, values).map(([text, given]) => ({ query: text, variables: given, operationName }));
}
