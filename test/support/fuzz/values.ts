import fc from 'fast-check';
import {
  type GraphQLInputField,
  type GraphQLInputType,
  getNullableType,
  isEnumType,
  isInputObjectType,
  isListType,
  isNonNullType,
} from 'graphql';

/** A value as JSON and as GraphQL can write it, also where JavaScript cannot hold it: 1e400, a key given twice. */
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

/** The ids that make sense at a place: `project.id`, `UpdateDashboardInput.id`. */
export type IdsOf = (place: string) => readonly string[];

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
);

const plainText = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 20 });
const number: fc.Arbitrary<Value> = fc
  .oneof(
    fc.constantFrom(...nastyNumbers),
    fc.integer().map(String),
    fc
      .double()
      .map(String)
      .filter((written) => /^-?\d/.test(written)),
  )
  .map((written) => ({ number: written }));
const key = fc.oneof(
  { weight: 3, arbitrary: fc.stringMatching(/^[a-z_][a-zA-Z0-9_]{0,8}$/) },
  { weight: 1, arbitrary: fc.constantFrom(...nastyTexts, '0', '10', '2') },
);

/** Any JSON, mostly small. */
export const anything: fc.Arbitrary<Value> = fc.letrec<{ value: Value }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3, depthSize: 'small', withCrossShrink: true },
    fc.constantFrom<Value>(null, true, false),
    number,
    text,
    fc.array(tie('value'), { maxLength: 4 }),
    fc.array(fc.tuple(key, tie('value')), { maxLength: 4 }).map((fields) => ({ fields })),
    fc.constantFrom<Value>({ depth: 400 }, { depth: 501 }, { depth: 503 }, { depth: 5_000 }, []),
  ),
})).value;

/** Ids that lead somewhere, and how else an id may be spelled. */
export function idOf(ids: readonly string[]): fc.Arbitrary<string> {
  const known = fc.constantFrom(...ids);
  return fc.oneof(
    { weight: 12, arbitrary: known },
    { weight: 1, arbitrary: fc.uuid() },
    {
      weight: 2,
      arbitrary: fc
        .tuple(
          known,
          fc.constantFrom<(id: string) => string>(
            (id) => `{${id}}`,
            (id) => id.replaceAll('-', ''),
            (id) => id.toUpperCase(),
            (id) => `urn:uuid:${id}`,
            (id) => `${id}\n`,
            (id) => id.slice(1),
          ),
        )
        .map(([id, spell]) => spell(id)),
    },
    { weight: 1, arbitrary: text },
  );
}

/** What a value of a declared type may be: mostly what fits, often what almost fits, sometimes anything. */
export function inputOf(type: GraphQLInputType, place: string, idsOf: IdsOf): fc.Arbitrary<Value> {
  const fitting = fittingValue(type, place, idsOf);
  const isNullable = !isNonNullType(type);
  return fc.oneof(
    { weight: 40, arbitrary: fitting },
    { weight: isNullable ? 3 : 1, arbitrary: fc.constant(null) },
    { weight: 3, arbitrary: anything },
  );
}

function fittingValue(type: GraphQLInputType, place: string, idsOf: IdsOf): fc.Arbitrary<Value> {
  const inner = getNullableType(type);
  if (isListType(inner)) {
    const item = inputOf(inner.ofType, place, idsOf);
    const same = fc
      .tuple(fc.constantFrom(199, 200, 201), fc.constantFrom(...idsOf(place)))
      .map(([length, id]) => Array<Value>(length).fill(id));
    return fc.oneof({ weight: 9, arbitrary: fc.array(item, { maxLength: 5 }) }, { weight: 1, arbitrary: same });
  }
  if (isEnumType(inner)) {
    const names = inner.getValues().map((value) => value.name);
    return fc
      .oneof(
        { weight: 12, arbitrary: fc.constantFrom(...names) },
        { weight: 1, arbitrary: fc.constantFrom('nothing', '__proto__', names[0]?.toUpperCase() ?? '') },
      )
      .map((choice) => ({ choice }));
  }
  if (isInputObjectType(inner)) return fieldsOf(Object.values(inner.getFields()), inner.name, idsOf);
  return scalars[inner.name]?.(place, idsOf) ?? anything;
}

/** An object of declared fields, each there or not, and now and then of another. */
export function fieldsOf(
  fields: ReadonlyArray<Pick<GraphQLInputField, 'name' | 'type'>>,
  owner: string,
  idsOf: IdsOf,
): fc.Arbitrary<{ readonly fields: ReadonlyArray<readonly [string, Value]> }> {
  const declared = fields.map(({ name, type }) =>
    fc.option(fc.tuple(fc.constant(name), inputOf(type, `${owner}.${name}`, idsOf)), { freq: isNonNullType(type) ? 30 : 2, nil: null }),
  );
  const others = fc.oneof(
    { weight: 15, arbitrary: fc.constant([]) },
    { weight: 1, arbitrary: fc.array(fc.tuple(key, anything), { maxLength: 2 }) },
  );
  return fc.tuple(fc.tuple(...declared), others).map(([given, more]) => ({ fields: [...given.filter((part) => part !== null), ...more] }));
}

type Scalar = (place: string, idsOf: IdsOf) => fc.Arbitrary<Value>;
const asText: Scalar = () => fc.oneof({ weight: 4, arbitrary: plainText }, { weight: 1, arbitrary: text });
const moment = fc
  .tuple(
    fc.date({ min: new Date('0001-01-01'), max: new Date('9999-12-31'), noInvalidDate: true }),
    fc.constantFrom('Z', '+02:00', '-23:59', '', 'z'),
  )
  .map(([date, zone]) => date.toISOString().replace('Z', zone));

const scalars: Readonly<Record<string, Scalar>> = {
  ID: (place, idsOf) => idOf(idsOf(place)),
  UUID: (place, idsOf) => idOf(idsOf(place)),
  Int: () =>
    fc.oneof(
      { weight: 4, arbitrary: fc.integer({ min: 0, max: 8 }).map((value) => ({ number: String(value) })) },
      { weight: 1, arbitrary: number },
    ),
  Boolean: () => fc.boolean(),
  String: asText,
  Text: asText,
  Name: asText,
  JSON: () => anything,
  JSONObject: () => fc.array(fc.tuple(key, anything), { maxLength: 4 }).map((fields) => ({ fields })),
  DateTime: () => fc.oneof(moment, fc.constantFrom('2099-02-30T00:00:00Z', '9999-12-31T23:59:59-23:59', '0000-01-01T00:00:00Z', 'now')),
};
