import fc from 'fast-check';
import { expect, it } from 'vitest';
import { exceedsBytes, findOverflow } from '../../src/kernel/size.ts';
import { countCases } from '../support/cases.ts';

const sizeOf = (value: unknown) => Buffer.byteLength(JSON.stringify(value));
/** Strings with every kind of character that JSON escapes, including lone surrogates. */
const text = fc
  .array(fc.oneof(fc.nat(0xffff), fc.nat(0x22), fc.constantFrom(0xd83d, 0xde00, 0x5c, 0x7f, 0x80, 0x7ff, 0x800)))
  .map((units) => String.fromCharCode(...units));
const { value: json } = fc.letrec((tie) => ({
  leaf: fc.oneof(text, fc.double(), fc.integer(), fc.constantFrom(null, true, false, undefined, -0, 1e21, Number.NaN)),
  value: fc.oneof({ maxDepth: 6 }, tie('leaf'), fc.array(tie('value')), fc.dictionary(text, tie('value'))),
}));
const anyValue = json.map((value) => ({ value }));

it('a value exceeds a number of bytes exactly where its text has more', () => {
  fc.assert(
    fc.property(anyValue, fc.double({ min: 0, max: 3, noNaN: true }), (value, factor) => {
      const size = sizeOf(value);
      for (const bound of [size - 1, size, size + 1, Math.floor(size * factor)]) {
        expect(exceedsBytes(value, bound)).toBe(size > bound);
        expect(findOverflow(value, bound) !== null).toBe(size > bound);
      }
    }),
    { numRuns: countCases(2_000) },
  );
});

it('a value with toJSON is measured by its JSON', () => {
  const value = { at: new Date(0), error: Object.assign(new Error('no'), { toJSON: () => ({ message: 'é'.repeat(100) }) }) };
  expect(exceedsBytes(value, sizeOf(value))).toBe(false);
  expect(exceedsBytes(value, sizeOf(value) - 1)).toBe(true);
});

it('a value may be deeper than a stack', () => {
  const deep = JSON.parse(`${'['.repeat(1_000)}${']'.repeat(1_000)}`);
  let deeper: unknown = [];
  for (let level = 0; level < 100_000; level += 1) deeper = [deeper];
  expect(exceedsBytes(deep, 1_999)).toBe(true);
  expect(exceedsBytes(deep, 2_000)).toBe(false);
  expect(exceedsBytes(deeper, 1_000)).toBe(true);
  expect(exceedsBytes(deeper, 2 ** 23)).toBe(false);
});

it('a value that is far too large is known after a part of it', () => {
  let reads = 0;
  const row = {
    get text() {
      reads += 1;
      return 'x'.repeat(1_000);
    },
  };
  expect(
    exceedsBytes(
      Array.from({ length: 10_000 }, () => row),
      50_000,
    ),
  ).toBe(true);
  expect(reads).toBeLessThan(100);
});

it('the place is named where a value passes the bound', () => {
  const page = { project: { name: 'a', dashboards: { nodes: [{ widgets: 'x'.repeat(40) }, { widgets: 'x'.repeat(100) }] } } };
  expect(findOverflow(page, 150)).toEqual(['project', 'dashboards', 'nodes', 1, 'widgets']);
  expect(findOverflow(page, 1_000)).toBeNull();
});
