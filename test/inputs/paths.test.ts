import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { routes } from '../../src/transport/rest/routes.ts';
import { startApp, type TestApp } from '../support/app.ts';
import { isPicked } from '../support/cases.ts';
import { expectRest, expectUnharmed, invalid, notFound, notProvided, notValid } from '../support/inputs.ts';
import { openWire } from '../support/wire.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startApp({ RATE_LIMIT_ANONYMOUS: '10000' });
});
afterAll(() => app.close());

const paths = [...new Set(routes.map(({ path }) => path))];
const methodsOf = (path: string) => routes.filter((route) => route.path === path).map(({ method }) => method.toUpperCase());

/** The values of the parameters, so that a route's path leads to something of the demo. */
function parameters(): Record<string, string> {
  const { organization_id, project_id, instances, dashboards } = app.demo;
  return { organization_id, project_id, instance_id: instances.eligible, dashboard_id: dashboards.public };
}

const fill = (path: string, values: Record<string, string>) => path.replace(/:(\w+)/g, (_, name: string) => values[name] ?? '');
const namesIn = (path: string) => [...path.matchAll(/:(\w+)/g)].map(([, name = '']) => name);

/** What stands behind the path is not told to anybody without a credential; with one, it is not there. */
async function expectAbsent(path: string, method = 'GET'): Promise<void> {
  expectRest(await app.ask(method, path), 404, notFound);
  const isV1 = path.startsWith('/v1/') || path === '/v1' || path.startsWith('/v1?');
  expectRest(await app.ask(method, path, { as: null }), isV1 ? 401 : 404, isV1 ? notProvided : notFound);
  expectRest(await app.ask(method, path, { as: { bearer: 'x' } }), 401, notValid);
  const options = await app.ask('OPTIONS', path, { as: null });
  expect({ status: options.status, text: options.text }).toEqual({ status: 204, text: '' });
}

const wrong: Record<string, (path: string) => string> = {
  'a slash at the end': (path) => `${path}/`,
  'two slashes at the end': (path) => `${path}//`,
  'two slashes at the beginning': (path) => `/${path}`,
  'two slashes inside': (path) => path.replace('/projects/', '//projects/'),
  'another letter case of the version': (path) => path.replace('/v1/', '/V1/'),
  'another letter case of a segment': (path) => path.replace('/projects/', '/Projects/'),
  'another version': (path) => path.replace('/v1/', '/v2/'),
  'no version': (path) => path.replace('/v1/', '/'),
  'a segment more': (path) => `${path}/x`,
  'a byte that is never UTF-8': (path) => `${path}/%ff`,
  'a byte that is never UTF-8, for a parameter': (path) => path.replace(/organizations\/[^/]+/, 'organizations/%ff'),
  'half an escape': (path) => path.replace(/organizations\/[^/]+/, 'organizations/%4'),
  'a percent sign': (path) => `${path}%`,
  NUL: (path) => `${path}%00`,
  'two dots, escaped': (path) => `${path}/%2e%2e`,
  'two dots': (path) => `${path}/x/..`,
  'a dot': (path) => path.replace('/projects/', '/./projects/'),
  'an escaped slash': (path) => path.replace('/projects/', '%2fprojects/'),
  'a doubly escaped slash': (path) => path.replace('/projects/', '%252fprojects/'),
  'a backslash': (path) => path.replace('/projects/', '\\projects/'),
  'a semicolon': (path) => `${path};x=1`,
  'a star': (path) => path.replace(/organizations\/[^/]+/, 'organizations/*'),
  'a colon, as in the table': (path) => path.replace(/organizations\/[^/]+/, 'organizations/:organization_id'),
  'a wildcard of SQL': (path) => path.replace(/organizations\/[^/]+/, 'organizations/%25'),
  'a line break': (path) => path.replace('/projects/', '%0d%0aX:1/projects/'),
  '9,000 characters': (path) => `${path}${'a'.repeat(9_000)}`,
  '500 segments': (path) => `${path}${'/a'.repeat(500)}`,
};

