import { afterAll, beforeAll, expect, it } from 'vitest';
import { startApp, type TestApp } from '../support/app.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startApp({ TRUST_PROXY: 'loopback' });
});
afterAll(() => app.close());

const nextOf = async (headers: Record<string, string>) =>
  (await app.ask('GET', `${app.projectPath}/notifications`, { headers })).json.next.replace(`${app.projectPath}/notifications?page=2`, '');

it('makes page links on the origin that the client used: its Host, and the scheme from a trusted proxy', async () => {
  expect(await nextOf({})).toBe(app.baseUrl);
  expect(await nextOf({ host: 'api.example:8443' })).toBe('http://api.example:8443');
  expect(await nextOf({ host: 'api.example', 'x-forwarded-proto': 'https' })).toBe('https://api.example');
  expect(await nextOf({ host: 'api.example', 'x-forwarded-proto': 'https, http' })).toBe('https://api.example');
  expect(await nextOf({ host: 'api.example', 'x-forwarded-proto': 'javascript' })).toBe('http://api.example');
});

it('takes no scheme from a client that is not a trusted proxy', async () => {
  const other = await startApp();
  try {
    const headers = { host: 'api.example', 'x-forwarded-proto': 'https' };
    const { json } = await other.ask('GET', `${other.projectPath}/notifications`, { headers });
    expect(json.next).toMatch(/^http:\/\/api\.example\//);
  } finally {
    await other.close();
  }
});

it('makes none on a host that is malformed, and those without a host on localhost', async () => {
  const headers = ['Authorization', `Bearer ${app.demo.users.owner.token}`, 'Host', ''];
  const { json } = await app.ask('GET', `${app.projectPath}/notifications`, { headers });
  expect(json.next).toMatch(/^http:\/\/localhost\/v1\//);
  for (const host of ['a b', 'user@', 'x:99999', 'user:secret@api.example'])
    expect((await app.ask('GET', `${app.projectPath}/notifications`, { headers: { host } })).status, host).toBe(400);
});

it('makes them in the whole where the request names its target as a whole URL', async () => {
  const target = `http://api.example${app.projectPath}/notifications?page_size=100`;
  const { status, json } = await app.ask('GET', target, { headers: { host: 'api.example' } });
  expect([status, json.next]).toEqual([200, `${target}&page=2`]);
});
