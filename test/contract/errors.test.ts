import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startApp, type TestApp } from '../support/app.ts';
import { operations } from '../support/contract.ts';
import { expandRefusal, expectHeadersOfAll, homeOf, type Refusal, refusals } from '../support/doors.ts';
import { anyUuid } from '../support/exact.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startApp({ RATE_LIMIT_ANONYMOUS: '1000' });
});
afterAll(() => app.close());

const invalid = (detail: string): Refusal => ({ detail, code: 'invalid_request' });
const targetOf = (path: string) => path.replace(/:(\w+)/g, (_, name: 'project_id') => homeOf(app)[name]);
const paths = [...new Set(Object.values(operations).map(({ path }) => path))];

describe('an unknown path', () => {
  for (const path of paths) {
    const known: string[] = Object.values(operations).flatMap((one) => (one.path === path ? [one.method.toUpperCase()] : []));
    const others = ['GET', 'POST', 'PUT', 'DELETE', 'PATCH', 'TRACE', 'SEARCH'].filter((method) => !known.includes(method));

    it(`${path} knows no ${others.join(', ')}`, async () => {
      for (const method of others) {
        const response = await app.ask(method, targetOf(path));
        expect([response.status, response.json], method).toEqual([404, expandRefusal(refusals.notFound)]);
        expectHeadersOfAll(response, {});
      }
    });

    it(`${path} is spelled in one way`, async () => {
      const target = targetOf(path);
      const [method] = known;
      for (const other of [
        `${target}/`,
        target.replace('/v1/', '/V1/'),
        target.replace('/organizations', '/Organizations'),
        `/${target}`,
      ]) {
        const response = await app.ask(String(method), other);
        expect([response.status, response.json], other).toEqual([404, expandRefusal(refusals.notFound)]);
      }
    });
  }

  it('is 401 below /v1 without a credential, and 404 elsewhere', async () => {
    for (const path of ['/v1', '/v1/', '/v1/nothing', `${app.projectPath}/compute`]) {
      const response = await app.ask('GET', path, { as: null });
      expect([response.status, response.json], path).toEqual([401, expandRefusal(refusals.anonymous)]);
      expect((await app.ask('GET', path)).status, path).toBe(404);
    }
    for (const path of ['/nothing', '/v2/organizations', '/graphql/', '/GraphQL', '/health/nothing']) {
      const response = await app.ask('GET', path, { as: null });
      expect([response.status, response.json], path).toEqual([404, expandRefusal(refusals.notFound)]);
      expect(response.headers['content-type']).toBe('application/json');
    }
  });
});

describe('the order of the checks', () => {
  const dashboard = () => `${app.projectPath}/monitoring/dashboards/${app.demo.dashboards.public}`;
  const put = (path: string, rest: object) => app.ask('PUT', path, rest);

  it('credential, body, access, fields, role, state', async () => {
    const malformed = `${app.projectPath}/monitoring/dashboards/x`;
    const foreign = dashboard().replace(app.demo.project_id, app.demo.foreign.project_id);
    const stale = { 'if-match': '"1"' };
    const responses = [
      await put(malformed, { as: null, body: '{', headers: stale }),
      await put(malformed, { as: 'viewer', body: '{', headers: stale }),
      await put(foreign, { as: 'viewer', body: '{', headers: stale }),
      await put(malformed, { as: 'viewer', body: { name: '' }, headers: stale }),
      await put(foreign, { as: 'viewer', body: { name: '' }, headers: stale }),
      await put(foreign, { as: 'viewer', body: { name: 'x' }, headers: stale }),
      await put(dashboard(), { as: 'viewer', body: { name: '' }, headers: stale }),
      await put(dashboard(), { as: 'viewer', body: { name: 'x' }, headers: stale }),
      await put(dashboard(), { as: 'admin', body: { name: 'x' }, headers: stale }),
    ];
    expect(responses.map(({ status, json }) => [status, json.code ?? Object.keys(json)])).toEqual([
      [401, 'not_authenticated'],
      [400, 'invalid_request'],
      [400, 'invalid_request'],
      [404, 'not_found'],
      [404, 'not_found'],
      [404, 'not_found'],
      [400, ['name']],
      [403, 'permission_denied'],
      [409, 'conflict'],
    ]);
  });

  it('a body that cannot be read, before its fields', async () => {
    const path = `${app.projectPath}/websocket-tickets`;
    const read = async (body: string, type = 'application/json') => {
      const { status, json } = await app.ask('POST', path, { body, headers: { 'content-type': type } });
      return [status, json];
    };
    expect(await read('{"target"')).toEqual([400, expandRefusal(invalid('The body is not valid JSON.'))]);
    expect(await read('[]')).toEqual([400, expandRefusal(invalid('The body must be a JSON object.'))]);
    expect(await read('target=console', 'text/plain')).toEqual([400, expandRefusal(invalid('The media type must be application/json.'))]);
    const tooLarge = JSON.stringify({ target: 'x'.repeat(1024 * 1024) });
    expect(await read(tooLarge)).toEqual([400, expandRefusal(invalid('The body must not be larger than 1048576 bytes.'))]);
    expect((await app.ask('POST', path, { body: { target: 'notifications' } })).status).toBe(201);
  });
});

