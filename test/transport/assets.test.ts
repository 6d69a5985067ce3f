import { request as httpRequest } from 'node:http';
import { gunzipSync } from 'node:zlib';
import helmet from 'helmet';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { standardHeaders } from '../../src/transport/http/headers.ts';
import { startApp, type TestApp } from '../support/app.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startApp({ RATE_LIMIT_PAGES: '1000' });
});
afterAll(() => app.close());

const html = 'text/html,application/xhtml+xml,*/*;q=0.8';
const paths = [
  '/',
  '/guides',
  '/guides/start',
  '/guides/operations',
  '/guides/start.md',
  '/guides.json',
  '/docs',
  '/docs/start.js',
  '/docs/swagger-ui.css',
  '/docs/swagger-ui-bundle.js',
  '/v1/openapi.json',
  '/v1/asyncapi.json',
  '/graphql',
];

function get(path: string, headers: Record<string, string> = {}) {
  return new Promise<{ status: number | undefined; headers: Record<string, unknown>; body: Buffer }>((resolve, reject) => {
    const sent = httpRequest(app.baseUrl + path, { headers: { accept: html, ...headers } }, async (response) => {
      const parts: Buffer[] = [];
      for await (const part of response) parts.push(part);
      resolve({ status: response.statusCode, headers: response.headers, body: Buffer.concat(parts) });
    });
    sent.on('error', reject).end();
  });
}

describe.each(paths)('%s', (path) => {
  it('is compressed for clients that accept it, and revalidated by its ETag', async () => {
    const plain = await get(path);
    const gzip = await get(path, { 'accept-encoding': 'gzip, deflate, br' });
    expect([plain.status, plain.headers['content-encoding'], gzip.headers['content-encoding']]).toEqual([200, undefined, 'gzip']);
    expect(gzip.body.length).toBeLessThan(plain.body.length);
    expect(gunzipSync(gzip.body).equals(plain.body)).toBe(true);
    for (const { headers, body } of [plain, gzip]) {
      expect(headers.vary).toMatch(/Origin.*Accept-Encoding/);
      expect(headers['content-length']).toBe(String(body.length));
      expect(headers.etag).toMatch(/^"[\w-]+"$/);
    }
    expect(plain.headers.etag).not.toBe(gzip.headers.etag);
    for (const encoding of ['gzip;q=0', 'identity', 'zstd', `${'x, '.repeat(400)}gzip`])
      expect((await get(path, { 'accept-encoding': encoding })).headers['content-encoding'], encoding).toBeUndefined();
    const tag = String(plain.headers.etag);
    for (const given of [tag, `"x", W/${tag}`, '*']) {
      const known = await get(path, { 'if-none-match': given });
      expect([known.status, known.body.length, known.headers.etag, known.headers.vary], given).toEqual([304, 0, tag, plain.headers.vary]);
    }
    expect((await get(path, { 'if-none-match': '"x"' })).status).toBe(200);
    expect((await get(path, { 'if-none-match': tag, 'accept-encoding': 'gzip' })).status).toBe(200);
  });
});

describe('pages', () => {
  it('have a budget of their own for each address: 429 when it is spent, with nothing else harmed', async () => {
    const small = await startApp({ RATE_LIMIT_PAGES: '12', TRUST_PROXY: 'loopback', REDIS_URL: '' });
    const ask = (path: string, address = '192.0.2.1') =>
      small.ask('GET', path, { as: null, headers: { accept: html, 'x-forwarded-for': address } });
    try {
      for (let turn = 0; turn < 2; turn += 1) {
        for (const path of ['/', '/docs', '/docs/start.js', '/v1/openapi.json', '/.well-known/jwks.json', '/graphql']) {
          const response = await ask(path);
          expect([response.status, response.headers.ratelimit], path).toEqual([200, undefined]);
        }
      }
      for (const path of ['/', '/docs/start.js', '/v1/asyncapi.json']) {
        const { status, headers, json } = await ask(path);
        expect([status, json.code, headers['ratelimit-policy']], path).toEqual([429, 'rate_limited', '"pages";q=12;w=60']);
        expect(Number(headers['retry-after'])).toBeGreaterThan(0);
      }
      expect((await ask('/graphql')).json.errors[0].extensions.code).toBe('rate_limited');
      expect((await ask('/', '192.0.2.2')).status).toBe(200);
      for (const path of ['/health/live', '/health/ready', '/metrics', '/graphql?query={__typename}'])
        expect((await ask(path)).status, path).toBe(200);
      expect(
        (await small.ask('GET', `${small.projectPath}/compute/overview`, { headers: { 'x-forwarded-for': '192.0.2.1' } })).status,
      ).toBe(200);
    } finally {
      await small.close();
    }
  });
});

it('the headers of every response are those of helmet', () => {
  const theirs: Record<string, string> = { Vary: 'Origin' };
  const response = { setHeader: (name: string, value: string) => (theirs[name] = value), removeHeader: () => {} };
  const secure = helmet({ contentSecurityPolicy: false, crossOriginResourcePolicy: { policy: 'cross-origin' } });
  secure({} as Parameters<typeof secure>[0], response as unknown as Parameters<typeof secure>[1], () => {});
  const ours = Object.fromEntries(standardHeaders.flatMap((name, index) => (index % 2 === 0 ? [[name, standardHeaders[index + 1]]] : [])));
  expect(ours).toEqual(theirs);
});
