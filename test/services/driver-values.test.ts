import { tmpdir } from 'node:os';
import pg from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { JsonText } from '../../src/kernel/json/text.ts';
import { Lifecycle } from '../../src/kernel/lifecycle.ts';
import { type Database, openDatabase } from '../../src/platform/database.ts';
import { copyTemplate } from '../support/app.ts';
import { connectTo } from '../support/sql.ts';

/** The values that a statement accepts. */
type Parameter = Single | readonly Parameter[];
type Single = string | number | boolean | Date | Uint8Array | null | undefined;

/** For each type used by Portico's columns: values as PostgreSQL writes them, including extremes. */
const samples: Readonly<Record<string, readonly string[]>> = {
  bool: ['true', 'false'],
  bytea: ['\\x', '\\x00', '\\x5c22ff0a', `\\x${'00ff'.repeat(5_000)}`],
  int2: ['-32768', '0', '32767'],
  int4: ['-2147483648', '0', '2147483647'],
  int8: ['-9007199254740991', '0', '9007199254740991'],
  json: ['null', '0', '"text"', '[]', '{"b":1,"a":[null,{"ä":"\\u0001"}],"__proto__":{"x":1}}', '1e3', '-0', '{"a":1,"a":2}'],
  numeric: ['0.00', '-1.50', '9999999999.99', '0.1', '12345678901234567890.123456789', 'NaN'],
  text: ['', ' ', 'ä€😀', 'a\nb\tc\\d"e\'f,{g}', 'NULL', 'x'.repeat(100_000)],
  varchar: ['', 'EUR', 'a,"b\\'],
  timestamptz: [
    '0001-01-01 00:00:00+00',
    '0099-12-31 23:59:59.999+00',
    '0999-01-01 00:00:00.5+00',
    '1000-01-01 00:00:00+00',
    '1969-12-31 23:59:59.999+00',
    '1970-01-01 00:00:00+00',
    '2024-02-29 12:30:45.123+00',
    '2024-02-29 12:30:45.120+00',
    '2024-02-29 12:30:45.123456+00',
    '2026-10-25 01:30:00+02',
    '9999-12-31 23:59:59.999+00',
  ],
  uuid: ['00000000-0000-0000-0000-000000000000', 'ffffffff-ffff-ffff-ffff-ffffffffffff', '01890a5d-ac96-774b-bcce-b302099a8057'],
};

let lifecycle: Lifecycle;
let database: Database;
let client: pg.Client;
/** The types of all columns, with the values of enums. */
let types: ReadonlyArray<{ readonly name: string; readonly isEnum: boolean; readonly values: readonly string[] }>;

beforeAll(async () => {
  const url = await copyTemplate();
  lifecycle = new Lifecycle();
  ({ database } = await openDatabase({ dataDir: tmpdir(), database: { url, poolSize: 1 } }, lifecycle));
  client = await connectTo(url, { options: '-c timezone=UTC' });
  const { rows } = await client.query(`
    SELECT DISTINCT coalesce(element.typname, type.typname)::text AS name, coalesce(element.typtype, type.typtype) = 'e' AS "isEnum",
      ARRAY (SELECT enumlabel::text FROM pg_enum WHERE enumtypid = coalesce(element.oid, type.oid) ORDER BY enumsortorder) AS values
    FROM pg_attribute AS attribute
    JOIN pg_class AS class ON class.oid = attribute.attrelid AND class.relkind = 'r'
      AND class.relnamespace = 'public'::regnamespace AND class.relname <> '_prisma_migrations'
    JOIN pg_type AS type ON type.oid = attribute.atttypid
    LEFT JOIN pg_type AS element ON element.oid = type.typelem AND type.typcategory = 'A'
    WHERE attribute.attnum > 0 AND NOT attribute.attisdropped ORDER BY name`);
  types = rows;
});

afterAll(async () => {
  await client?.end();
  await lifecycle?.close();
});

/** Runs a statement whose text is generated, by building the arguments of the tagged template. */
function read(text: string, values: readonly Parameter[] = []): Promise<Array<Record<string, unknown>>> {
  const parts = text.split(/\$\d+/);
  return database.query(Object.assign(parts, { raw: parts }), ...values);
}

/** Portico decodes `bigint` as a number, unlike pg. */
const asNumber = (value: unknown) => (typeof value === 'string' ? Number(value) : value);

/** Portico keeps the text of JSON that JavaScript would serialize differently; pg loses it. */
const asParsed = (rows: ReadonlyArray<Record<string, unknown>>) =>
  rows.map((row) =>
    Object.fromEntries(Object.entries(row).map(([name, value]) => [name, value instanceof JsonText ? value.value : value])),
  );

it('has samples of every type that a column has', () => {
  expect(types.length).toBeGreaterThan(10);
  expect(types.filter(({ name, isEnum }) => !isEnum && !(name in samples)).map(({ name }) => name)).toEqual([]);
});

