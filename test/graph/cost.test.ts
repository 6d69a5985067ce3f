import { getIntrospectionQuery, ValidationContext } from 'graphql';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { KeyedSemaphore } from '../../src/kernel/semaphore.ts';
import { Turns } from '../../src/kernel/turns.ts';
import { startApp, type TestApp } from '../support/app.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startApp();
});
afterAll(() => app.close());

const asking = { 'x-graphql-cost': '1' };
const panel = '{ viewer { organizations(first: 50) { nodes { projects(first: 100) { nodes { id name role } } } } } }';
const hostile =
  '{ viewer { organizations(first: 100) { nodes { projects(first: 100) { nodes { instances(first: 100) { nodes { id } } } } } } } }';
const paged = 'query ($n: Int!) { viewer { organizations(first: $n) { nodes { id } } } }';

const ask = (query: string, variables: Record<string, unknown> = {}, headers: Record<string, string> = asking) =>
  app.graphql(query, variables, { headers });
const costOf = (requested: number) => ({ cost: { requested, limit: 50_000 } });

it('an honest page of a panel passes, and a hostile document does not', async () => {
  const { json } = await ask(panel, {}, {});
  expect(json.data.viewer.organizations.nodes[0].projects.nodes).toHaveLength(2);
  expect((await ask(hostile, {}, {})).json).toEqual({
    errors: [{ message: 'The document is too large: complexity 2020202, at most 50000.', extensions: { code: 'invalid_request' } }],
  });
});

/** A document with so many fields, few of which have the same name. */
const broad = (fields: number) => {
  const lists = 'organizations(first: 1) { totalCount } organizationPage { count } '.repeat(37);
  return `{ viewer { ${'id name email created __typename '.repeat(70)} ${lists} ${'id '.repeat(fields - 499)} } }`;
};

it('a document may cost as much, be as broad and as deep as the limits say, and no more', async () => {
  const fields = (count: number) => 'id '.repeat(count);
  const dear = (more: string) =>
    `{ viewer { ${more} organizations(first: 78) { nodes { ${fields(39)} projects(first: 100) { nodes { ${fields(5)} } } } } } }`;
  const { json } = await ask(dear(''));
  expect([Object.keys(json), json.extensions]).toEqual([['data', 'extensions'], costOf(50_000)]);
  const deep = (last: string) => {
    let selection = last;
    for (let level = 0; level < 5; level += 1) selection = `{ nodes { organization { projects(first: 1) ${selection} } } }`;
    return `{ viewer { organizations(first: 1) { nodes { projects(first: 1) ${selection} } } } }`;
  };
  for (const document of [broad(500), deep('{ totalCount }')]) expect((await ask(document, {}, {})).json).not.toHaveProperty('errors');
  for (const [document, excess] of [
    [dear('id'), 'complexity 50001, at most 50000'],
    [broad(501), 'breadth 501, at most 500'],
    [deep('{ nodes { id } }'), 'depth 21, at most 20'],
  ] as const) {
    const message = `The document is too large: ${excess}.`;
    expect((await ask(document, {}, {})).json).toEqual({ errors: [{ message, extensions: { code: 'invalid_request' } }] });
  }
});

it('introspection is not repeated under other names', async () => {
  const { json } = await ask(getIntrospectionQuery(), {}, {});
  expect(json.data.__schema.types.length).toBeGreaterThan(50);
  const repeat = (times: number, text: (index: number) => string) => Array.from({ length: times }, (_, index) => text(index)).join(' ');
  const name = (index: number) => `a${index}: __type(name: "Query") { name }`;
  expect((await ask(`{ ${repeat(10, name)} }`, {}, {})).json.data.a9).toEqual({ name: 'Query' });
  expect((await ask('{ schema: __schema { types { called: name } } }', {}, {})).json.data.schema.types).toContainEqual({ called: 'Query' });
  const message =
    'Introspection takes at most 10 aliases of `__type`, 1 of `__schema`, 3 of fields without fields of their own, and none of others.';
  const refused = { errors: [{ message, extensions: { code: 'invalid_request' } }] };
  for (const query of [
    `{ ${repeat(11, name)} }`,
    `{ ${repeat(2, (index) => `a${index}: __schema { types { name } }`)} }`,
    '{ __schema { again: types { name } } }',
    '{ __schema { types { fields { name } again: fields { name } } } }',
    '{ __schema { ...F } } fragment F on __Schema { again: types { name } }',
    `{ __schema { types { ${repeat(4, (index) => `a${index}: name`)} } } }`,
  ])
    for (let time = 0; time < 2; time += 1) expect((await ask(query, {}, {})).json).toEqual(refused);
});

