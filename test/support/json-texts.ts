import fc from 'fast-check';

/** JSON number texts within the range of a double; JavaScript would write most of them differently. */
export const numberText: fc.Arbitrary<string> = fc
  .oneof(
    fc.constantFrom('9007199254740993', '1e-400', '-0', '1.0', '1E5', '-0.0', '1e5', '0e0', '1e+2', '5e-324', '1.7976931348623157e308'),
    fc.constantFrom(
      '0.000001',
      '0.0000001',
      '-0.00001',
      '100000000000000000000',
      '1000000000000000000000',
      '123456789012345',
      '1234567890123456',
    ),
    fc
      .tuple(
        fc.constantFrom('', '-'),
        fc.oneof(fc.constant('0'), fc.stringMatching(/^[1-9]\d{0,40}$/)),
        fc.oneof(fc.constant(''), fc.stringMatching(/^\.\d{1,20}$/)),
        fc.oneof({ weight: 3, arbitrary: fc.constant('') }, { weight: 1, arbitrary: fc.stringMatching(/^[eE][+-]?\d{1,3}$/) }),
      )
      .map((parts) => parts.join('')),
    fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => JSON.stringify(value)),
    fc.integer().map(String),
  )
  .filter((text) => Number.isFinite(Number(text)));

/** Strings that look like other JSON syntax; strings that the API rejects are left out. */
const stringText = fc
  .oneof(
    fc.constantFrom('', '1.0', '-0', '"', '\\', '\\"', '{"a":1.0}', ',', ':', '[1E5]', '\u2028', '😀', 'a\nb'),
    fc.string({ unit: 'grapheme', maxLength: 8 }),
  )
  .filter((text) => !text.includes('\0'))
  .map((text) => JSON.stringify(text));

const leaf = fc.oneof({ weight: 4, arbitrary: numberText }, { weight: 2, arbitrary: stringText }, fc.constantFrom('true', 'false', 'null'));

/** JSON texts without white space and without duplicate keys; `key` draws the keys, as JSON text. */
function jsonTextWith(key: fc.Arbitrary<string>, colon = ':'): fc.Arbitrary<string> {
  const list = (items: readonly string[]) => `[${items.join(',')}]`;
  const object = (members: ReadonlyArray<readonly [string, string]>) => `{${members.map((member) => member.join(colon)).join(',')}}`;
  return fc.letrec<{ value: string }>((tie) => ({
    value: fc.oneof(
      { maxDepth: 4, withCrossShrink: true },
      leaf,
      fc.array(tie('value'), { maxLength: 4 }).map(list),
      fc.uniqueArray(fc.tuple(key, tie('value')), { maxLength: 5, selector: ([name]) => JSON.parse(name) }).map(object),
    ),
  })).value;
}

const oddKeys = fc
  .constantFrom('0', '10', '2', '-1', '01', '1.5', '4294967294', '4294967295', '99999999999', '__proto__', 'toJSON', '')
  .map((key) => JSON.stringify(key));

export const jsonText = jsonTextWith(fc.oneof(oddKeys, stringText));

/** The same with keys that are valid in a GraphQL document. */
export const literalJson = jsonTextWith(fc.stringMatching(/^[_a-z]\w{0,3}$/).map((key) => JSON.stringify(key)));

/** Converts such a text to a GraphQL literal. */
export function toLiteral(json: string): string {
  return json.replace(/"(?:[^"\\]|\\.)*"(:?)/g, (whole, colon) => (colon ? whole.slice(1, -2) + colon : whole));
}