it('decodes every type like pg, as single values, as lists and as null', async () => {
  let compared = 0;
  for (const { name, isEnum, values } of types) {
    const texts = isEnum ? values : (samples[name] ?? []);
    expect(texts.length, name).toBeGreaterThan(0);
    for (const text of [...texts, null]) {
      const select = `SELECT ${text === null ? 'NULL' : pg.escapeLiteral(text)}::${name} AS value`;
      const [expected] = (await client.query(select)).rows;
      // The columns are already known the second time.
      for (let turn = 0; turn < 2; turn += 1) {
        const [row] = asParsed(await read(select));
        expect(row, select.slice(0, 200)).toStrictEqual(name === 'int8' ? { value: asNumber(expected.value) } : expected);
      }
      compared += 1;
    }
  }
  expect(compared).toBeGreaterThan(100);
});

it('decodes rows with all columns of a type like pg, in one row, many rows, and none', async () => {
  for (const { name, isEnum, values } of types.filter((type) => type.name !== 'int8')) {
    const texts = isEnum ? values : (samples[name] ?? []);
    const list = texts.map((text) => pg.escapeLiteral(text)).join(', ');
    const columns = texts.map((text, index) => `${pg.escapeLiteral(text)}::${name} AS "column ${index}"`).join(', ');
    for (const select of [
      `SELECT ${columns}`,
      `SELECT unnest(ARRAY[${list}]::${name}[]) AS value`,
      `SELECT NULL::${name} AS value WHERE false`,
    ])
      expect(asParsed(await read(select)), name).toStrictEqual((await client.query(select)).rows);
  }
});

it('decodes lists like pg, of the types that are read as lists', async () => {
  for (const name of ['text', 'uuid']) {
    const list = (samples[name] ?? []).map((text) => pg.escapeLiteral(text)).join(', ');
    for (const array of [`ARRAY[${list}, NULL]`, 'ARRAY[]', 'NULL']) {
      const select = `SELECT ${array}::${name}[] AS value`;
      expect(await read(select), select).toStrictEqual((await client.query(select)).rows);
    }
  }
});

/** Valid parameter values for each type. */
const given: Readonly<Record<string, readonly Parameter[]>> = {
  text: ['', 'NULL', 'ä€😀', 'a\nb\\c"d\'e,{f}', '\\x00', null],
  'text[]': [[], [''], ['NULL', null, 'NULL '], ['a\nb\\c"d\'e,{f}', '\\', '"', '{}', ' '], ['ä€😀']],
  'text[][]': [
    [
      ['a', 'b'],
      ['c', null],
    ],
    [['}{'], ['"']],
  ],
  int4: [0, -1, 2_147_483_647, null],
  'int4[]': [[], [1, null, -2]],
  int8: [2 ** 53 - 1, -(2 ** 53 - 1)],
  'int8[]': [[2 ** 53 - 1, 0]],
  float8: [0.1, 1e300, 5e-324, Number.NaN, Number.POSITIVE_INFINITY, -0],
  numeric: ['9999999999.99', 1.5],
  bool: [true, false, null],
  'bool[]': [[true, false, null]],
  timestamptz: [
    new Date(0),
    new Date('2024-02-29T12:30:45.123Z'),
    new Date('1883-01-01T00:00:00Z'),
    new Date('9999-12-31T23:59:59.999Z'),
    null,
  ],
  'timestamptz[]': [[new Date(0), null, new Date('2024-02-29T12:30:45.123Z')]],
  bytea: [new Uint8Array(), Uint8Array.of(0, 92, 34, 255), Buffer.from('text'), new Uint8Array([1, 2, 3, 4]).subarray(1, 3), null],
  'bytea[]': [[], [Uint8Array.of(0, 92, 34, 255), null, Buffer.alloc(0)]],
  uuid: ['01890a5d-ac96-774b-bcce-b302099a8057', null],
  'uuid[]': [['01890a5d-ac96-774b-bcce-b302099a8057', null]],
  json: ['{"b":1,"a":[null]}', 'null'],
};

it('encodes every kind of value like pg, alone and in lists', async () => {
  for (const [type, values] of Object.entries(given)) {
    for (const value of values) {
      const select = `SELECT $1::${type}::text AS text`;
      const { rows } = await client.query(select, [value]);
      expect(await read(select, [value]), `${type}: ${String(value)}`).toStrictEqual(rows);
    }
  }
});

it('rejects an ambiguous value before anything is sent, and the connection stays usable', async () => {
  // biome-ignore lint/suspicious/noExplicitAny: values that TypeScript would reject
  const wrong: any[] = [{ a: 1 }, [{ a: 1 }], Symbol('x'), () => 1, 1n, new Map(), new Date(Number.NaN)];
  for (const value of wrong) {
    await expect(read('SELECT $1::text AS value', [value])).rejects.toThrow(/takes no value|Invalid time value|Symbol/);
    expect(await read('SELECT $1::int AS value', [7])).toEqual([{ value: 7 }]);
  }
});