it('introspection of the whole schema takes no lists within lists, which would multiply the response to a short document', async () => {
  const message = 'Introspection of the whole schema takes no fields, interfaces or possible types below one another.';
  for (const query of [
    '{ __schema { types { fields { type { fields { name } } } } } }',
    '{ __schema { queryType { possibleTypes { inputFields { name } } } } }',
    '{ __schema { ...S } } fragment S on __Schema { types { ...T } } fragment T on __Type { fields { type { ...X } } } fragment X on __Type { interfaces { name } }',
  ]) {
    const { json } = await ask(query, {}, {});
    expect(json, query).toEqual({ errors: [{ message, locations: [expect.anything()], extensions: { code: 'invalid_request' } }] });
  }
  const one =
    '{ __type(name: "Query") { fields { type { fields { name } } } } __schema { types { fields { name } interfaces { name } } } }';
  expect((await ask(one, {}, {})).json.data.__type.fields[0].type).toHaveProperty('fields');
});

it('introspection costs enough to be executed one at a time for each user, and for all clients without a credential', async () => {
  expect((await ask('{ __schema { types { name } } }')).json.extensions).toEqual(costOf(2_001));
  expect((await ask('{ __type(name: "Query") { name } viewer { id } }')).json.extensions).toEqual(costOf(203));
  const acquire = vi.spyOn(KeyedSemaphore.prototype, 'acquire');
  await app.graphql(getIntrospectionQuery(), {}, { as: null });
  expect(acquire.mock.calls.map(([owner]) => owner)).toContain('anonymous');
  acquire.mockRestore();
});

it('clients without a credential share their turns to have documents checked: one of them may have many addresses', async () => {
  const take = vi.spyOn(Turns.prototype, 'take');
  const query = `{ ${'viewer { id } '.repeat(20)}}`;
  await app.graphql(`${query} # 1`, {}, { as: null });
  await app.graphql(`${query} # 2`, {}, {});
  expect(take.mock.calls).toEqual([['anonymous'], [expect.stringMatching(/^[0-9a-f-]{36}$/)]]);
  take.mockRestore();
});

it('a document has at most 500 fields, which is known before they are compared with each other', async () => {
  const validating = vi.spyOn(ValidationContext.prototype, 'getSchema');
  const { json } = await ask(`{ ${'viewer { id } '.repeat(251)}}`, {}, {});
  expect(json.errors).toEqual([
    { message: 'The document is too large: breadth 502, at most 500.', extensions: { code: 'invalid_request' } },
  ]);
  expect(validating).not.toHaveBeenCalled();
  expect((await ask(`${broad(500)} `, {}, {})).json.errors).toBeUndefined();
  expect(validating).toHaveBeenCalled();
  validating.mockRestore();
});

it('the introspection types can be introspected, without which Apollo Kotlin downloads no schema', async () => {
  const types = { schema: '__Schema', type: '__Type', directive: '__Directive', field: '__Field', inputValue: '__InputValue' };
  const fields = Object.entries(types).map(([alias, name]) => `${alias}: __type(name: "${name}") { ...TypeFields }`);
  const fragment = 'fragment TypeFields on __Type { fields { name args { name } } }';
  const { json } = await ask(`query PreIntrospectionQuery { ${fields.join(' ')} } ${fragment}`, {}, {});
  expect(json.data.inputValue.fields).toContainEqual({ name: 'deprecationReason', args: [] });
  expect(Object.keys(json.data)).toEqual(Object.keys(types));
});

describe('X-GraphQL-Cost: 1 adds the cost of a document to its response', () => {
  it('after the data', async () => {
    for (let time = 0; time < 3; time += 1) {
      const [plain, told] = [await ask(panel, {}, {}), await ask(panel)];
      expect(told.text).toBe(`${plain.text.slice(0, -1)},"extensions":${JSON.stringify(costOf(20_102))}}`);
    }
  });

  it('computed with the page sizes of its variables', async () => {
    for (const n of [1, 3, 100, 3]) expect((await ask(paged, { n })).json.extensions).toEqual(costOf(2 + 2 * n));
  });

  it('where the document is refused for its cost', async () => {
    const { status, json } = await ask(hostile);
    expect([status, Object.keys(json), json.extensions]).toEqual([200, ['errors', 'extensions'], costOf(2_020_202)]);
  });

  it('where a field of it fails, and where its variables do not fit', async () => {
    const failing = '{ project(id: "x") { id } }';
    expect((await ask(failing)).json).toMatchObject({ data: { project: null }, errors: [{}], extensions: costOf(2) });
    expect((await ask(paged, { n: 'x' })).json.errors).toHaveLength(1);
  });

  it('except where it is rejected before, as its variables may be as many as the body is long', async () => {
    for (const as of ['owner', null] as const) {
      const { json } = await app.graphql(
        `query ($n: [ID!]!) ${panel.replace('{', '{ nodes(ids: $n) { id }')}`,
        { n: [{}] },
        { headers: asking, as },
      );
      expect(Object.keys(json)).toEqual(as ? ['errors'] : ['errors', 'data']);
    }
    const began = performance.now();
    const many = Array(200_000).fill(true);
    expect((await ask('query ($n: [ID!]!) { nodes(ids: $n) { id } }', { n: many })).json.errors).toHaveLength(1);
    // Each item took some 50 µs.
    expect(performance.now() - began).toBeLessThan(5_000);
  });

  it('for a request by GET', async () => {
    const { json } = await app.ask('GET', `/graphql?query=${encodeURIComponent(panel)}`, { headers: asking });
    expect(json.extensions).toEqual(costOf(20_102));
  });
});

