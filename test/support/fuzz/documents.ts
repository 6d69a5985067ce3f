import fc from 'fast-check';
import {
  type GraphQLArgument,
  type GraphQLField,
  type GraphQLObjectType,
  getNamedType,
  isAbstractType,
  isLeafType,
  isNonNullType,
  isObjectType,
} from 'graphql';
import { schema } from '../../../src/schema.ts';
import { mixOf, nastyTexts, type Value, type Values, writeJson, writeLiteral } from './values.ts';

/** A document with the values of its variables, as JSON text. */
export interface GraphqlRequest {
  readonly query: string;
  readonly variables: string;
  readonly operationName: string | null;
}

/** A part of a document, and the variables used in it. */
interface Piece {
  readonly text: string;
  readonly variables: ReadonlyArray<{ readonly type: string; readonly value: Value }>;
}

/** A placeholder for a variable; variables are numbered once the document is complete. */
const PLACEHOLDER = '$?';

type Field = GraphQLField<unknown, unknown>;

/** Documents for the schema: valid ones and, in proportion to `wildness`, corrupted ones. */
export function documentsOf(values: Values, wildness: number): fc.Arbitrary<GraphqlRequest> {
  const write = makeWriter(values);
  const roots = [schema.getQueryType(), schema.getMutationType()];
  const operations = roots.flatMap((root, index) => {
    const fields = Object.values(root?.getFields() ?? {}).map((field) => write(field, 4));
    const chosen = fc.array(fc.oneof(...fields), { minLength: 1, maxLength: index === 0 ? 2 : 1, size: 'max' });
    return { weight: 3, arbitrary: chosen.chain((pieces) => operationOf(index === 0 ? 'query' : 'mutation', join(pieces))) };
  });
  const whole = fc.oneof(...operations, { weight: 1, arbitrary: introspection });
  return mixOf(wildness)(whole, 50, whole.chain(spoil));
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
  const [first, ...rest] = text.split(PLACEHOLDER);
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

/** Returns a function that writes a field with its selection, down to a depth. */
function makeWriter(values: Values): (field: Field, depth: number) => fc.Arbitrary<Piece> {
  /** Selections already made, by type and depth, because the type graph has cycles. */
  const known = new Map<string, fc.Arbitrary<Piece>>();

  function writeField(field: Field, depth: number): fc.Arbitrary<Piece> {
    const type = getNamedType(field.type);
    const given = fc.tuple(...field.args.map((argument) => writeArgument(field.name, argument)));
    const inner = isLeafType(type) ? fc.constant<Piece>({ text: '', variables: [] }) : writeSelection(type, depth - 1);
    return fc.tuple(given, inner, fc.constantFrom(...decorations)).map(([args, body, { alias, directive }]) => {
      const list = args.map(({ text }) => text).filter(Boolean);
      const text = `${alias(field.name)}${field.name}${list.length ? `(${list.join(', ')})` : ''}${directive}${body.text}`;
      return { text, variables: [...join(args).variables, ...body.variables] };
    });
  }

  /** Omits the argument, or writes it as a literal or a variable. */
  function writeArgument(owner: string, { name, type, defaultValue }: GraphQLArgument): fc.Arbitrary<Piece> {
    const present = fc.tuple(values.input(type, `${owner}.${name}`), fc.boolean()).map(([value, isVariable]): Piece => {
      if (!isVariable) return { text: `${name}: ${writeLiteral(value)}`, variables: [] };
      return { text: `${name}: ${PLACEHOLDER}`, variables: [{ type: String(type), value }] };
    });
    if (isNonNullType(type) && defaultValue === undefined) return present;
    return fc.oneof({ weight: 2, arbitrary: fc.constant<Piece>({ text: '', variables: [] }) }, { weight: 1, arbitrary: present });
  }

  function writeSelection(type: unknown, depth: number): fc.Arbitrary<Piece> {
    if (isAbstractType(type)) return fc.constant({ text: ' { __typename }', variables: [] });
    if (!isObjectType(type)) throw new Error('the schema has a kind of type that is not known here');
    const place = `${type.name} ${depth}`;
    const arbitrary = known.get(place) ?? makeSelection(type, depth);
    known.set(place, arbitrary);
    return arbitrary;
  }

  function makeSelection(type: GraphQLObjectType, depth: number): fc.Arbitrary<Piece> {
    const isLeaf = (field: Field) => isLeafType(getNamedType(field.type));
    const fields = Object.values(type.getFields()).filter((field) => depth > 0 || isLeaf(field));
    const parts = fields.map((field) => ({ weight: isLeaf(field) ? 1 : 2, arbitrary: writeField(field, depth) }));
    const typename = { weight: 1, arbitrary: fc.constant<Piece>({ text: '__typename', variables: [] }) };
    const selected = fc.array(fc.oneof(...parts, typename), { minLength: 1, maxLength: 3, size: 'max' }).map(join);
    const wrapper = fc.constantFrom('', '', '', '', `... on ${type.name}`, '... @include(if: true)');
    return fc
      .tuple(selected, wrapper)
      .map(([{ text, variables }, wrap]) => ({ text: wrap ? ` { ${wrap} { ${text} } }` : ` { ${text} }`, variables }));
  }

  return writeField;
}

const plain = { alias: (_name: string) => '', directive: '' };
const decorations = [
  ...Array<typeof plain>(5).fill(plain),
  { ...plain, directive: ' @include(if: true)' },
  { ...plain, alias: (name: string) => `${name}_again: ` },
  { ...plain, alias: () => '__proto__: ' },
];

/** Corrupts a document as a broken or hostile client would. */
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
  const literals = [
    '['.repeat(3_000),
    '{a:'.repeat(900),
    `${'['.repeat(600)}${']'.repeat(600)}`,
    '2147483648',
    '1.5',
    '"\\u0000"',
    '"\\ufeff"',
    '{}',
    '[]',
    '[null]',
    'true',
  ];
  const spoiled = fc.oneof(
    at.map((end) => query.slice(0, end)),
    at.map((start) => query.slice(start)),
    fc.tuple(at, at).map(([start, length]) => query.slice(0, start) + query.slice(start + (length % 10))),
    fc.tuple(at, fc.constantFrom(...tokens)).map(([start, token]) => query.slice(0, start) + token + query.slice(start)),
    fc.tuple(at, at).map(([start, end]) => query + query.slice(Math.min(start, end), Math.max(start, end))),
    fc
      .tuple(at, fc.constantFrom(...tokens, ...literals))
      .map(([start, token]) => query.slice(0, start) + query.slice(start).replace(/: *("[^"]*"|-?[\w.]+|\$\w+)/, () => `: ${token}`)),
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
