import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { canonicalJson } from '../../src/kernel/json/canonical.ts';
import { findJsonPart, parseTracked, withExactText } from '../../src/kernel/json/exact.ts';
import { JsonPart, parseValue, readExact } from '../../src/kernel/json/read.ts';
import { countParts, hasEscapedKey, survivesRoundTrip } from '../../src/kernel/json/scan.ts';
import { JsonText, stringifyJson } from '../../src/kernel/json/text.ts';
import { deserialize, serialize } from '../../src/kernel/serialize.ts';
import { exceedsBytes, findOverflow } from '../../src/kernel/size.ts';
import { countCases } from '../support/cases.ts';
import { jsonText, numberText } from '../support/json-texts.ts';

const runs = { numRuns: countCases(20_000) };

/** JSON with white space between all of its tokens. */
const spread = (json: string) => json.replace(/"(?:[^"\\]|\\.)*"|[[\]{},:]|[^[\]{},:"]+/g, ' $&\n\t');

const keep = (value: unknown) => withExactText(value, typeof value === 'object' && value !== null ? findJsonPart(value) : undefined);

it('returns every text unchanged, from a client or from the database', () => {
  fc.assert(
    fc.property(jsonText, (json) => {
      expect(stringifyJson(JsonText.ofColumn(json))).toBe(json);
      expect(stringifyJson(JsonText.ofColumn(spread(json)))).toBe(json);
      const list = parseTracked(`[${spread(json)}]`);
      expect(stringifyJson(keep(list))).toBe(`[${json}]`);
    }),
    runs,
  );
});

it.each([
  ['escapes', `["${'\\n'.repeat(3_900_000)}"]`],
  ['strings', `[${Array(2_600_000).fill('"a"').join()}]`],
])('returns a text of eight million characters, as was stored before there was a limit, with many %s', (_of, json) => {
  expect(JsonText.ofColumn(json).text === json).toBe(true);
  expect(JsonText.ofColumn(` ${json}\n`).text === json).toBe(true);
});

it('reads a key as it is written, regardless of earlier texts', () => {
  // Since Node.js 23 `JSON.parse` may take an escaped key for that of an object before.
  const texts = ['{"a":1,"\\\\":2}', '{"a":1,"\\"":2}', '{"a":1,"\\n":2}', '{"a":1,"\\u0062":2}'];
  expect(texts.map((text) => Object.keys(parseTracked(text) as object)[1])).toEqual(['\\', '"', '\n', 'b']);
  expect(texts.map((text) => Object.keys(JsonText.ofColumn(text).value as object)[1])).toEqual(['\\', '"', '\n', 'b']);
  fc.assert(
    fc.property(fc.dictionary(fc.string({ unit: 'binary' }), fc.json()), (members) => {
      const keys = Object.keys(members);
      const text = `{${keys.map((key) => `${JSON.stringify(key)}:${members[key]}`).join(' , ')}}`;
      expect(hasEscapedKey(`{${keys.map((key) => `${JSON.stringify(key)} : 1`).join()}}`)).toBe(
        keys.some((key) => JSON.stringify(key).includes('\\')),
      );
      for (const value of [parseValue(text), parseValue(text, true)] as Array<Record<string, unknown>>) {
        expect(Object.keys(value)).toEqual(keys);
        expect(keys.map((key) => value[key])).toStrictEqual(keys.map((key) => parseValue(members[key] as string)));
      }
    }),
    runs,
  );
});

it('keeps the text of the values that JavaScript would change, and of no others', () => {
  fc.assert(
    fc.property(numberText, (number) => {
      const isSame = JSON.stringify(JSON.parse(number)) === number;
      expect(survivesRoundTrip(number)).toBe(isSame);
      expect(withExactText(JSON.parse(number), new JsonPart(number)) instanceof JsonText).toBe(!isSame);
    }),
    runs,
  );
  fc.assert(
    fc.property(fc.json(), (json) => {
      const text = JSON.stringify(JSON.parse(json));
      expect(JsonText.ofColumn(json).text).toBe(text);
      expect(JsonText.ofColumn(json).value).toStrictEqual(JSON.parse(json));
      // JavaScript keeps the order of keys, except that it moves integer-like keys to the front.
      if (!/"\d+":/.test(text)) expect(keep(parseTracked(text))).toStrictEqual(JSON.parse(text));
    }),
    runs,
  );
});

it('puts each text in its place, also among other texts', () => {
  fc.assert(
    fc.property(fc.array(jsonText), fc.json(), (list, json) => {
      JSON.stringify(new JsonText('{"of":"another answer"}'));
      const value = [...list.map(JsonText.ofColumn), JSON.parse(json), ...list.map((text) => [JsonText.ofColumn(text)])];
      const texts = [...list, JSON.stringify(JSON.parse(json)), ...list.map((text) => `[${text}]`)];
      expect(stringifyJson(value)).toBe(`[${texts.join(',')}]`);
    }),
    runs,
  );
});

it('survives serialization at any depth, among dates and bytes', () => {
  fc.assert(
    fc.property(jsonText, (json) => {
      const beside = { moment: new Date(0), bytes: new Uint8Array([0, 255]), none: undefined, null: null };
      const value = { ...beside, items: [JsonText.ofColumn(json), { ['__proto__']: JsonText.ofColumn(json) }] };
      const back = deserialize(serialize(value)) as typeof value;
      expect(stringifyJson(back.items)).toBe(`[${json},{"__proto__":${json}}]`);
      expect(back).toMatchObject(beside);
    }),
    runs,
  );
});