it.each([{}, { 'x-graphql-cost': '0' }, { 'x-graphql-cost': 'true' }, { 'x-graphql-cost': '' }])('no cost with %j', async (headers) => {
  for (const query of [panel, hostile])
    expect((await ask(query, {}, headers as Record<string, string>)).json).not.toHaveProperty('extensions');
});

it('v1 ignores X-GraphQL-Cost', async () => {
  const path = `${app.projectPath}/compute/overview`;
  const [plain, asked] = [await app.ask('GET', path), await app.ask('GET', path, { headers: asking })];
  expect(asked.text).toBe(plain.text);
});

describe('lists with a filter', () => {
  it('count as requests, each of them, as in v1', async () => {
    const limited = await startApp({ RATE_LIMIT_USER: '60' });
    try {
      let remaining = 60;
      const spend = async (fields: string, requests: number, variables: Record<string, unknown> = {}) => {
        const fragments = fields.includes('...F')
          ? 'fragment F on Project { filtered: instances(filter: $filter) { totalCount } ...G } fragment G on Project { id }'
          : '';
        const declared = { $filter: ': InstanceFilter', $with: ': Boolean = false' };
        const definitions = Object.entries(declared).flatMap(([name, type]) => ((fields + fragments).includes(name) ? name + type : []));
        const query = `query (${['$id: ID!', ...definitions].join(', ')}) { project(id: $id) { ${fields} } } ${fragments}`;
        await send(query, requests, { id: limited.demo.project_id, ...variables });
      };
      const send = async (query: string, requests: number, variables: Record<string, unknown>) => {
        const { json } = await limited.graphql(query, variables, { as: 'viewer' });
        remaining -= requests;
        const { headers } = await limited.graphql('{ viewer { id } }', {}, { as: 'viewer' });
        remaining -= 1;
        expect({ query, errors: json.errors, ratelimit: headers.ratelimit }).toMatchObject({
          query,
          errors: undefined,
          ratelimit: expect.stringMatching(`^"user";r=${remaining};`),
        });
      };
      const list = 'tasks(filter: { statuses: [failed] }) { totalCount }';
      const on = (alias: string, condition: string) => `${alias}: ${list.replace(')', `) ${condition}`)}`;
      await spend('id ...F', 1);
      await spend('instances { totalCount } tasks { totalCount } ...F', 1, { filter: null });
      await spend(list, 1);
      await spend(`${list} ${list} ...F ...F`, 2, { filter: { region: 'x' } });
      await spend(`${list} a: ${list} ${on('b', '@include(if: $with)')} ${on('c', '@skip(if: true)')}`, 2);
      await spend(`${list} a: ${list} ${on('b', '@include(if: $with)')}`, 3, { with: true });
      await spend(`instances(first: 1, filter: {}) { nodes { tasks(filter: {}) { totalCount } } }`, 2);
      const { organization_id: organizationId, project_id: projectId } = limited.demo;
      const filtered = ['a', 'b', 'c'].map((alias) => `${alias}: instances(filter: { region: "x" }) { totalCount }`).join(' ');
      const others = ['a', 'b', 'c'].map((alias) => `${alias}: projects { totalCount }`).join(' ');
      const nodes = `query ($ids: [ID!]!) { nodes(ids: $ids) { ... on Organization { ${others} } ... on Project { ${filtered} } } }`;
      await send(nodes, 3, { ids: [projectId] });
      const mark = `mutation ($input: MarkNotificationsReadInput!) { markNotificationsRead(input: $input) { project { ${filtered} } } }`;
      await send(mark, 4, { input: { organizationId, projectId, notificationIds: [] } });
      const all = Array.from({ length: 40 }, (_, index) => `a${index}: ${list}`).join(' ');
      const beyond = await limited.graphql(
        `query ($id: ID!) { project(id: $id) { ${all} } }`,
        { id: limited.demo.project_id },
        { as: 'viewer' },
      );
      expect({ status: beyond.status, data: beyond.json.data }).toEqual({ status: 429, data: undefined });
    } finally {
      await limited.close();
    }
  });
});

it('a message of graphql-js does not repeat a long literal', async () => {
  const long = '1'.repeat(60_000);
  for (const query of [`{ __type(name: ${long}) { name } }`, `{ viewer { organizations(first: "${long}") { totalCount } } }`]) {
    const { text, json } = await ask(query, {}, {});
    expect({ length: text.length < 1_000, end: json.errors[0].message.at(-1) }).toEqual({ length: true, end: '…' });
  }
});
