import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Ask, startApp, type TestApp, type TestResponse } from '../support/app.ts';
import { operations } from '../support/contract.ts';
import { expandRefusal, expectSecurityHeaders, homeOf, refusals } from '../support/doors.ts';
import { anyUuid } from '../support/exact.ts';

/** More than are read: the response comes before everything that reads a request. */
const manyHeaders = Object.fromEntries(Array.from({ length: 201 }, (_, index) => [`x-${index}`, '']));

const PANEL = 'https://panel.example';
const ADMIN = 'https://admin.example:8443';

let app: TestApp;
beforeAll(async () => {
  app = await startApp({
    RATE_LIMIT_ANONYMOUS: '1000',
    ALLOWED_ORIGINS: `${PANEL}, ${ADMIN}/`,
    PUBLIC_URL: 'https://api.portico.example/',
  });
});
afterAll(() => app.close());

const exposed = 'RateLimit,RateLimit-Policy,Retry-After,ETag,X-Request-Id,Deprecation,Sunset';
const corsHeaders = ({ headers }: TestResponse) => Object.keys(headers).filter((name) => name.startsWith('access-control-'));
const overview = (ask: Ask = {}) => app.ask('GET', `${app.projectPath}/compute/overview`, ask);
const targetOf = (path: string) => path.replace(/:(\w+)/g, (_, name: 'project_id') => homeOf(app)[name]);

describe('CORS', () => {
  /** One response of each kind: those that succeed, and those that refuse at every step. */
  const responses = (origin: string): Record<string, () => Promise<TestResponse>> => {
    const headers = { origin };
    const dashboards = `${app.projectPath}/monitoring/dashboards`;
    return {
      200: () => overview({ headers }),
      201: () => app.ask('POST', `${app.projectPath}/websocket-tickets`, { headers, body: { target: 'notifications' } }),
      400: () => app.ask('POST', dashboards, { headers, body: { name: '' } }),
      'a body that cannot be read': () => app.ask('POST', dashboards, { headers, body: '{' }),
      401: () => overview({ headers, as: null }),
      'a bad credential': () => overview({ headers, as: { bearer: 'x' } }),
      403: () => app.ask('POST', dashboards, { headers, as: 'viewer', body: { name: 'x' } }),
      404: () => overview({ headers, as: 'outsider' }),
      'no such address': () => app.ask('GET', '/nothing', { headers, as: null }),
      'a path that cannot be decoded': () => app.ask('GET', `${app.projectPath}/%ff`, { headers }),
      GraphQL: () => app.graphql('{ viewer { id } }', {}, { headers }),
      'a GraphQL error': () => app.graphql('{ nothing }', {}, { headers }),
      'a bad credential for GraphQL': () => app.graphql('{ viewer { id } }', {}, { headers, as: { bearer: 'x' } }),
      'too many headers': () => app.ask('GET', '/', { headers: { ...headers, ...manyHeaders } }),
      HEAD: () => app.ask('HEAD', `${app.projectPath}/compute/overview`, { headers }),
      index: () => app.ask('GET', '/', { headers, as: null }),
    };
  };

  for (const origin of [PANEL, ADMIN, 'https://api.portico.example']) {
    it(`names ${origin} on every response, and what it may read`, async () => {
      for (const [kind, send] of Object.entries(responses(origin))) {
        const response = await send();
        expect(response.headers['access-control-allow-origin'], kind).toBe(origin);
        expect(response.headers['access-control-expose-headers'], kind).toBe(exposed);
        expect(response.headers['access-control-allow-credentials'], kind).toBeUndefined();
        expect(response.headers.vary, kind).toContain('Origin');
      }
    });
  }

  for (const origin of [
    'https://evil.example',
    'http://panel.example',
    'https://panel.example.evil.example',
    'https://panel.example:444',
    'null',
  ]) {
    it(`says nothing to ${origin}, but that the response depends on it`, async () => {
      for (const [kind, send] of Object.entries(responses(origin))) {
        const response = await send();
        expect(corsHeaders(response), kind).toEqual([]);
        expect(response.headers.vary, kind).toContain('Origin');
      }
    });
  }

  it('has no headers without an origin', async () => {
    const response = await overview();
    expect(corsHeaders(response)).toEqual([]);
    expect(response.headers.vary).toContain('Origin');
  });
});