it('is the same in canonical JSON for the same spelling of numbers, in any order of keys', () => {
  fc.assert(
    fc.property(jsonText, jsonText, numberText, numberText, (json, other, one, another) => {
      const canonical = (text: string) => canonicalJson(JsonText.ofColumn(text));
      expect(canonical(`{"a":${json},"b":${other}}`)).toBe(canonical(spread(`{"b":${other},"a":${json}}`)));
      expect(canonical(`{"a":${one},"0":${json}}`) === canonical(`{"0":${json},"a":${another}}`)).toBe(one === another);
      expect(canonicalJson(parseValue(canonical(json)))).toBe(canonicalJson(parseValue(json)));
    }),
    runs,
  );
});

it('measures the kept texts to the byte', () => {
  fc.assert(
    fc.property(jsonText, jsonText, (one, other) => {
      const value = { data: [JsonText.ofColumn(one), { ä: JsonText.ofColumn(other) }] };
      const bytes = Buffer.byteLength(stringifyJson(value));
      expect([bytes - 1, bytes].map((most) => exceedsBytes(value, most))).toEqual([true, false]);
      expect([bytes - 1, bytes].map((most) => findOverflow(value, most) !== null)).toEqual([true, false]);
    }),
    runs,
  );
});

describe('reading a text', () => {
  it('keeps the last of two values of a key, in the place of the first', () => {
    const value = parseTracked('{"a":1.0,"b":2,"a":{"x":-0,"\\u0061":1,"a":2.0}}');
    expect(stringifyJson(keep(value))).toBe('{"a":{"x":-0,"a":2.0},"b":2}');
  });

  it('does not recurse into values that are nested deeper than the limit', () => {
    const deep = `${'['.repeat(200_000)}1.0${']'.repeat(200_000)}`;
    expect(stringifyJson(keep(parseTracked(deep)))).toBe(deep);
    expect(stringifyJson(JsonText.ofColumn(spread(deep)))).toBe(deep);
  });

  it('takes less than 20 s for texts of a megabyte', () => {
    const began = performance.now();
    for (const text of ['\\', '"\\', '1', '1.0,', '-', '"1":{', ' ']) {
      const json = JSON.stringify([text.repeat(1_000_000 / text.length)]);
      expect(stringifyJson(JsonText.ofColumn(json))).toBe(json);
    }
    for (const json of [`[${'1.0,'.repeat(250_000)}1]`, `[0.${'1'.repeat(1_000_000)}]`, `[1${'0'.repeat(300)}.${'0'.repeat(1_000_000)}]`])
      expect(stringifyJson(JsonText.ofColumn(json)) === json).toBe(true);
    expect(performance.now() - began).toBeLessThan(20_000);
  });
});

it('finds each member by its key or index, among any others', () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.string({ unit: 'binary' }), jsonText)), (members) => {
      const list = new JsonPart(spread(`[${members.map(([, json]) => json).join()}]`));
      const object = new JsonPart(spread(`{${members.map(([key, json]) => `${JSON.stringify(key)}:${json}`).join()}}`));
      const lastOf = (key: string) => members.findLast(([other]) => other === key)?.[1] ?? '';
      expect(members.map(([key], index) => [list.member(index)?.read(), object.member(key)?.read()])).toEqual(
        members.map(([key, json]) => [readExact(json), readExact(lastOf(key))]),
      );
      expect([list.member(members.length), list.member(-1), object.member('no such key')]).toEqual([undefined, undefined, undefined]);
    }),
    runs,
  );
});

it('keeps the texts next to a value that is nested deeper than the limit', () => {
  for (const depth of [999, 1_000, 1_001, 20_000]) {
    const deep = `${'[{"a":'.repeat(depth / 2)}"]"${'}]'.repeat(depth / 2)}`;
    const json = `{"ignored":${deep},"widgets":[9007199254740993,1.0,1e-400]}`;
    const part = findJsonPart(parseTracked(spread(json)) as object);
    expect(stringifyJson(withExactText(JSON.parse('[9007199254740992,1,0]'), part?.member('widgets')))).toBe(
      '[9007199254740993,1.0,1e-400]',
    );
  }
});

it('recognizes the short numbers that JavaScript returns unchanged, near the limits of digits and smallness too', () => {
  const whole = fc.oneof(fc.constant(0), fc.nat(2 ** 31), fc.nat(Number.MAX_SAFE_INTEGER));
  fc.assert(
    fc.property(fc.boolean(), whole, fc.nat(8), fc.nat(2 ** 31), (isNegative, integer, zeros, fraction) => {
      const number = `${isNegative ? '-' : ''}${integer}.${'0'.repeat(zeros)}${fraction}`;
      expect(survivesRoundTrip(`[${number},1]`)).toBe(String(Number(number)) === number);
    }),
    { numRuns: countCases(200_000) },
  );
});

it('counts lists, objects and fields, and the items of lists only where a key is written with an escape', () => {
  expect(countParts('{"a":[1,2,[3,"4,[5"]],"b":{"c":1,"d":[]}}')).toBe(9);
  expect(countParts(String.raw`{"\u0061":[1,2,[3,"4,[5"]],"b":{"c":1,"d":[]}}`)).toBe(12);
  expect(countParts(String.raw`[{"\u0061":1,"b":2},{"a":1,"b":2}]`)).toBe(8);
});
