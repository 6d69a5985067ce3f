import { randomUUID } from 'node:crypto';
import { buildASTSchema, type GraphQLScalarType, graphqlSync, parse, parseValue } from 'graphql';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { describeRequest } from '../../src/graph/fingerprint.ts';
import { JsonPart } from '../../src/kernel/json/read.ts';
import { Seal } from '../../src/kernel/seal.ts';
import { schema } from '../../src/schema.ts';
import { startApp, type TestApp } from '../support/app.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startApp();
});
afterAll(() => app.close());

const LARGE = Array.from({ length: 60_000 }, () => 1);

/** A document that names one variable within the JSON literals of many fields. */
const manyLiterals = (count: number, widgets = '[$w]') => {
  const { organization_id, project_id } = app.demo;
  const input = `{ organizationId: "${organization_id}", projectId: "${project_id}", name: "x", widgets: ${widgets} }`;
  const fields = Array.from({ length: count }, (_, index) => `a${index}: createDashboard(input: ${input}) { dashboard { id } }`);
  return `mutation ($w: JSON) { ${fields.join(' ')} }`;
};

describe('a large variable in the JSON literals of many fields', () => {
  it('is not read for a caller without a credential', async () => {
    // If they were read, they would be too large.
    const { json } = await app.graphql(manyLiterals(3, '[$w, $w, $w]'), { w: LARGE }, { as: null });
    expect(json.data).toEqual({ a0: null, a1: null, a2: null });
    expect(json.errors.map(({ message }: Error) => message)).toEqual(Array(3).fill('Authentication credentials were not provided.'));
  });

  it('adds to all of them what one of them may have', async () => {
    const { json } = await app.graphql(manyLiterals(6), { w: LARGE }, { as: 'member' });
    const { a0, a1, a2, a3, a4, a5 } = json.data;
    expect([a0, a1, a2].every((made) => made.dashboard.id)).toBe(true);
    expect([a3, a4, a5]).toEqual([null, null, null]);
    expect(json.errors.map(({ path }: { path: string[] }) => path)).toEqual([['a3'], ['a4'], ['a5']]);
    expect(json.errors[0].message).toContain('has invalid value');
  });
});

it.each([
  ['[JSON!]', (count: number) => Array(count).fill(1)],
  ['[[Int]]', (count: number) => [Array(count - 1).fill(1)]],
])('lists of %s within a literal have 1,000 items at most, in all variables together', async (type, make) => {
  const { organization_id, project_id } = app.demo;
  const input = `{ organizationId: "${organization_id}", projectId: "${project_id}", name: "x", widgets: { a: $x, b: $y } }`;
  const query = `mutation ($x: ${type}, $y: ${type}) { createDashboard(input: ${input}) { dashboard { id } } }`;
  const { json } = await app.graphql(query, { x: make(998), y: make(2) });
  expect(json.errors).toBeUndefined();
  for (const count of [1_000, 100_000]) {
    const { json: refused } = await app.graphql(query, { x: make(1), y: make(count) });
    expect(refused.errors[0].extensions.fields).toEqual({ y: ['Ensure this field has no more than 1000 items.'] });
  }
});

it('only few of the literals that are too large are measured', () => {
  const { parseLiteral } = schema.getType('JSON') as GraphQLScalarType;
  let measured = 0;
  const w = new Proxy(LARGE, {
    get(target, name) {
      if (name === Symbol.iterator) measured += 1;
      return Reflect.get(target, name);
    },
  });
  const variables = { w };
  for (let field = 0; field < 50; field += 1) expect(() => parseLiteral(parseValue('[$w, $w, $w]'), variables)).toThrow();
  expect(measured).toBeLessThan(10);
  expect(parseLiteral(parseValue('[$w]'), { w: [1] })).toEqual([[1]]);
});

it('notifications that are too large together are refused before their fingerprint is computed', async () => {
  const { organization_id: organizationId, project_id: projectId } = app.demo;
  const sign = vi.spyOn(Seal.prototype, 'sign');
  const notifications = '{ kind: "a", severity: info, title: "t", data: $data } '.repeat(100);
  const query = `mutation ($data: JSONObject, $organizationId: ID!, $projectId: ID!, $key: IdempotencyKey) {
    publishNotifications(input: {
      organizationId: $organizationId, projectId: $projectId, idempotencyKey: $key, notifications: [${notifications}]
    }) { notifications { id } }
  }`;
  const { json } = await app.graphql(query, { organizationId, projectId, key: randomUUID(), data: { a: 'x'.repeat(60_000) } });
  expect(json.errors[0].extensions).toEqual({
    code: 'validation_failed',
    fields: { notifications: ['Ensure this field takes no more than 262144 bytes.'] },
  });
  expect(sign).not.toHaveBeenCalled();
  sign.mockRestore();
});

