import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startApp, type TestApp } from '../support/app.ts';
import { anyUuid } from '../support/exact.ts';
import { expectGraphql, expectRest, expectUnharmed, graphqlRefusal, invalid, notProvided, notValid } from '../support/inputs.ts';

let app: TestApp;
let notifications: string;
let dashboard: string;
beforeAll(async () => {
  app = await startApp({ RATE_LIMIT_ANONYMOUS: '10000' });
  notifications = `${app.projectPath}/notifications`;
  dashboard = `${app.projectPath}/monitoring/dashboards/${app.demo.dashboards.private}`;
});
afterAll(() => app.close());

const viewerQuery = 'query=%7Bviewer%7Bemail%7D%7D';

describe('Content-Type', () => {
  it.each([
    ['application/json', 'text/plain'],
    ['text/plain', 'application/json'],
    ['application/json', 'application/json'],
  ])('twice (%s, %s): 400', async (...types) => {
    const credential = ['Host', 'x', 'Authorization', `Bearer ${app.demo.users.owner.token}`];
    const headers = [...credential, ...types.flatMap((type) => ['Content-Type', type])];
    const detail = 'The header Content-Type is given more than once.';
    expectRest(await app.ask('POST', `${notifications}/read`, { headers, body: '{}' }), 400, invalid(detail));
    const response = await app.ask('POST', '/graphql', { headers, body: '{"query":"{ viewer { id } }"}' });
    expectGraphql(response, 400, graphqlRefusal('invalid_request', detail));
  });
});

describe('Authorization', () => {
  /** Headers as they are, several of one name too. */
  const raw = (...values: string[]) => ['Host', 'x', ...values.flatMap((value) => ['Authorization', value])];
  const token = () => app.demo.users.owner.token ?? '';
  const key = () => app.demo.users.owner.api_key;

  it.each<[string, () => string[]]>([
    ['twice', () => raw(`Bearer ${token()}`, `Bearer ${token()}`)],
    ['twice, the first good', () => raw(`Bearer ${token()}`, 'Bearer x')],
    ['twice, the second good', () => raw('Bearer x', `Bearer ${token()}`)],
    ['twice, one empty', () => raw(`Bearer ${token()}`, '')],
    ['two in one', () => raw(`Bearer ${token()}, Bearer ${token()}`)],
    ['of the scheme Basic', () => raw(`Basic ${Buffer.from(`owner:${token()}`).toString('base64')}`)],
    ['of the scheme Digest', () => raw(`Digest ${token()}`)],
    ['without a scheme', () => raw(token())],
    ['empty', () => raw('')],
    ['a scheme alone', () => raw('Bearer')],
    ['a scheme and blanks', () => raw('Bearer   ')],
    ['a scheme without a blank', () => raw(`Bearer${token()}`)],
    ['a scheme and a tab', () => raw(`Bearer\t${token()}`)],
    ['a scheme twice', () => raw(`Bearer Bearer ${token()}`)],
    ['a token in quotes', () => raw(`Bearer "${token()}"`)],
    ['a token with something behind it', () => raw(`Bearer ${token()} x`)],
    ['a token with letters of latin1', () => raw(`Bearer ${token()}\u00e9`)],
    ['a token of 12,000 characters', () => raw(`Bearer ${'a'.repeat(12_000)}`)],
    ['a key behind the scheme Token', () => raw(`Token ${key()}`)],
  ])('%s: 401', async (_label, headers) => {
    expectRest(await app.ask('GET', notifications, { headers: headers() }), 401, notValid);
    const response = await app.ask('GET', `/graphql?${viewerQuery}`, { headers: headers() });
    expectGraphql(response, 401, graphqlRefusal('not_authenticated', notValid.detail));
    expect(response.headers['www-authenticate']).toBe('Bearer');
  });

  it.each<[string, () => string]>([
    ['in lower case', () => `bearer ${token()}`],
    ['in capitals', () => `BEARER ${token()}`],
    ['with several blanks', () => `Bearer    ${token()}   `],
    ['with a key', () => `bearer ${key()}`],
  ])('%s: taken', async (_label, value) => {
    expect((await app.ask('GET', notifications, { headers: raw(value()) })).status).toBe(200);
    const response = await app.ask('GET', `/graphql?${viewerQuery}`, { headers: raw(value()) });
    expectGraphql(response, 200, { data: { viewer: { email: app.demo.users.owner.email } } });
  });

  it('is no longer read when it is longer than all headers may be', async () => {
    const response = await app.ask('GET', notifications, { headers: raw(`Bearer ${'a'.repeat(100_000)}`) });
    expectRest(response, 400, invalid('The request line and headers are too large.'));
  });

  it('is nowhere else: not in another header, the query, a cookie or the body', async () => {
    const headers = {
      'x-authorization': `Bearer ${token()}`,
      'proxy-authorization': `Bearer ${token()}`,
      cookie: `session=${token()}`,
      'x-api-key': key(),
    };
    const path = `${notifications}?access_token=${token()}&token=${token()}&authorization=Bearer%20${token()}`;
    expectRest(await app.ask('GET', path, { as: null, headers }), 401, notProvided);
    const body = { query: '{ viewer { id } }', token: token(), authorization: token() };
    const response = await app.ask('POST', '/graphql', { as: null, headers, body: { query: body.query } });
    expectGraphql(response, 200, { data: { viewer: null } });
  });
});

