import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { readdirSync } from 'node:fs';
import type { Socket } from 'node:net';
import { brotliDecompressSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { project, users } from '../../demo/people.ts';
import { packageRoot } from '../../src/platform/packageroot.ts';
import { type Ask, startApp, type TestApp } from '../support/app.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startApp({ RATE_LIMIT_PAGES: '10000' });
  app.app.offerDemo({ people: Object.values(users), projectId: project.id });
});
afterAll(() => app.close());

const html = { accept: 'text/html' };
const hostOf = (target: TestApp) => new URL(target.baseUrl).host;

describe('the document', () => {
  it.each([
    '/',
    '/signin',
    '/signin/callback?code=1',
    '/keys',
    '/developers',
    '/developers/guides/feed',
    `/projects/${project.id}`,
    '/projects/x/tasks?status=failed',
  ])('%s is the same one, and allows no script but ours', async (path) => {
    const { status, headers, text } = await app.ask('GET', path, { as: null, headers: html });
    expect([status, headers['content-type'], headers['cache-control']]).toEqual([200, 'text/html; charset=utf-8', 'no-cache']);
    expect(text).toContain('<div id="root"></div>');
    const policy = String(headers['content-security-policy']);
    expect(policy.split('; ')).toEqual(
      expect.arrayContaining(["default-src 'none'", "script-src 'self'", "connect-src 'self'", "frame-ancestors 'none'"]),
    );
    expect(text).not.toMatch(/<script(?![^>]*\bsrc=)|\son\w+=|https?:\/\//);
  });

  it('is nothing to programs, which get the index of the API', async () => {
    const { json, headers } = await app.ask('GET', '/', { as: null });
    expect([json.graphql, headers.vary]).toEqual(['/graphql', expect.stringContaining('Accept')]);
  });
});

describe('assets', () => {
  const names = readdirSync(new URL('dist/current/web/assets/', packageRoot)).filter((name) => !name.endsWith('.br'));

  it('are served with their types, as immutable, and precompressed', async () => {
    expect(names.length).toBeGreaterThan(10);
    for (const name of names) {
      const plain = await app.ask('GET', `/assets/${name}`, { as: null });
      expect([plain.status, plain.headers['cache-control']], name).toEqual([200, 'public, max-age=31536000, immutable']);
      expect(plain.headers['content-type'], name).not.toBe('application/octet-stream');
      const response = await fetch(`${app.baseUrl}/assets/${name}`, { headers: { 'accept-encoding': 'br' } });
      expect([response.headers.get('content-encoding'), await response.text()], name).toEqual([
        /\.(js|css|svg)$/.test(name) ? 'br' : null,
        plain.text,
      ]);
    }
  });

  it('do not lead to other files', async () => {
    for (const path of ['/assets/', '/assets/../index.html', '/assets/..%2f..%2fpackage.json', '/index.html', `/assets/${names[0]}.br`])
      expect((await app.ask('GET', path, { as: null })).status, path).toBe(404);
  });

  it('that are compressed with Brotli decompress to their source', async () => {
    const { request } = await import('node:http');
    const bytes = await new Promise<Buffer>((resolve) => {
      request(
        `${app.baseUrl}/assets/${names.find((name) => name.endsWith('.js'))}`,
        { headers: { 'accept-encoding': 'br' } },
        async (response) => {
          const parts: Buffer[] = [];
          for await (const part of response) parts.push(part);
          resolve(Buffer.concat(parts));
        },
      ).end();
    });
    expect(brotliDecompressSync(bytes).toString()).toContain('import');
  });
});

describe('the demo’s sessions', () => {
  const settings = (ask: Ask = {}) => app.ask('GET', '/desk/settings', { as: null, ...ask });
  const enter = (body: unknown, ask: Ask = {}) => app.ask('POST', '/desk/demo', { as: null, body, ...ask });

  it('are offered to a page of this machine, and let it in', async () => {
    const { json, headers } = await settings();
    expect([json.identity_provider, json.demo.project_id, headers['cache-control']]).toEqual([null, project.id, 'no-store']);
    expect(json.demo.people).toContainEqual({ id: users.member.id, name: users.member.name, email: users.member.email });
    const { status, json: session } = await enter({ user_id: users.member.id });
    expect(status).toBe(200);
    const lasts = Date.parse(session.expires) - Date.now();
    expect(lasts).toBeGreaterThan(3_500_000);
    expect(lasts).toBeLessThanOrEqual(3_600_000);
    const [, claims = ''] = session.token.split('.');
    const { exp } = JSON.parse(Buffer.from(claims, 'base64url').toString());
    expect(Math.abs(exp * 1000 - Date.parse(session.expires))).toBeLessThanOrEqual(1_000);
    const who = await app.graphql('{ viewer { email } }', {}, { as: { bearer: session.token } });
    expect(who.json.data.viewer.email).toBe(users.member.email);
  });

  it.each([
    ['a host that is not this machine', { host: 'portico.example' }],
    ['a name that begins like it', { host: 'localhost.example:4000' }],
    ['a page of another origin', { origin: 'http://evil.example' }],
    ['a page of another port', { origin: 'http://localhost:1' }],
    ['a page without an origin', { origin: 'null' }],
    ['a proxy of this machine', { 'x-forwarded-for': '192.0.2.7' }],
    ['a proxy that says so otherwise', { forwarded: 'for=192.0.2.7' }],
    ['a proxy that tells its own name', { via: '1.1 proxy' }],
    ['a proxy that tells the host', { 'x-forwarded-host': 'localhost' }],
    ['a proxy that tells the scheme', { 'x-forwarded-proto': 'https' }],
    ['a proxy that tells the address alone', { 'x-real-ip': '192.0.2.7' }],
  ])('are not for %s', async (_name, headers) => {
    expect((await settings({ headers })).json.demo).toBeNull();
    const { status, json } = await enter({ user_id: users.owner.id }, { headers: { ...headers, 'content-type': 'application/json' } });
    expect([status, json.code]).toEqual([404, 'not_found']);
  });

  it('are not for another machine, whatever Host it sends', async () => {
    let from = '';
    const move = (event: unknown) =>
      Object.defineProperty((event as { socket: Socket }).socket, 'remoteAddress', { get: () => from || '127.0.0.1', configurable: true });
    subscribe('http.server.request.start', move);
    try {
      for (from of ['192.0.2.7', '::ffff:192.0.2.7', '2001:db8::1']) {
        expect((await settings()).json.demo, from).toBeNull();
        expect((await enter({ user_id: users.owner.id })).status, from).toBe(404);
      }
    } finally {
      from = '';
      unsubscribe('http.server.request.start', move);
    }
  });

  it('are for loopback by any of its names', async () => {
    const { port } = new URL(app.baseUrl);
    for (const host of [`localhost:${port}`, `127.0.0.9:${port}`, `[::1]:${port}`])
      expect((await settings({ headers: { host, origin: `http://${host}` } })).json.demo, host).not.toBeNull();
  });

  it('are those of its people alone', async () => {
    for (const user_id of [undefined, null, 7, '', 'owner', project.id, '__proto__'])
      expect((await enter({ user_id })).status, String(user_id)).toBe(404);
    expect((await enter('{')).status).toBe(400);
    expect((await app.ask('GET', '/desk/demo', { as: null })).status).toBe(404);
  });

  it('are not offered by a server that has not said so', async () => {
    const other = await startApp();
    try {
      const own = { host: hostOf(other) };
      expect((await other.ask('GET', '/desk/settings', { as: null, headers: own })).json.demo).toBeNull();
      expect((await other.ask('POST', '/desk/demo', { as: null, body: { user_id: users.owner.id } })).status).toBe(404);
    } finally {
      await other.close();
    }
  });
});

it('names the identity provider, to which the page may connect', async () => {
  const provider = {
    JWT_JWKS_URL: 'https://keys.login.example/jwks',
    JWT_ISSUER: 'https://login.example/',
    JWT_AUDIENCE: 'portico',
    OIDC_CLIENT_ID: 'desk',
  };
  const other = await startApp(provider);
  other.app.offerDemo({ people: Object.values(users), projectId: project.id });
  try {
    const { json } = await other.ask('GET', '/desk/settings', { as: null });
    // It alone signs tokens, also of the demo's people.
    expect(json.demo).toBeNull();
    expect(json.identity_provider).toEqual({ issuer: 'https://login.example/', client_id: 'desk', audience: 'portico' });
    const { headers } = await other.ask('GET', '/', { as: null, headers: html });
    expect(headers['content-security-policy']).toContain("connect-src 'self' https://login.example https://keys.login.example");
  } finally {
    await other.close();
  }
});