describe('a path with', () => {
  const all = Object.entries(wrong).flatMap(([label, spoil], first) =>
    paths.map((path, second) => ({ label, spoil, path, isTried: isPicked(first, second) })),
  );
  // Not every path has what is spoiled.
  const spoilt = all.filter(({ spoil, path, isTried }) => isTried && spoil(path.replace(/:\w+/g, 'x')) !== path.replace(/:\w+/g, 'x'));
  it.each(spoilt)('$label: $path', ({ spoil, path }) => expectAbsent(spoil(fill(path, parameters()))));
});

describe('a path outside of the APIs', () => {
  it.each([
    '/v1',
    '/v1/',
    '/v1/projects',
    '/v1/organizations/x',
    '/v1?page=1',
    '/%ff',
    '/favicon.ico',
    '/graphql/',
    '/graphql/x',
    '/graphql/%ff',
    '/GraphQL',
    '/health',
  ])('%s', (path) => expectAbsent(path));
  it.each(['/.env', '/../../etc/passwd', '/%2e%2e/%2e%2e/etc/passwd', '/__proto__', '/v1/__proto__', '/v1/constructor'])('%s', (path) =>
    expectAbsent(path),
  );

  it('of 20,000 characters is refused', async () => {
    const response = await app.ask('GET', `/v1/${'a'.repeat(20_000)}`);
    expectRest(response, 400, invalid('The request line and headers are too large.'));
  });
});

describe('a target with a number sign is invalid', () => {
  const targets = ['/', '/v1', '/v1\\x', '/graphql', '/graphql?query={__typename}', '/metrics', '/health/live', '/docs', 'http://x/v1'];
  it.each([...paths, ...targets])('%s', async (path) => {
    const filled = fill(path, parameters());
    for (const target of [`${filled}#`, `${filled}#x?page=3`, `${filled.replace('/projects/', '\\projects/')}#`]) {
      for (const as of ['owner', null] as const)
        expectRest(await app.ask('GET', target, { as }), 400, invalid('The request is not valid HTTP.'));
    }
  });
});

// Only the parser of the oldest versions of Node.js passes these on.
it.each(['\t', '\f', '\x80', '\xa0', '\xff'])('a target with %j is not valid', async (character) => {
  const path = `${app.projectPath}/compute/overview`.replace('/projects/', '\\projects/');
  const wire = await openWire(app.baseUrl);
  wire.write(Buffer.from(`GET ${path}?${character} HTTP/1.1\r\nHost: x\r\n\r\n`, 'latin1'));
  const [response] = await wire.receive(1);
  wire.socket.destroy();
  expect([response?.status, response?.body]).toEqual([400, JSON.stringify(invalid('The request is not valid HTTP.'))]);
});

const spellings: Record<string, (id: string) => string> = {
  braces: (id) => `{${id}}`,
  'braces, escaped': (id) => `%7B${id}%7D`,
  'no hyphens': (id) => id.replaceAll('-', ''),
  urn: (id) => `urn:uuid:${id}`,
  'a blank before': (id) => `%20${id}`,
  'a blank behind': (id) => `${id}%20`,
  'a line break behind': (id) => `${id}%0a`,
  'NUL behind': (id) => `${id}%00`,
  'a letter less': (id) => id.slice(0, -1),
  'a letter that is not a digit': (id) => `g${id.slice(1)}`,
  'digits of another script': (id) => `${encodeURIComponent('０')}${id.slice(1)}`,
  'a word': () => 'default',
  'a number': () => '1',
  'a prototype': () => '__proto__',
};

describe('an id with', () => {
  const named = routes.filter(({ path }) => namesIn(path).length > 0);
  const spelled = Object.entries(spellings).flatMap(([label, spell], first) =>
    named.filter((_, second) => isPicked(first, second)).map(({ method, path }) => ({ label, spell, method, path })),
  );
  it.each(spelled)('$label: $method $path', async ({ spell, method, path }) => {
    for (const name of namesIn(path)) {
      const values = parameters();
      const spelled = fill(path, { ...values, [name]: spell(values[name] ?? '') });
      expectRest(await app.ask(method.toUpperCase(), spelled), 404, notFound);
    }
  });
});