describe('X-Request-Id', () => {
  it.each(['a', '0', 'A-b_c.9', '__proto__', 'x'.repeat(128), 'f81d4fae-7dec-11d0-a765-00a0c91e6bf6'])('sane: %s', async (id) => {
    app.logLines.length = 0;
    const { headers } = await app.ask('GET', notifications, { headers: { 'x-request-id': id } });
    expect(headers['x-request-id']).toBe(id);
    expect(app.logLines.map((line) => JSON.parse(line).request_id)).toContain(id);
  });

  it.each([
    '',
    ' ',
    'a b',
    'a,b',
    'x'.repeat(129),
    'ü',
    '<script>',
    '{"a":1}',
    'a"b',
    "';--",
    '../../x',
    'a/b',
    'a\tb',
    'sk-portico-0',
    'eyJhbGciOi',
  ])('insane: %j', async (id) => {
    app.logLines.length = 0;
    const { headers } = await app.ask('GET', notifications, { headers: { 'x-request-id': Buffer.from(id).toString('latin1') } });
    expect(headers['x-request-id']).toEqual(anyUuid);
    if (id.trim()) expect(app.logLines.join('\n')).not.toContain(`"${id}"`);
  });

  it('given twice is none', async () => {
    const headers = ['Host', 'x', 'X-Request-Id', 'a', 'X-Request-Id', 'b'];
    expect((await app.ask('GET', '/', { headers })).headers['x-request-id']).toEqual(anyUuid);
  });
});

