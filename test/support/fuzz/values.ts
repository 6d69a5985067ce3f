import fc from 'fast-check';
import { type GraphQLInputType, getNullableType, isEnumType, isInputObjectType, isListType, isNonNullType } from 'graphql';

/** A value that JSON and GraphQL can express even if JavaScript cannot represent it: 1e400, a duplicate key. */
export type Value =
  | null
  | boolean
  | string
  | { readonly number: string }
  | { readonly choice: string }
  | { readonly depth: number }
  | readonly Value[]
  | { readonly fields: ReadonlyArray<readonly [string, Value]> };

export function writeJson(value: Value): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  if (isList(value)) return `[${value.map(writeJson).join(',')}]`;
  if ('number' in value) return value.number;
  if ('choice' in value) return JSON.stringify(value.choice);
  if ('depth' in value) return '['.repeat(value.depth) + ']'.repeat(value.depth);
  return `{${value.fields.map(([name, part]) => `${JSON.stringify(name)}:${writeJson(part)}`).join(',')}}`;
}

export function writeLiteral(value: Value): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  if (isList(value)) return `[${value.map(writeLiteral).join(', ')}]`;
  if ('number' in value) return value.number;
  if ('choice' in value) return value.choice;
  if ('depth' in value) return '['.repeat(value.depth) + ']'.repeat(value.depth);
  return `{${value.fields.map(([name, part]) => `${name}: ${writeLiteral(part)}`).join(', ')}}`;
}

function isList(value: object): value is readonly Value[] {
  return Array.isArray(value);
}

export const nastyTexts = [
  '',
  ' ',
  '\u0000',
  'a\u0000b',
  '\ud800',
  '\udc00x',
  '\ufeff',
  '\u202e',
  '😀'.repeat(255),
  '😀'.repeat(256),
  'a'.repeat(256),
  'é'.repeat(5_000),
  '__proto__',
  'constructor',
  'null',
  'undefined',
  "'; DROP TABLE users; --",
  '%00',
  '%',
  '_',
  '\\',
  '../../etc/passwd',
  '{{7*7}}<script>',
  '$1',
  '{',
  '1e400',
  'NaN',
  'true',
  'sk-portico-0',
];

export const nastyNumbers = [
  '0',
  '-0',
  '1',
  '-1',
  '1.5',
  '1e400',
  '-1e400',
  '1e-400',
  '2147483647',
  '2147483648',
  '-2147483649',
  '9007199254740993',
  '9'.repeat(400),
  '1E2',
  '100',
  '101',
];

export const text: fc.Arbitrary<string> = fc.oneof(
  { weight: 3, arbitrary: fc.string({ unit: 'grapheme', maxLength: 20 }) },
  { weight: 1, arbitrary: fc.string({ unit: 'binary', maxLength: 20 }) },
  { weight: 2, arbitrary: fc.constantFrom(...nastyTexts) },
  {
    weight: 4,
    arbitrary: fc
      .tuple(
        fc.constantFrom('', 'a'),
        fc.constantFrom('\0', '\ud800', '\udc00', '\ufeff', '\u0001', '\uffff', '\n'),
        fc.constantFrom('', 'b'),
      )
      .map((parts) => parts.join('')),
  },
);

const plainText = fc.string({ unit: 'grapheme', maxLength: 19 }).map((rest) => `a${rest}`);
const plainKey = fc.stringMatching(/^[a-z_][a-zA-Z0-9_]{0,8}$/);
const plainNumber = fc.integer().map((value): Value => ({ number: String(value) }));
const double = fc.double({ noNaN: true, noDefaultInfinity: true }).map(String);
const number = fc.oneof(fc.constantFrom(...nastyNumbers), double).map((written): Value => ({ number: written }));
const key = fc.oneof({ weight: 3, arbitrary: plainKey }, { weight: 1, arbitrary: fc.constantFrom(...nastyTexts, '0', '10', '2') });
const depths = fc.constantFrom<Value>({ depth: 400 }, { depth: 501 }, { depth: 503 }, { depth: 5_000 });

/** Arbitrary JSON, mostly small. */
export const anything = jsonOf(fc.oneof(plainNumber, number, text, depths), key);
const plainJson = jsonOf(fc.oneof(plainNumber, plainText), plainKey);

function jsonOf(leaf: fc.Arbitrary<Value>, name: fc.Arbitrary<string>): fc.Arbitrary<Value> {
  return fc.letrec<{ value: Value }>((tie) => ({
    value: fc.oneof(
      { maxDepth: 3, depthSize: 'small' },
      fc.constantFrom<Value>(null, true, false, []),
      leaf,
      fc.array(tie('value'), { maxLength: 4 }),
      objectOf(name, tie('value')),
    ),
  })).value;
}

function objectOf(name: fc.Arbitrary<string>, value: fc.Arbitrary<Value>) {
  return fc.uniqueArray(fc.tuple(name, value), { maxLength: 4, selector: ([given]) => given }).map((fields): Value => ({ fields }));
}

/** The plausible ids for a place such as `project.id` or `UpdateDashboardInput.id`. */
export type IdsOf = (place: string) => readonly string[];

