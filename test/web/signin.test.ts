import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { users } from '../../demo/people.ts';
import { type DeskTest, type Page, startDesk } from './support.ts';

const stored = (page: Page) => page.evaluate(() => JSON.parse(sessionStorage.getItem('portico:session') ?? 'null'));
const everywhere = (page: Page) =>
  page.evaluate(() =>
    JSON.stringify([{ ...localStorage }, document.cookie, location.href, performance.getEntries().map(({ name }) => name)]),
  );

describe('a key or a token', () => {
  let desk: DeskTest;
  let page: Page;
  beforeAll(async () => {
    desk = await startDesk();
    page = await desk.open();
  });
  afterAll(() => desk?.close());

  const paste = async (credential: string) => {
    await page.getByLabel('API key or session token').fill(credential);
    await page.getByRole('button', { name: 'Sign in', exact: true }).click();
  };

  it('that is invalid is refused with a message, and not stored', async () => {
    await page.goto(`${desk.baseUrl}/signin`);
    for (const bad of ['sk-portico-0000', 'a b', 'eyJhbGciOiJub25lIn0.e30.']) {
      await paste(bad);
      await page.getByRole('alert').waitFor();
      expect(await stored(page)).toBeNull();
    }
  });

  it('leads back to the requested address, and is in no URL, cookie or localStorage', async () => {
    await page.goto(`${desk.baseUrl}${desk.toPage('tasks')}?status=failed`);
    await page.waitForURL(/\/signin\?to=/);
    const key = desk.demo.users.member.api_key;
    await paste(key);
    await page.waitForURL(`${desk.baseUrl}${desk.toPage('tasks')}?status=failed`);
    await page.locator('.connection[data-state="live"]').waitFor();
    expect((await stored(page)).credential).toBe(key);
    expect(await everywhere(page)).not.toContain(key);
    await page.reload();
    await page.locator('.connection[data-state="live"]').waitFor();
  });

  it('leads back to the line of a page that was asked for', async () => {
    const other = await desk.open();
    const address = `${desk.baseUrl}${desk.toPage('developers/concurrency')}#sent-twice`;
    await other.goto(address);
    await other.getByLabel('API key or session token').fill(desk.demo.users.viewer.api_key);
    await other.getByRole('button', { name: 'Sign in', exact: true }).click();
    await other.waitForURL(address);
    await expect.poll(() => other.locator('#sent-twice').evaluate((heading) => heading.getBoundingClientRect().top)).toBeLessThan(200);
    await other.context().close();
  });

  it('leads to no other host', async () => {
    const other = await desk.open();
    for (const to of ['https://evil.example/', '//evil.example/', '/\\evil.example', '/.//evil.example', 'javascript:alert(1)']) {
      await other.goto(`${desk.baseUrl}/signin?to=${encodeURIComponent(to)}`);
      await other.getByLabel('API key or session token').fill(desk.demo.users.viewer.api_key);
      await other.getByRole('button', { name: 'Sign in', exact: true }).click();
      await other.waitForURL(`${desk.baseUrl}/projects/**`);
      await other.evaluate(() => sessionStorage.clear());
    }
    await other.context().close();
  });

  it('that is revoked meanwhile leads to the sign-in with the reason, and back again', async () => {
    const { createApiKey } = await desk.graphqlAs<{ createApiKey: { key: string; apiKey: { id: string } } }>(
      desk.demo.users.admin.token ?? '',
      'mutation { createApiKey(input: { name: "for the desk" }) { key apiKey { id } } }',
    );
    await page.goto(`${desk.baseUrl}/signin`);
    await page.evaluate(() => sessionStorage.clear());
    await page.goto(`${desk.baseUrl}/signin?to=${desk.toPage('dashboards')}`);
    await paste(createApiKey.key);
    await page.waitForURL(`**${desk.toPage('dashboards')}`);
    await page.locator('.connection[data-state="live"]').waitFor();
    await desk.graphqlAs(desk.demo.users.admin.token ?? '', 'mutation ($id: ID!) { revokeApiKey(input: { id: $id }) { apiKey { id } } }', {
      id: createApiKey.apiKey.id,
    });
    await page.waitForURL(/\/signin\?to=/);
    await page.getByText('Your session has ended').waitFor();
    expect(await stored(page)).toBeNull();
    await paste(desk.demo.users.admin.api_key);
    await page.waitForURL(`**${desk.toPage('dashboards')}`);
  });

  it('makes no requests to other hosts, and logs no errors', () => {
    expect([desk.elsewhere, desk.complaints]).toEqual([[], []]);
  });
});

