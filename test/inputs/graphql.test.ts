import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startApp, type TestApp } from '../support/app.ts';
import { graphqlDoors, verdictOf } from '../support/graphql-doors.ts';
import { expectGraphql, expectUnharmed, graphqlFields, graphqlInvalid, graphqlRefusal } from '../support/inputs.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startApp({ RATE_LIMIT_ANONYMOUS: '10000' });
});
afterAll(() => app.close());

const typename = { data: { __typename: 'Query' } };
const ask = (body: string, headers = {}) => app.ask('POST', '/graphql', { body, headers });
const get = (query: string, headers = {}) => app.ask('GET', `/graphql?${query}`, { headers });
const undetermined = graphqlInvalid('Could not determine what operation to execute.');
const unknown = graphqlInvalid('The document has no operation with the given name.');
const notSupported = graphqlRefusal('PERSISTED_QUERY_NOT_SUPPORTED', 'PersistedQueryNotSupported');
const noQuery = graphqlInvalid('Must provide query string.');
const expected = (name: string, kind: string, given: string) =>
  graphqlInvalid(`Expected "${name}" param to be ${kind}, but given ${given}.`);
const unexpected = (name: string) => graphqlInvalid(`Unexpected parameter "${name}" in the request body.`);

describe('a POST', () => {
  const Q = '"query":"{ __typename }"';
  it.each<[string, number, unknown]>([
    ['{"query":5}', 400, expected('query', 'a string', 'number')],
    ['{"query":["{ __typename }"]}', 400, expected('query', 'a string', 'array')],
    ['{"query":{"a":1}}', 400, expected('query', 'a string', 'object')],
    ['{"query":{"toString":1,"valueOf":2}}', 400, expected('query', 'a string', 'object')],
    ['{"query":true}', 400, expected('query', 'a string', 'boolean')],
    ['{"query":null}', 400, noQuery],
    ['{"variables":{}}', 400, noQuery],
    ['{"extensions":{"persistedQuery":{"version":2,"sha256Hash":"x"}}}', 400, noQuery],
    ['{"extensions":{"persistedQuery":{"version":1,"sha256Hash":"x"}}}', 200, notSupported],
    [`{${Q},"variables":[]}`, 400, expected('variables', 'empty or an object', 'array')],
    [`{${Q},"variables":"{}"}`, 400, expected('variables', 'empty or an object', 'string')],
    [`{${Q},"variables":5}`, 400, expected('variables', 'empty or an object', 'number')],
    [`{${Q},"variables":false}`, 400, expected('variables', 'empty or an object', 'boolean')],
    [`{${Q},"extensions":[]}`, 400, expected('extensions', 'empty or an object', 'array')],
    [`{${Q},"extensions":"x"}`, 400, expected('extensions', 'empty or an object', 'string')],
    [`{${Q},"operationName":"X"}`, 400, unknown],
    [`{${Q},"operationName":"${'X'.repeat(200)}"}`, 400, unknown],
    ['{"query":"query A { __typename } query B { __typename }","operationName":"C"}', 400, unknown],
    ['{"query":"query A { __typename }","operationName":"\\"\\n"}', 400, unknown],
    [`{${Q},"operationName":5}`, 400, undetermined],
    [`{${Q},"operationName":["A"]}`, 400, undetermined],
    [`{${Q},"operationName":"__proto__"}`, 400, unknown],
    ['{"query":"{ __typename } { __typename }"}', 400, undetermined],
    ['{"query":"query A { __typename } query B { __typename }"}', 400, undetermined],
    [`{${Q},"id":"x"}`, 400, unexpected('id')],
    [`{${Q},"__proto__":{"query":"x"}}`, 400, unexpected('__proto__')],
    ['{"__proto__":{"query":"{ __typename }"}}', 400, unexpected('__proto__')],
    ['{"constructor":1}', 400, unexpected('constructor')],
    ['{"operations":"{}","map":"{}","0":null}', 400, unexpected('operations')],
  ])('%s', async (body, status, response) => expectGraphql(await ask(body), status, response));

  it.each([
    `{${Q},"variables":null,"operationName":null,"extensions":null}`,
    `{${Q},"operationName":""}`,
    `{${Q},"variables":{"a":1,"__proto__":{"b":2}}}`,
    `{${Q},"extensions":{"persistedQuery":{"version":1,"sha256Hash":"x"},"__proto__":1}}`,
    `{"query":"{ nope }",${Q}}`,
    '{"query":"query A { nope: __typename } query B { __typename }","operationName":"B"}',
    '{"query":"\\ufeff{ __typename }"}',
    '{"query":"# a\\r\\n,,,{,__typename,},"}',
  ])('taken: %s', async (body) => expectGraphql(await ask(body), 200, typename));

  it('whose query is a list within thousands of lists is refused', async () => {
    const query = '['.repeat(20_000) + ']'.repeat(20_000);
    expectGraphql(await ask(`{"query":${query}}`), 400, expected('query', 'a string', 'array'));
  });

  it('of a batch is refused whole', async () => {
    const refused = graphqlInvalid('Batches are not supported: send each operation, a JSON object, in a request of its own.');
    for (const body of ['[{"query":"{ __typename }"},{"query":"{ __typename }"}]', '[{"query":"{ __typename }"}]', '[]'])
      expectGraphql(await ask(body), 400, refused);
  });

  it('with a documentId, as in the draft of GraphQL over HTTP, is refused with the supported forms', async () => {
    const refused = graphqlInvalid(
      'A `documentId` is not supported: send the document as `query`, or its hash in `extensions.persistedQuery`.',
    );
    const id = `sha256:${'a'.repeat(64)}`;
    for (const more of ['', ',"variables":{}', `,${Q}`]) expectGraphql(await ask(`{"documentId":"${id}"${more}}`), 400, refused);
    expectGraphql(await app.ask('GET', `/graphql?documentId=${id}`), 400, refused);
    expectGraphql(await app.ask('GET', `/graphql?query={__typename}&documentId=${id}`), 400, refused);
  });

  it.each([
    'application/graphql',
    'text/plain',
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=x',
    'application/graphql+json',
  ])('as %s runs nothing', async (type) => {
    const before = await app.app.database.prisma.apiKey.count();
    const mutation = 'mutation { createApiKey(input: {name: "x"}) { key } }';
    const bodies = [
      JSON.stringify({ query: mutation }),
      `query=${encodeURIComponent(mutation)}`,
      mutation,
      `--x\r\nContent-Disposition: form-data; name="operations"\r\n\r\n${JSON.stringify({ query: mutation })}\r\n--x--\r\n`,
    ];
    for (const body of bodies) {
      expectGraphql(await ask(body, { 'content-type': type }), 400, graphqlInvalid('The media type must be application/json.'));
    }
    expect(await app.app.database.prisma.apiKey.count()).toBe(before);
  });
});

