import { buildSchema, type GraphQLResolveInfo, graphqlSync } from 'graphql';
import { expect, test } from 'vitest';
import { describeRequest } from '../../src/graph/fingerprint.ts';

/** A release: the input fields that its schema has besides those of the first. */
const release = (more = '') =>
  buildSchema(`
    type Query { ok: Boolean }
    type Mutation { make(input: Make!): Made }
    type Made { id: ID }
    input Make { name: String!, isPublic: Boolean! = false, parts: [Part!] = [], idempotencyKey: String ${more} }
    input Part { title: String! ${more} }`);

/** What a request is to a release, with the document of a client, or of v1's own. */
function describeAs(schema: ReturnType<typeof release>, input: object, route: string | null = null): string {
  let description = '';
  const make = ({ input }: { input: object }, _context: unknown, info: GraphQLResolveInfo) => {
    description = describeRequest(info, { ...input }, route);
    return null;
  };
  const source = 'mutation ($input: Make!) { make(input: $input) { id } }';
  expect(graphqlSync({ schema, source, rootValue: { make }, variableValues: { input } }).errors).toBeUndefined();
  return description;
}

const input = { name: 'A', parts: [{ title: 'B' }], idempotencyKey: 'abcdefghijklmnop' };

test.each([null, 'make'])('a request is the same after a release that adds input fields with defaults (%s)', (route) => {
  const after = release(', color: String! = ""');
  expect(describeAs(after, input, route)).toBe(describeAs(release(), input, route));
  expect(describeAs(after, { ...input, color: '', isPublic: false }, route)).toBe(describeAs(release(), input, route));
});

test('a request has the same fingerprint as in earlier releases', () => {
  expect(describeAs(release(), input)).toBe(
    String.raw`["make",{"name":"A","parts":[{"title":"B"}]},{"texts":["{\n  id\n}"],"variables":{}}]`,
  );
  expect(describeAs(release(), input, 'make')).toBe('["make",{"name":"A","parts":[{"title":"B"}]},"make"]');
});

test('a value that is not the default makes another request, at any depth', () => {
  const schema = release(', color: String! = ""');
  const others = [
    { ...input, color: 'red' },
    { ...input, isPublic: true },
    { ...input, parts: [] },
    { ...input, parts: [{ title: 'B', color: 'red' }] },
    { ...input, parts: [{ title: 'B' }, { title: 'B' }] },
  ];
  const described = [input, ...others].map((one) => describeAs(schema, one));
  expect(new Set(described).size).toBe(described.length);
});