interface Declared {
  readonly name: string;
  readonly type: GraphQLInputType;
}

/** Generators of values by declared type. */
export interface Values {
  id(place: string): fc.Arbitrary<string>;
  input(type: GraphQLInputType, place: string): fc.Arbitrary<Value>;
  /** Declared fields, each present or absent, and perhaps undeclared ones. */
  fields(declared: readonly Declared[], owner: string): fc.Arbitrary<{ readonly fields: ReadonlyArray<readonly [string, Value]> }>;
}

/** Mixes `fitting` with `other`, which is drawn in `percent` of the cases at wildness 1 and proportionally less below. */
export function mixOf(wildness: number) {
  const weigh = (percent: number) => Math.round(percent * wildness * 10);
  return <Fit, Other>(fitting: fc.Arbitrary<Fit>, percent: number, other: fc.Arbitrary<Other>): fc.Arbitrary<Fit | Other> =>
    fc.oneof({ weight: 1_000 - weigh(percent), arbitrary: fitting }, { weight: weigh(percent), arbitrary: other });
}

/** Values that mostly fit their types; with more wildness they more often almost fit, or are arbitrary. */
export function makeValues(idsOf: IdsOf, wildness: number): Values {
  const mostly = mixOf(wildness);
  const id = (place: string) => {
    const known = fc.constantFrom(...idsOf(place));
    return mostly(
      known,
      20,
      fc.oneof(
        fc.tuple(known, fc.constantFrom(...spellings)).map(([found, spell]) => spell(found)),
        fc.uuid(),
        text,
      ),
    );
  };
  const texts = mostly(plainText, 40, text);
  const scalars: Readonly<Record<string, (place: string) => fc.Arbitrary<Value>>> = {
    ID: id,
    UUID: id,
    Int: () =>
      mostly(
        fc.integer({ min: 1, max: 8 }).map((value): Value => ({ number: String(value) })),
        20,
        number,
      ),
    Boolean: () => fc.boolean(),
    String: () => texts,
    Text: () => texts,
    IdempotencyKey: () => mostly(fc.oneof({ weight: 4, arbitrary: fc.uuid() }, { weight: 1, arbitrary: repeatedKeys }), 40, text),
    Name: () => texts,
    JSON: () => mostly(plainJson, 50, anything),
    JSONObject: () => mostly(objectOf(plainKey, plainJson), 50, objectOf(key, anything)),
    DateTime: () => mostly(fc.constantFrom('2099-01-01T00:00:00Z', '2098-02-28T12:00:00.5+02:00'), 50, fc.constantFrom(...nastyMoments)),
  };

  function fitting(type: GraphQLInputType, place: string): fc.Arbitrary<Value> {
    const inner = getNullableType(type);
    if (isListType(inner)) {
      const many = fc
        .tuple(fc.constantFrom(199, 200, 201), fc.constantFrom(...idsOf(place)))
        .map(([length, one]) => Array<Value>(length).fill(one));
      return mostly(fc.array(input(inner.ofType, place), { maxLength: 5 }), 10, many);
    }
    if (isEnumType(inner)) {
      const names = inner.getValues().map((value) => value.name);
      return mostly(fc.constantFrom(...names), 8, fc.constantFrom('nothing', '__proto__', String(names[0]).toUpperCase())).map(
        (choice) => ({ choice }),
      );
    }
    if (isInputObjectType(inner)) return fields(Object.values(inner.getFields()), inner.name);
    return scalars[inner.name]?.(place) ?? anything;
  }

  function input(type: GraphQLInputType, place: string): fc.Arbitrary<Value> {
    return mostly(fitting(type, place), 10, fc.oneof(fc.constant(null), anything));
  }

  function fields(declared: readonly Declared[], owner: string) {
    const given = declared.map(({ name, type }) => {
      const pair = fc.tuple(fc.constant(name), input(type, `${owner}.${name}`));
      const absent = fc.constant(null);
      return isNonNullType(type) ? mostly(pair, 4, absent) : fc.oneof(pair, absent);
    });
    const others = mostly(fc.constant([]), 6, fc.array(fc.tuple(key, anything), { maxLength: 2 }));
    return fc
      .tuple(fc.tuple(...given), others)
      .map(([present, more]) => ({ fields: [...present.filter((pair) => pair !== null), ...more] }));
  }

  return { id, input, fields };
}

const repeatedKeys = fc.constantFrom('the-first-of-them', 'the-other-of-them');

const nastyMoments = [
  '2099-02-30T00:00:00Z',
  '9999-12-31T23:59:59-23:59',
  '0000-01-01T00:00:00Z',
  '2099-01-01',
  'now',
  '2099-01-01T24:00:00Z',
  '1970-01-01T00:00:00Z',
];
const spellings: ReadonlyArray<(id: string) => string> = [
  (id) => `{${id}}`,
  (id) => id.replaceAll('-', ''),
  (id) => id.toUpperCase(),
  (id) => `urn:uuid:${id}`,
  (id) => `${id}\n`,
  (id) => id.slice(1),
];