describe('a GET', () => {
  const Q = `query=${encodeURIComponent('{ __typename }')}`;
  const V = `query=${encodeURIComponent('query($skip: Boolean!) { __typename @skip(if: $skip) }')}`;
  const twice = (name: string) => graphqlInvalid(`The parameter \`${name}\` is given more than once.`);
  const noJson = (name: string) => graphqlInvalid(`The parameter \`${name}\` is not valid JSON.`);
  it.each<[string, number, unknown]>([
    [`${V}&variables=${encodeURIComponent('{"skip":false}')}`, 200, typename],
    [`${V}&variables=${encodeURIComponent('{"skip":true}')}`, 200, { data: {} }],
    [V, 200, graphqlFields({ skip: ['This field is required.'] })],
    [`${V}&variables=${encodeURIComponent('{"skip":"false"}')}`, 200, graphqlFields({ skip: ['Must be a valid boolean.'] })],
    [`${Q}&variables={`, 400, noJson('variables')],
    [`${Q}&variables=undefined`, 400, noJson('variables')],
    [`${Q}&extensions=x`, 400, noJson('extensions')],
    [`${Q}&variables=[]`, 400, expected('variables', 'empty or an object', 'array')],
    [`${Q}&variables=5`, 400, expected('variables', 'empty or an object', 'number')],
    [`${Q}&variables=null&extensions=null`, 200, typename],
    [`${Q}&variables=&extensions=&operationName=`, 200, typename],
    [`${Q}&operationName=X`, 400, unknown],
    [`${Q}&${Q}`, 400, twice('query')],
    [`${Q}&variables={}&variables={}`, 400, twice('variables')],
    [`${Q}&operationName=A&operationName=A`, 400, twice('operationName')],
    ['', 400, noQuery],
    ['query=', 400, noQuery],
    ['query[]=1', 400, noQuery],
    ['x=/graphql/never', 400, noQuery],
    ['query=%ff', 400, graphqlInvalid('The query string is not valid.')],
    [`${Q}&variables=${'%7B%22a%22:%22%ed%a0%80%22%7D'}`, 400, graphqlInvalid('The query string is not valid.')],
    [
      `query=${encodeURIComponent('{ a?b }')}`,
      200,
      graphqlInvalid('Syntax Error: Unexpected character: "?".', { locations: [{ line: 1, column: 4 }] }),
    ],
  ])('%s', async (query, status, response) => expectGraphql(await get(query), status, response));

  it('runs no mutation', async () => {
    const before = await app.app.database.prisma.apiKey.count();
    const refused = graphqlInvalid('Can only perform a mutation operation from a POST request.');
    const documents = [
      'mutation { createApiKey(input: {name: "x"}) { key } }',
      'query A { __typename } mutation B { createApiKey(input: {name: "x"}) { key } }',
    ];
    for (const [index, document] of documents.entries()) {
      const response = await get(`query=${encodeURIComponent(document)}${index ? '&operationName=B' : ''}`);
      expectGraphql(response, 405, refused);
      expect(response.headers.allow).toBe('POST');
    }
    expect(await app.app.database.prisma.apiKey.count()).toBe(before);
  });

  it('has the same headers by HEAD, without a body', async () => {
    const [plain, head] = [await get(Q), await app.ask('HEAD', `/graphql?${Q}`)];
    expect({ status: head.status, text: head.text, type: head.headers['content-type'] }).toEqual({
      status: 200,
      text: '',
      type: plain.headers['content-type'],
    });
    expect(app.logLines.map((line) => JSON.parse(line)).filter(({ method }) => method === 'HEAD')).toHaveLength(1);
  });
});