describe('the identity provider', () => {
  const audience = 'https://api.portico.example';
  let server: Server;
  let desk: DeskTest;
  let page: Page;

  beforeAll(async () => {
    let handle: RequestListener = () => {};
    server = createServer((request, response) => handle(request, response)).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    desk = await startDesk({ JWT_ISSUER: issuer, JWT_JWKS_URL: `${issuer}/jwks`, JWT_AUDIENCE: audience, OIDC_CLIENT_ID: 'portico-desk' });
    const { Provider } = await import('oidc-provider');
    const provider = new Provider(issuer, {
      clients: [
        {
          client_id: 'portico-desk',
          application_type: 'native',
          token_endpoint_auth_method: 'none',
          grant_types: ['authorization_code', 'refresh_token'],
          redirect_uris: [`${desk.baseUrl}/signin/callback`],
        },
      ],
      clientBasedCORS: (_context: unknown, origin: string) => origin === desk.baseUrl,
      // Whoever names the id of a user is that user: how somebody proves who they are is the provider's own affair.
      findAccount: (_context: unknown, id: string) => ({ accountId: id, claims: () => ({ sub: id }) }),
      features: {
        devInteractions: { enabled: true },
        resourceIndicators: {
          enabled: true,
          getResourceServerInfo: () => ({
            scope: '',
            audience,
            accessTokenFormat: 'jwt',
            accessTokenTTL: 63,
            jwt: { sign: { alg: 'RS256' } },
          }),
          useGrantedResource: () => true,
        },
      },
      ttl: { Session: 600, Grant: 600, Interaction: 600, IdToken: 600, RefreshToken: 600 },
      cookies: { keys: ['a key of this test'] },
    });
    handle = provider.callback();
    page = await desk.open();
  });
  afterAll(async () => {
    await desk?.close();
    server?.close();
  });

  it('leads back to the requested page after the sign-in', async () => {
    await page.goto(`${desk.baseUrl}${desk.toPage()}`);
    await page.getByRole('button', { name: /^Continue at 127\.0\.0\.1/ }).click();
    await page.locator('input[name=login]').fill(users.admin.id);
    await page.locator('input[name=password]').fill('any');
    await page.locator('button[type=submit]').click();
    await page.locator('button[type=submit]', { hasText: 'Continue' }).click();
    await page.waitForURL(`${desk.baseUrl}${desk.toPage()}`);
    await page.getByRole('button', { name: /Anton/ }).waitFor();
    await page.locator('.connection[data-state="live"]').waitFor();
  });

  it('restores the input from before', async () => {
    await page.getByRole('link', { name: 'Keys', exact: true }).click();
    await page.getByLabel('Name').fill('typed before');
    await page.getByRole('button', { name: /Anton/ }).click();
    await page.getByRole('menuitem', { name: 'Sign out' }).click();
    await page.getByRole('button', { name: /^Continue at 127\.0\.0\.1/ }).click();
    await page.locator('button[type=submit]', { hasText: 'Continue' }).click();
    await page.waitForURL(`${desk.baseUrl}/keys`);
    expect(await page.getByLabel('Name').inputValue()).toBe('typed before');
    expect(await page.evaluate(() => sessionStorage.getItem('portico:unsent'))).toBeNull();
    await page.goto(`${desk.baseUrl}${desk.toPage()}`);
    await page.getByRole('button', { name: /Anton/ }).waitFor();
  });

  it('renews a token before it expires, without a visible change', async () => {
    const { credential, expires } = await stored(page);
    await expect.poll(async () => (await stored(page)).credential).not.toBe(credential);
    expect((await stored(page)).expires).toBeGreaterThan(expires);
    await page.getByRole('link', { name: 'People' }).click();
    await page.waitForURL(/\/people/);
    await page.goBack();
    await page.getByRole('heading', { name: 'Needs attention' }).waitFor();
    expect(await everywhere(page)).not.toContain(credential);
  });

  it('is requested by one of two tabs with the same session, which shares the new token', async () => {
    const session = await stored(page);
    const other = await page.context().newPage();
    await other.addInitScript(
      (text) => sessionStorage.getItem('portico:session') ?? sessionStorage.setItem('portico:session', text),
      JSON.stringify(session),
    );
    let asked = 0;
    await other.route(/\/token$/, (route) => {
      asked += 1;
      return route.continue();
    });
    await other.goto(`${desk.baseUrl}${desk.toPage()}`);
    await other.getByRole('button', { name: /Anton/ }).waitFor();
    await expect.poll(async () => (await stored(page)).credential).not.toBe(session.credential);
    await expect.poll(() => stored(other)).toEqual(await stored(page));
    expect(asked).toBe(0);
    // The first tab is loaded again: the other may renew now, with a token that is still good.
    await page.reload();
    await page.getByRole('button', { name: /Anton/ }).waitFor();
    const before = await stored(page);
    await expect.poll(() => asked, { timeout: 20_000 }).toBeGreaterThan(0);
    await expect.poll(async () => (await stored(page)).credential).not.toBe(before.credential);
    expect(await stored(page)).toEqual(await stored(other));
    await other.close();
    // What a tab has stored may be old.
    const late = await page.context().newPage();
    await late.addInitScript((text) => sessionStorage.setItem('portico:session', text), JSON.stringify(session));
    await late.goto(`${desk.baseUrl}${desk.toPage()}`);
    await expect.poll(async () => (await stored(late)).renewal).toEqual((await stored(page)).renewal);
    await late.close();
  });

  it('renews a session that an earlier release has stored, again and again', async () => {
    await page.evaluate(() => {
      const { renewal, ...session } = JSON.parse(sessionStorage.getItem('portico:session') ?? '{}');
      sessionStorage.setItem('portico:session', JSON.stringify({ ...session, renewal: { refreshToken: renewal.refreshToken } }));
    });
    await page.reload();
    await page.getByRole('button', { name: /Anton/ }).waitFor();
    for (let time = 0; time < 2; time += 1) {
      const { credential } = await stored(page);
      await expect.poll(async () => (await stored(page)).credential, { timeout: 30_000 }).not.toBe(credential);
    }
  });

  const reloadToExpire = (inMs: number) =>
    page.evaluate((ms) => {
      const session = JSON.parse(sessionStorage.getItem('portico:session') ?? '{}');
      sessionStorage.setItem('portico:session', JSON.stringify({ ...session, expires: Date.now() + ms }));
      location.reload();
    }, inMs);

  it('is waited for with a timeout', async () => {
    await page.route(/\/token$/, () => {}, { times: 1 });
    const failed = page.waitForEvent('requestfailed', (request) => request.url().endsWith('/token'));
    await reloadToExpire(0);
    await failed;
  });

  it('is named in an outage when a credential is rejected, and requested again automatically', async () => {
    await page.route(/\/token$/, (route) => route.abort());
    await page.evaluate(() => {
      const session = JSON.parse(sessionStorage.getItem('portico:session') ?? '{}');
      sessionStorage.setItem('portico:session', JSON.stringify({ ...session, credential: 'no-longer-taken' }));
      location.reload();
    });
    await page.getByRole('heading', { name: 'The identity provider does not answer' }).first().waitFor();
    await page.getByText('Trying again in').first().waitFor();
    await page.unroute(/\/token$/);
    await page.getByRole('heading', { name: 'Needs attention' }).waitFor();
    await page.locator('.connection[data-state="live"]').waitFor();
  });

  it('is requested by code that was loaded with the page, as a later build may lack it', async () => {
    const { credential } = await stored(page);
    // Before the credential ends, which would be renewed then.
    const loaded = page.waitForResponse(/\/assets\/provider-[^/]*\.js$/, { timeout: 15_000 });
    await reloadToExpire(3_600_000);
    await loaded;
    await reloadToExpire(0);
    await expect.poll(async () => (await stored(page)).credential).not.toBe(credential);
  });

  it('is not requested again after it rejects the refresh token, and the session ends with its credential', async () => {
    const session = await stored(page);
    const refusal = { status: 400, headers: { 'access-control-allow-origin': desk.baseUrl }, json: { error: 'invalid_grant' } };
    await page.route(/\/token$/, (route) => route.fulfill(refusal));
    await expect.poll(async () => (await stored(page)).renewal).toBeNull();
    await page.unroute(/\/token$/);
    await page.evaluate((text) => sessionStorage.setItem('portico:session', text), JSON.stringify(session));
    await page.reload();
    await page.getByRole('button', { name: /Anton/ }).waitFor();
  });

  it('does not sign a user in again who signs out during a renewal', async () => {
    let release = () => {};
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    const asked = new Promise<void>((resolve) => {
      void page.route(/\/token$/, async (route) => {
        resolve();
        await held;
        await route.continue();
      });
    });
    await asked;
    await page.getByRole('button', { name: /Anton/ }).click();
    await page.getByRole('menuitem', { name: 'Sign out' }).click();
    await page.waitForURL(/\/signin/);
    const answered = page.waitForResponse(/\/token$/);
    release();
    await (await answered).finished();
    await page.waitForTimeout(500);
    expect(await stored(page)).toBeNull();
  });

  it('is reached also from a page of a build whose code the server no longer has', async () => {
    const other = await desk.open();
    await other.goto(`${desk.baseUrl}/signin`);
    const leave = other.getByRole('button', { name: /^Continue at/ });
    await leave.waitFor();
    // The current build has its own code.
    let isGone = true;
    await other.route('**/assets/provider-*.js', (route) => (isGone ? route.fulfill({ status: 404 }) : route.fallback()));
    const reloaded = other.waitForRequest((request) => request.isNavigationRequest());
    await leave.click();
    await reloaded;
    isGone = false;
    await leave.click();
    await other.locator('input[name=login]').waitFor();
    await other.context().close();
  });

  it('is not trusted for a callback that this tab has not begun', async () => {
    const other = await desk.open();
    await other.goto(`${desk.baseUrl}/signin/callback?code=stolen&state=made-up`);
    await other.getByText('Signing in did not work').waitFor();
    expect(other.url()).toBe(`${desk.baseUrl}/signin/callback`);
    expect(await stored(other)).toBeNull();
    await other.context().close();
  });

  it('is the only other host that is requested, without logged errors', () => {
    expect([desk.elsewhere, desk.complaints]).toEqual([[], []]);
  });
});