describe('an id in other words that mean the same', () => {
  const readable = routes.filter(({ method }) => method === 'get').map(({ path }) => path);
  it.each(readable)('in capitals: %s', async (path) => {
    const plain = await app.ask('GET', fill(path, parameters()));
    const upper = Object.fromEntries(Object.entries(parameters()).map(([name, id]) => [name, id.toUpperCase()]));
    const response = await app.ask('GET', fill(path, upper));
    const place = Object.entries(upper).reduce((text, [name, id]) => text.replaceAll(id, parameters()[name] ?? ''), response.text);
    expect({ status: response.status, text: place }).toEqual({ status: 200, text: plain.text });
    // Only the links repeat what was asked.
    if (!('next' in plain.json)) expect(response.text).toBe(plain.text);
  });

  it.each(readable)('escaped letter by letter: %s', async (path) => {
    const spell = (id: string) => id.replace(/[0-9a-f]/g, (letter) => `%${letter.charCodeAt(0).toString(16)}`);
    const plain = await app.ask('GET', fill(path, parameters()));
    const escaped = Object.fromEntries(Object.entries(parameters()).map(([name, id]) => [name, spell(id)]));
    const { status, json } = await app.ask('GET', fill(path, escaped));
    expect({ status, results: json.results ?? json }).toEqual({ status: 200, results: plain.json.results ?? plain.json });
  });
});

describe('a method', () => {
  it.each(['PATCH', 'TRACE', 'PROPFIND', 'MKCOL', 'SEARCH', 'PURGE', 'LINK', 'REPORT'])('%s', async (method) => {
    for (const path of paths) expectRest(await app.ask(method, fill(path, parameters())), 404, notFound);
    expectRest(await app.ask(method, '/'), 404, notFound);
  });

  it.each(paths)('that the table has not for %s', async (path) => {
    const absent = ['GET', 'POST', 'PUT', 'DELETE'].filter((method) => !methodsOf(path).includes(method));
    for (const method of absent) await expectAbsentMethod(method, path);
  });

  async function expectAbsentMethod(method: string, path: string) {
    expectRest(await app.ask(method, fill(path, parameters())), 404, notFound);
    expectRest(await app.ask(method, fill(path, parameters()), { as: null }), 401, notProvided);
  }

  it('cannot be overridden by a header', async () => {
    const path = `${app.projectPath}/monitoring/dashboards/${app.demo.dashboards.public}`;
    const headers = { 'x-http-method-override': 'DELETE', 'x-http-method': 'DELETE', 'x-method-override': 'DELETE' };
    expectRest(await app.ask('POST', `${path}?_method=DELETE`, { headers }), 404, notFound);
    expect((await app.ask('GET', path, { headers })).status).toBe(200);
  });
});

describe('HEAD', () => {
  const unlike = ['x-request-id', 'ratelimit', 'date'];
  it.each([...paths, '/', '/nothing', '/.well-known/jwks.json'])('answers as GET without a body: %s', async (path) => {
    const target = fill(path, parameters());
    for (const as of ['owner', null, { bearer: 'x' }] as const) {
      const [get, head] = [await app.ask('GET', target, { as }), await app.ask('HEAD', target, { as })];
      expect(head.text).toBe('');
      expect(head.status).toBe(get.status);
      const compare = ({ headers }: typeof get) => Object.entries(headers).filter(([name]) => !unlike.includes(name));
      expect(compare(head)).toEqual(compare(get));
    }
  });
});

describe('OPTIONS', () => {
  it.each([...paths, '/', '/graphql', '/nothing', '*'])('is 204 and costs nothing: %s', async (path) => {
    const before = app.statements.length;
    for (const as of ['owner', null, { bearer: 'x' }] as const) {
      const { status, text, headers } = await app.ask('OPTIONS', fill(path, parameters()), { as });
      expect({ status, text }).toEqual({ status: 204, text: '' });
      // Each path has its own methods.
      expect(headers.allow).toBeUndefined();
      expect(headers.ratelimit).toBeUndefined();
    }
    expect(app.statements.length).toBe(before);
  });
});

it('leaves the server unharmed', () => expectUnharmed(app));