describe('OPTIONS', () => {
  const preflight = (path: string, origin: string) =>
    app.ask('OPTIONS', path, {
      as: null,
      headers: {
        origin,
        'access-control-request-method': 'PUT',
        'access-control-request-headers': 'authorization,content-type,if-match,x-request-id',
      },
    });
  const paths = [...new Set(Object.values(operations).map(({ path }) => path)), '/graphql', '/', '/nothing'];

  for (const path of paths) {
    it(`${path} is 204, with leave for an origin of the list alone`, async () => {
      const allowed = await preflight(targetOf(path), PANEL);
      expect([allowed.status, allowed.text]).toEqual([204, '']);
      expect(allowed.headers).toMatchObject({
        'access-control-allow-origin': PANEL,
        'access-control-allow-methods': 'GET,HEAD,POST,PUT,DELETE',
        'access-control-allow-headers': 'authorization,content-type,if-match,x-request-id',
        'access-control-max-age': '7200',
        'x-request-id': anyUuid,
      });
      expectSecurityHeaders(allowed.headers);
      const other = await preflight(targetOf(path), 'https://evil.example');
      expect([other.status, corsHeaders(other)]).toEqual([204, []]);
    });
  }

  it('with more headers than a proxy would take back is answered with none of them', async () => {
    const ask = (length: number) => {
      const headers = { origin: PANEL, 'access-control-request-method': 'PUT', 'access-control-request-headers': 'x'.repeat(length) };
      return app.ask('OPTIONS', '/graphql', { as: null, headers });
    };
    expect((await ask(1_000)).headers['access-control-allow-headers']).toHaveLength(1_000);
    const response = await ask(9_000);
    expect([response.status, response.headers['access-control-allow-origin']]).toEqual([204, PANEL]);
    expect(JSON.stringify(response.headers).length).toBeLessThan(4_096);
  });

  it('needs no credential and is not counted', async () => {
    const left = async () => (await app.ask('GET', '/nothing', { as: null })).headers.ratelimit;
    const before = Number(/r=(\d+)/.exec(String(await left()))?.[1]);
    for (let turn = 0; turn < 3; turn += 1) expect((await preflight('/v1/x', PANEL)).headers).not.toHaveProperty('ratelimit');
    expect(await left()).toContain(`r=${before - 1};`);
  });
});

describe('HEAD', () => {
  /** What differs from one request to the next. */
  const own = new Set(['date', 'x-request-id', 'ratelimit']);
  const lasting = ({ headers }: TestResponse) => Object.fromEntries(Object.entries(headers).filter(([name]) => !own.has(name)));

  for (const { path } of Object.values(operations).filter(({ method }) => method === 'get')) {
    it(`${path} answers as GET does, without the body`, async () => {
      for (const ask of [{}, { as: null }, { as: 'outsider' }] as const) {
        const get = await app.ask('GET', targetOf(path), ask);
        const head = await app.ask('HEAD', targetOf(path), ask);
        expect([head.status, head.text]).toEqual([get.status, '']);
        expect(lasting(head)).toEqual(lasting(get));
        expect(head.headers['content-length']).toBe(String(Buffer.byteLength(get.text)));
      }
    });
  }

  it('is 404 where there is no GET', async () => {
    const response = await app.ask('HEAD', `${app.projectPath}/websocket-tickets`);
    expect([response.status, response.text]).toEqual([404, '']);
  });
});