describe('If-Match', () => {
  const stale = (version: number) => ({
    detail: 'The dashboard has been changed since the expected version.',
    code: 'conflict',
    error: 'The dashboard has been changed since the expected version.',
    context: { version },
  });

  it.each(['"9999999999"', '"99999999999999999999"', 'W/"9999999999"'])('a tag that never was: %s', async (tag) => {
    const version = await currentVersion();
    const headers = { 'if-match': tag };
    expectRest(await app.ask('PUT', dashboard, { body: { name: 'x' }, headers }), 409, stale(version));
    expectRest(await app.ask('DELETE', dashboard, { headers }), 409, stale(version));
    expect(await currentVersion()).toBe(version);
  });

  const unreadable = invalid('If-Match must be an entity tag that a response had, such as "2".');

  it.each([
    '"0"',
    '"-1"',
    '"01"',
    '"1.0"',
    '"+1"',
    '"１"',
    '""',
    '"x"',
    '1',
    'w/"1"',
    'W/1',
    'W/ "1"',
    'W/W/"1"',
    '"1-"',
    '"1-x"',
    '"1gzip"',
    '"1-gzip-br"',
    "'1'",
    '"1',
    '1"',
    '"1"x',
    '*, "1"',
    '**',
    '""1""',
    'null',
  ])('an invalid tag: %s', async (tag) => {
    const version = await currentVersion();
    const headers = { 'if-match': Buffer.from(tag.replaceAll('1', String(version))).toString('latin1') };
    expectRest(await app.ask('PUT', dashboard, { body: { name: 'x' }, headers }), 400, unreadable);
    expectRest(await app.ask('DELETE', dashboard, { headers }), 400, unreadable);
    expect(await currentVersion()).toBe(version);
  });

  it('empty', async () => {
    expectRest(await app.ask('PUT', dashboard, { body: { name: 'x' }, headers: { 'if-match': '' } }), 400, unreadable);
  });

  it.each(['"1", "2"', '"1","1"', '"1", W/"1"'])('several: %s', async (tags) => {
    const version = await currentVersion();
    const headers = { 'if-match': tags };
    expectRest(await app.ask('PUT', dashboard, { body: { name: 'x' }, headers }), 400, invalid('If-Match must name one entity tag.'));
    const twice = [
      'Host',
      'x',
      'Authorization',
      `Bearer ${app.demo.users.owner.token}`,
      'If-Match',
      `"${version}"`,
      'If-Match',
      `"${version}"`,
    ];
    expectRest(await app.ask('DELETE', dashboard, { headers: twice }), 400, invalid('If-Match must name one entity tag.'));
    expect(await currentVersion()).toBe(version);
  });

  it.each(['*', ' * ', '"1"', ' "1" ', 'W/"1"', '"1-gzip"', 'W/"1-br"', '"1-zstd"'])('taken: %j', async (tag) => {
    const version = await currentVersion();
    const headers = { 'if-match': tag.replace('1', String(version)) };
    const response = await app.ask('PUT', dashboard, { body: { name: `after ${tag}` }, headers });
    expect(response.status, response.text).toBe(200);
    expect(response.headers.etag).toBe(`"${version + 1}"`);
  });

  it('is nothing to a route without a version', async () => {
    const headers = { 'if-match': '"1", "2"' };
    expect((await app.ask('GET', dashboard, { headers })).status).toBe(200);
    expect((await app.ask('POST', `${app.projectPath}/monitoring/dashboards`, { body: { name: 'x' }, headers })).status).toBe(201);
  });

  async function currentVersion(): Promise<number> {
    const { headers } = await app.ask('GET', dashboard);
    return Number(/^"(\d+)"$/.exec(String(headers.etag))?.[1]);
  }
});

describe('other headers', () => {
  it.each([
    ['Accept', 'text/html'],
    ['Accept', 'image/png;q=1, application/xml'],
    ['Accept', ';;;'],
    ['Accept-Encoding', 'gzip, br, *;q=0'],
    ['Accept-Charset', 'utf-16'],
    ['Range', 'bytes=0-1'],
    ['If-None-Match', '*'],
    ['If-Modified-Since', 'Sun, 06 Nov 2094 08:49:37 GMT'],
    ['Expect', 'a-miracle'],
    ['Content-Length', '0'],
    ['Cookie', '=;;==; session'],
    ['Origin', 'null'],
    ['Host', ''],
    ['Host', '[::1]:4000'],
    ['Host', 'a_b.example:'],
    ['X-Forwarded-For', '1.2.3.4, %%%'],
    ['X-Forwarded-Proto', 'https'],
    ['X-Forwarded-Host', 'evil.example'],
  ])('%s: %s changes nothing', async (name, value) => {
    const headers = ['Authorization', `Bearer ${app.demo.users.owner.token}`, ...(name === 'Host' ? [] : ['Host', 'x']), name, value];
    const { status, json } = await app.ask('GET', `${app.projectPath}/compute/overview`, { headers });
    expect(status).toBe(200);
    expect(json).toHaveLength(1);
  });

  it.each(['a b', 'a/b', 'user@a', 'a?b', 'a#b', 'a:b', 'a:80:80', 'a:65536', '[::1', '%zz', ':80', 'ü', 'a'.repeat(256), 'a:000080'])(
    'Host: %s is 400',
    async (host) => {
      const headers = ['Authorization', `Bearer ${app.demo.users.owner.token}`, 'Host', host];
      const { status, json } = await app.ask('GET', `${app.projectPath}/compute/tasks`, { headers });
      expect({ status, json }).toMatchObject({ status: 400, json: { code: 'invalid_request', detail: 'The header Host is not a host.' } });
    },
  );
});

it('leaves the server unharmed', () => expectUnharmed(app));