it('the result of a mutation without a credential is that of its execution', async () => {
  const create = 'createApiKey(input: { name: "k" })';
  const document = `mutation { one: ${create} { key } ...F __typename ${create} { apiKey { id } } } fragment F on Mutation { ${create} { key } }`;
  const { status, json } = await app.graphql(document, {}, { as: null });
  const failed = (path: string, ...columns: number[]) => ({
    message: 'Authentication credentials were not provided.',
    locations: columns.map((column) => ({ line: 1, column })),
    path: [path],
    extensions: { code: 'not_authenticated' },
  });
  expect(status).toBe(200);
  expect(JSON.stringify(json)).toBe(
    JSON.stringify({
      errors: [failed('one', 12), failed('createApiKey', 156, 76)],
      data: { one: null, createApiKey: null, __typename: 'Mutation' },
    }),
  );
});

it('only the values whose text is kept are read again in a body with inexact numbers', async () => {
  const read = vi.spyOn(JsonPart.prototype, 'read');
  const path = `${app.projectPath}/monitoring/dashboards`;
  const junk = '[1.0, 2.0]';
  const body = `{"name": "x", "junk": ${junk}, "widgets": [3.0], "more": {"widgets": ${junk}}}`;
  const { status, text } = await app.ask('POST', path, { as: 'member', body, headers: { 'content-type': 'application/json' } });
  expect({ status, widgets: /"widgets":[^\]]*\]/.exec(text)?.[0] }).toEqual({ status: 201, widgets: '"widgets":[3.0]' });
  const tooMany = `{"name": "x", "widgets": [${'1.0,'.repeat(200_000)}1]}`;
  expect((await app.ask('POST', path, { as: 'member', body: tooMany, headers: { 'content-type': 'application/json' } })).status).toBe(400);
  expect(read.mock.results.map(({ value }) => value)).toEqual([['3.0']]);
  read.mockRestore();
});

it('a value that is too deep is rejected before anything walks it by recursion', async () => {
  const deep = `${'['.repeat(24_000)}1.0,"${'x'.repeat(200_000)}"${']'.repeat(24_000)}`;
  const path = `${app.projectPath}/monitoring/dashboards`;
  const headers = { 'content-type': 'application/json' };
  const { status, json } = await app.ask('POST', path, { as: 'member', body: `{"name": "x", "widgets": ${deep}}`, headers });
  expect({ status, json }).toEqual({ status: 400, json: { widgets: ['Nested deeper than 500 levels.'] } });
});

it('a large value that many fields use is described once', () => {
  const schema = buildASTSchema(
    parse(`scalar JSON type Query { ok: Boolean } type Mutation { make(input: Make!): Boolean } input Make { data: JSON }`),
  );
  Object.assign(schema.getType('JSON') as GraphQLScalarType, { parseValue: (value: unknown) => value });
  let reads = 0;
  const data = Object.defineProperty({}, 'a', { enumerable: true, get: () => ++reads });
  const descriptions: string[] = [];
  const make = ({ input }: { input: object }, _context: unknown, info: Parameters<typeof describeRequest>[0]) => {
    descriptions.push(describeRequest(info, { ...input }, 'make'));
  };
  const source = 'mutation ($data: JSON) { a: make(input: { data: $data }) b: make(input: { data: $data }) }';
  expect(graphqlSync({ schema, source, rootValue: { make }, variableValues: { data } }).errors).toBeUndefined();
  expect(descriptions).toEqual(Array(2).fill('["make",{"data":{"a":1}},"make"]'));
});

describe('the fields of a mutation', () => {
  it('are charged as requests of their own, and not executed beyond the budget', async () => {
    const limited = await startApp({ RATE_LIMIT_USER: '10' });
    try {
      const mutation = (count: number) => {
        const fields = Array.from({ length: count }, (_, index) => `a${index}: createApiKey(input: { name: "k" }) { apiKey { id } }`);
        return limited.graphql(`mutation { ${fields.join(' ')} __typename }`, {}, { as: 'viewer' });
      };
      const first = await mutation(4);
      expect(first.json.errors).toBeUndefined();
      const { json, headers } = await limited.graphql('{ viewer { apiKeys(first: 9) { totalCount } } }', {}, { as: 'viewer' });
      const before = json.data.viewer.apiKeys.totalCount;
      expect(headers.ratelimit).toMatch(/^"user";r=4;/);
      const beyond = await mutation(5);
      expect({ status: beyond.status, data: beyond.json.data ?? null }).toEqual({ status: 429, data: null });
      expect(beyond.json.errors[0].extensions.code).toBe('rate_limited');
      expect(Number(beyond.headers['retry-after'])).toBeGreaterThan(0);
      expect(before).toBeGreaterThanOrEqual(4);
    } finally {
      await limited.close();
    }
  });
});