describe('the GraphQL API', () => {
  const query = '{ viewer { id } }';
  const send = (body: unknown, headers: Record<string, string> = {}) => app.ask('POST', '/graphql', { body, headers });
  const errors = ({ detail, code }: Refusal) => ({ errors: [{ message: detail, extensions: { code } }] });

  it('refuses a body that cannot be read with the same words', async () => {
    for (const [body, detail] of [
      ['{"query"', 'The body is not valid JSON.'],
      ['5', 'The body must be a JSON object.'],
      ['[]', 'Batches are not supported: send each operation, a JSON object, in a request of its own.'],
      ['', 'The body must name a `query`.'],
    ]) {
      const response = await send(body);
      expect([response.status, response.json]).toEqual([400, errors(invalid(String(detail)))]);
      expectHeadersOfAll(response, {});
    }
  });

  it('refuses in the media type that the client prefers: Apollo Client reads the errors of a 401 in no other', async () => {
    const newer = 'application/graphql-response+json';
    const apollo = `${newer},application/json;q=0.9`;
    for (const [accept, mediaType] of [
      [apollo, `${newer}; charset=utf-8`],
      ['application/json', 'application/json'],
      ['text/event-stream', 'application/json'],
    ] as const) {
      const invalidKey = await app.ask('POST', '/graphql', { as: null, body: { query }, headers: { accept, authorization: 'Bearer x' } });
      expect([invalidKey.status, invalidKey.headers['content-type']]).toEqual([401, mediaType]);
      expect(invalidKey.json.errors[0].extensions).toEqual({ code: 'not_authenticated' });
      const unreadable = await send('[]', { accept });
      expect([unreadable.status, unreadable.headers['content-type']]).toEqual([400, mediaType]);
    }
    const v1 = await app.ask('GET', '/v1/organizations', { as: null, headers: { accept: apollo } });
    expect([v1.status, v1.headers['content-type']]).toEqual([401, 'application/json']);
  });

  it('answers an invalid document with the problem, as invalid_request', async () => {
    for (const document of [
      '{',
      '{ nothing }',
      'query A { __typename } query B { __typename }',
      '{ project }',
      'mutation { viewer { id } }',
    ]) {
      const { json } = await send({ query: document });
      expect(json.data ?? null).toBeNull();
      for (const { message, extensions } of json.errors) {
        expect(message).toEqual(expect.any(String));
        expect(extensions).toEqual({ code: 'invalid_request' });
      }
    }
  });

  it('answers field errors with 400 for the newer media type, and with 200 for JSON', async () => {
    const accept = 'application/graphql-response+json';
    const document = 'mutation ($input: CreateApiKeyInput!) { createApiKey(input: $input) { key } }';
    const newer = await send({ query: document, variables: { input: {} } }, { accept });
    expect([newer.status, newer.headers['content-type']]).toEqual([400, `${accept}; charset=utf-8`]);
    const older = await send({ query: document, variables: { input: {} } });
    expect([older.status, older.headers['content-type']]).toEqual([200, 'application/json; charset=utf-8']);
    expect(newer.json).toEqual(older.json);
    expect(newer.json.errors[0].extensions).toEqual({ code: 'validation_failed', fields: { name: ['This field is required.'] } });
  });

  it('gives each of several refusals its place, and the data of the rest', async () => {
    const document = `query ($o: ID!, $p: ID!) {
      good: project(organizationId: $o, id: $p) { name dashboard(id: "x") { id } instance(id: "y") { id } }
      bad: project(organizationId: $p, id: $o) { name }
    }`;
    const { json } = await app.graphql(document, { o: app.demo.organization_id, p: app.demo.project_id }, { as: 'viewer' });
    expect(json.data).toEqual({ good: { name: 'Production', dashboard: null, instance: null }, bad: null });
    const places = json.errors.map(({ path, extensions }: { path: string[]; extensions: object }) => [path.join('.'), extensions]);
    const code = 'not_found';
    expect(places.sort()).toEqual([
      ['bad', { code }],
      ['good.dashboard', { code }],
      ['good.instance', { code }],
    ]);
  });

  it('has no message that names a type of its schema in a field error', async () => {
    const input = { name: 5, description: 5, isDefault: 'x', project: 5, expectedVersion: 'x', widgets: undefined, bogus: 1 };
    const document = 'mutation ($input: UpdateDashboardInput!) { updateDashboard(input: $input) { dashboard { id } } }';
    const { text, json } = await send({ query: document, variables: { input } });
    expect(Object.keys(json.errors[0].extensions.fields).sort()).toEqual(
      ['bogus', 'description', 'expectedVersion', 'id', 'isDefault', 'name', 'organizationId', 'project', 'projectId'].sort(),
    );
    expect(text).not.toMatch(/UpdateDashboardInput|Boolean|\bInt\b|\bID\b|\bText\b|\bName\b|"\$/);
  });

  it('accepts GET for queries alone', async () => {
    const get = (document: string) => app.ask('GET', `/graphql?query=${encodeURIComponent(document)}`);
    expect((await get(query)).json).toEqual({ data: { viewer: { id: app.demo.users.owner.id } } });
    const refused = await get('mutation { revokeApiKey(input: {id: "x"}) { apiKey { id } } }');
    expect([refused.status, refused.json.errors[0].extensions]).toEqual([405, { code: 'invalid_request' }]);
  });
});

describe('a defect', () => {
  it('is 500 without a word about its cause, which the log has under the id of the request', async () => {
    const { database } = app.app;
    const headers = { 'x-request-id': 'the-one-that-fails' };
    await database.prisma.$executeRaw`ALTER TABLE instance_counters RENAME COLUMN instances TO instances_away`;
    const document = `query ($o: ID!, $p: ID!) { project(organizationId: $o, id: $p) { name computeOverview { instancesTotal } } }`;
    try {
      const response = await app.ask('GET', `${app.projectPath}/compute/overview`, { headers });
      const refusal = { detail: 'An internal error occurred.', code: 'internal_error' };
      expect([response.status, response.json]).toEqual([500, expandRefusal(refusal)]);
      expectHeadersOfAll({ ...response, headers: { ...response.headers, 'x-request-id': app.demo.project_id } }, {});

      const byGraphql = await app.graphql(document, { o: app.demo.organization_id, p: app.demo.project_id }, { headers });
      expect(byGraphql.json.data).toEqual({ project: null });
      expect(byGraphql.json.errors).toEqual([
        { message: refusal.detail, locations: expect.any(Array), path: ['project', 'computeOverview'], extensions: { code: refusal.code } },
      ]);
      expect(response.text + byGraphql.text).not.toMatch(/instances\b|does not exist|prisma|select/i);
    } finally {
      await database.prisma.$executeRaw`ALTER TABLE instance_counters RENAME COLUMN instances_away TO instances`;
    }
    const lines = app.logLines.map((line) => JSON.parse(line)).filter((line) => line.request_id === 'the-one-that-fails');
    const causes = lines.filter(({ level }) => level === 'error');
    expect(causes).toHaveLength(2);
    for (const { err } of causes) expect(JSON.stringify(err)).toMatch(/column.*instances/);
    expect((await app.ask('GET', `${app.projectPath}/compute/overview`)).status).toBe(200);
  });
});

it('gives every response an id, taken from the request where it is sane', async () => {
  const idOf = async (given?: string) => {
    const headers = given === undefined ? {} : { 'x-request-id': given };
    return (await app.ask('GET', '/nothing', { headers, as: null })).headers['x-request-id'];
  };
  for (const sane of ['a', 'trace-1.2_3', 'x'.repeat(128)]) expect(await idOf(sane)).toBe(sane);
  for (const odd of [undefined, '', 'x'.repeat(129), 'a b', 'a,b', '<script>', 'ü', '{"a":1}', 'sk-x', 'a-sk-portico-x', 'a.eyJ'])
    expect(await idOf(odd), odd).toEqual(anyUuid);
  expect(app.logLines.some((line) => JSON.parse(line).request_id === 'trace-1.2_3')).toBe(true);
});