describe('public paths, which are not counted, are', () => {
  it('the index and the key set', async () => {
    const index = await app.ask('GET', '/', { as: null });
    expect([index.status, index.json]).toEqual([200, { name: 'Portico', graphql: '/graphql', rest: '/v1' }]);
    const keys = await app.ask('GET', '/.well-known/jwks.json', { as: null });
    expect(keys.json).toEqual({ keys: [{ kty: 'OKP', crv: 'Ed25519', x: expect.any(String), kid: anyUuid, alg: 'EdDSA', use: 'sig' }] });
    expect(keys.headers['cache-control']).toBe('max-age=300');
    for (const { headers } of [index, keys]) {
      expect(headers).not.toHaveProperty('ratelimit');
      expectSecurityHeaders(headers);
    }
  });

  it('GraphiQL, which loads nothing from elsewhere', async () => {
    const page = await app.ask('GET', '/graphql', { as: null, headers: { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' } });
    expect([page.status, page.headers['content-type']]).toEqual([200, 'text/html; charset=utf-8']);
    expect(page.headers).not.toHaveProperty('ratelimit');
    expectSecurityHeaders(page.headers);
    const markup = page.text.replace(/(<(script|style)\b[^>]*>)[\s\S]*?(<\/\2>)/g, '$1$3');
    expect(markup.length).toBeLessThan(page.text.length / 10);
    const loaded = [...markup.matchAll(/\b(?:src|href)=["']([^"']+)["']/g)].map(([, url = '']) => url);
    expect(loaded.filter((url) => !url.startsWith('data:'))).toEqual([]);
  });
});

describe('credentials', () => {
  it('are requested by WWW-Authenticate on every 401, and on no other response', async () => {
    for (const ask of [{ as: null }, { as: { bearer: 'x' } }, { as: { bearer: 'sk-portico-1' } }] as const) {
      const response = await overview(ask);
      expect([response.status, response.headers['www-authenticate']]).toEqual([401, 'Bearer']);
    }
    const basic = await overview({ as: null, headers: { authorization: 'Basic b3duZXI6eA==' } });
    expect([basic.status, basic.json]).toEqual([401, expandRefusal(refusals.garbage)]);
    expect((await overview({ as: 'outsider' })).headers).not.toHaveProperty('www-authenticate');
    expect((await overview()).headers).not.toHaveProperty('www-authenticate');
  });

  it('spend the budget of their user, others that of the address', async () => {
    const read = async (ask: Ask) => {
      const { headers } = await overview(ask);
      const [, policy, left] = /^"(\w+)";r=(\d+);t=\d+$/.exec(String(headers.ratelimit)) ?? [];
      return { policy, left: Number(left), declared: headers['ratelimit-policy'] };
    };
    const session = await read({ as: 'admin' });
    const key = await read({ as: { bearer: app.demo.users.admin.api_key } });
    expect([session.policy, session.declared, key.left]).toEqual(['user', '"user";q=5000;w=3600', session.left - 1]);
    const nobody = await read({ as: null });
    const garbage = await read({ as: { bearer: 'x' } });
    expect([nobody.policy, nobody.declared, garbage.left]).toEqual(['anonymous', '"anonymous";q=1000;w=60', nobody.left - 1]);
  });
});

describe('PUBLIC_URL', () => {
  it('is the server’s own origin, instead of the host of a request', async () => {
    const { host } = new URL(app.baseUrl);
    for (const name of [host, 'evil.example']) {
      const response = await overview({ headers: { host: name, origin: `http://${name}` } });
      expect([response.status, corsHeaders(response)]).toEqual([200, []]);
    }
  });

  it('is the base of page links, for any host of the request', async () => {
    for (const host of ['localhost', 'evil.example', 'api.portico.example']) {
      const headers = { host, 'x-forwarded-host': 'evil.example', 'x-forwarded-proto': 'http' };
      const { json } = await app.ask('GET', `${app.projectPath}/notifications?page=2&page_size=50`, { headers });
      const path = `https://api.portico.example${app.projectPath}/notifications`;
      expect([json.next, json.previous]).toEqual([`${path}?page=3&page_size=50`, `${path}?page=1&page_size=50`]);
    }
  });

  it('is the base of page links where the target of a request is a whole URL', async () => {
    const { status, json } = await app.ask('GET', `${app.baseUrl}${app.projectPath}/notifications?page_size=100`);
    expect([status, json.next]).toEqual([200, `https://api.portico.example${app.projectPath}/notifications?page_size=100&page=2`]);
  });
});