describe('another method', () => {
  it.each(['PUT', 'DELETE', 'PATCH', 'TRACE', 'PROPFIND'])('%s', async (method) => {
    const refused = graphqlInvalid('GraphQL only supports GET and POST requests.');
    expectGraphql(await app.ask(method, '/graphql?query={__typename}'), 405, refused);
    if (method === 'TRACE') return;
    const body = '{"query":"{ __typename }"}';
    expectGraphql(await app.ask(method, '/graphql', { body, headers: { 'content-length': body.length } }), 405, refused);
  });
});

describe('Accept', () => {
  const failing = '{"query":"{ xyzzy }"}';
  const refused = graphqlInvalid('Cannot query field "xyzzy" on type "Query".', { locations: [{ line: 1, column: 3 }] });

  it.each([
    '*/*',
    'application/*',
    'application/json',
    'text/html',
    'image/png',
    'multipart/mixed',
    'foo',
    ';',
    'application/json; charset=utf-16',
    'application/json;q=0',
    '',
  ])('%j is answered with JSON', async (accept) => {
    expectGraphql(await ask('{"query":"{ __typename }"}', { accept }), 200, typename);
    expectGraphql(await get('query={__typename}', { accept }), 200, typename);
    expectGraphql(await ask(failing, { accept }), 200, refused);
  });

  it('of more characters than any client needs is ignored, also where a page would be', async () => {
    const accept = (length: number) => `text/html,${'x'.repeat(length - 10)}`;
    const pageWith = (length: number) => app.ask('GET', '/graphql', { as: null, headers: { accept: accept(length) } });
    expect((await pageWith(1_000)).headers['content-type']).toBe('text/html; charset=utf-8');
    expectGraphql(await pageWith(1_001), 400, noQuery);
  });

  it('application/graphql-response+json has statuses', async () => {
    const accept = 'application/graphql-response+json';
    const responses = [await ask('{"query":"{ __typename }"}', { accept }), await ask(failing, { accept })];
    expect(responses.map(({ status, json }) => ({ status, json }))).toStrictEqual([
      { status: 200, json: typename },
      { status: 400, json: refused },
    ]);
    for (const { headers } of responses) expect(headers['content-type']).toBe(`${accept}; charset=utf-8`);
  });

  it.each(['application/json', 'application/graphql-response+json', 'text/html', 'multipart/mixed'])(
    '%s cannot take a subscription',
    async (accept) => {
      const { organization_id, project_id } = app.demo;
      const query = `subscription { notificationFeed(organizationId: "${organization_id}", projectId: "${project_id}") { __typename } }`;
      const { status, text } = await ask(JSON.stringify({ query }), { accept });
      expect(status).toBe(accept.includes('graphql-response') ? 400 : 200);
      expect(text).toContain(JSON.stringify(graphqlInvalid('A subscription needs a client that takes text/event-stream, or a WebSocket.')));
      const head = await app.ask('HEAD', `/graphql?query=${encodeURIComponent(query)}`, { headers: { accept: 'text/event-stream' } });
      expect(head.text).toBe('');
    },
  );

  it('of a browser returns the page, and of no other client', async () => {
    const browser = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8';
    const page = await app.ask('GET', '/graphql', { as: null, headers: { accept: browser } });
    expect(page.headers['content-type']).toBe('text/html; charset=utf-8');
    expect(page.text).toMatch(/^\s*<!doctype html>/i);
    expect(page.headers.ratelimit).toBeUndefined();
    expectGraphql(await app.ask('GET', '/graphql?query={__typename}', { as: null, headers: { accept: browser } }), 200, typename);
    expectGraphql(await app.ask('GET', '/graphql', { as: null }), 400, noQuery);
  });
});

describe('a credential that is not valid', () => {
  it.each(['{"query":"{ __typename }"}', '{"query":"{ __schema { queryType { name } } }"}', '{', '[]', '{"query":"{"}'])(
    'comes before %s',
    async (body) => {
      const response = await app.ask('POST', '/graphql', { body, as: { bearer: 'x' } });
      expectGraphql(response, 401, graphqlRefusal('not_authenticated', 'The credential is not valid.'));
    },
  );
});

it('leaves the server unharmed', () => expectUnharmed(app));

it.each(Object.entries(graphqlDoors))('an empty operationName is none, through %s', async (_door, send) => {
  expect(verdictOf(await send(app, { query: 'query A { __typename }', operationName: '' }))).toEqual({ data: { __typename: 'Query' } });
  const several = await send(app, { query: 'query A { __typename } query B { __typename }', operationName: '' });
  expect(several.errors).toHaveLength(1);
});

it('an empty query of a POST is a syntax error', async () => {
  const { status, json } = await ask('{"query":""}');
  expect({ status, code: json.errors[0].extensions.code, message: json.errors[0].message }).toEqual({
    status: 200,
    code: 'invalid_request',
    message: 'Syntax Error: Unexpected <EOF>.',
  });
});
