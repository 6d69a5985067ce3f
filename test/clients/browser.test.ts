import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type BrowserContext, chromium, type Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startApp, type TestApp } from '../support/app.ts';
import { findBrowser } from '../support/browser.ts';
import { publish } from '../support/feed.ts';
import { readTab, selectTab } from './graphiql.ts';
import { folder } from './tools.ts';

const screenshots = join(folder, 'generated/screenshots');
const profile = mkdtempSync(join(tmpdir(), 'portico-chromium-'));
const quiet = ['--disable-background-networking', '--disable-component-update', '--disable-sync', '--disable-quic', '--no-first-run'];

let app: TestApp;
let browser: BrowserContext;
let page: Page;
const elsewhere: string[] = [];
const complaints: string[] = [];

beforeAll(async () => {
  mkdirSync(screenshots, { recursive: true });
  app = await startApp();
  browser = await chromium.launchPersistentContext(profile, {
    executablePath: findBrowser(),
    viewport: { width: 1400, height: 1000 },
    // No name is resolved: whatever is not on this machine would fail, and be seen below.
    args: ['--no-sandbox', '--disable-gpu', '--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1', ...quiet],
  });
  browser.setDefaultTimeout(60_000);
  page = browser.pages()[0] ?? (await browser.newPage());
  browser.on('request', (request) => {
    const { protocol, origin } = new URL(request.url());
    if (!['data:', 'blob:'].includes(protocol) && origin !== app.baseUrl) elsewhere.push(request.url());
  });
  browser.on('requestfailed', (request) => void complaints.push(`${request.url()}: ${request.failure()?.errorText}`));
  page.on('console', (message) => message.type() === 'error' && complaints.push(message.text()));
  page.on('pageerror', (failure) => void complaints.push(failure.message));
});
afterAll(async () => {
  await browser.close();
  await app.close();
  rmSync(profile, { recursive: true, force: true });
});

const look = (name: string) => page.screenshot({ path: join(screenshots, `${name}.png`) });

it('/ links to every page', async () => {
  await page.goto(app.baseUrl);
  await look('home');
  await page.getByRole('link', { name: 'reference of v1' }).click();
  await page.waitForURL(`${app.baseUrl}/docs`);
  await page.goBack();
  await page.getByRole('link', { name: 'GraphiQL' }).click();
  await page.waitForURL(`${app.baseUrl}/graphql`);
});

describe('/docs', () => {
  /** Opens an operation and sends it as it stands: its fields have the examples in them. */
  async function execute(id: string) {
    const operation = page.locator(`[id="${id}"]`);
    await operation.locator('.opblock-summary').click();
    await operation.locator('.execute').click();
    const live = operation.locator('.live-responses-table');
    await live.waitFor();
    return { operation, status: await live.locator('tbody .response-col_status').first().innerText(), body: await live.innerText() };
  }

  it('shows every operation', async () => {
    await page.goto(`${app.baseUrl}/docs`);
    await page.locator('.opblock').first().waitFor();
    expect(await page.locator('.opblock').count()).toBe(15);
    await look('docs');
  });

  it('lists reads and writes before deletions', async () => {
    const ofOne = page.locator('.opblock', { has: page.locator('[data-path$="{dashboard_id}"]') });
    const methods = await ofOne.locator('.opblock-summary-method').allInnerTexts();
    expect(methods).toEqual(['GET', 'PUT', 'DELETE']);
  });

  it('sends a request with the demo’s token, and shows its response', async () => {
    await page.locator('.auth-wrapper .authorize').click();
    await page.locator('.auth-container input').fill(app.demo.users.owner.token ?? '');
    await page.locator('.auth-btn-wrapper .authorize').click();
    await page.locator('.btn-done').click();
    const overview = await execute('operations-Compute-compute_overview');
    expect([overview.status.split(/\s/)[0], overview.body]).toEqual(['200', expect.stringContaining('"instances_total": 51')]);
    await overview.operation.locator('.live-responses-table').scrollIntoViewIfNeeded();
    await look('docs-response');
  });

  it('sends a body from its example, and shows what it has changed', async () => {
    const updated = await execute('operations-Projects-update_dashboard');
    expect([updated.status.split(/\s/)[0], updated.body]).toEqual(['200', expect.stringContaining('Requests of the web tier, by status.')]);
    expect(updated.body).toContain('etag: "3"');
  });
});

describe('GraphiQL', () => {
  async function open(tab: string) {
    await page.goto(`${app.baseUrl}/graphql`);
    await selectTab(page, tab);
    await page.getByRole('button', { name: 'Headers', exact: true }).click();
    const editor = page.locator('.graphiql-editor-tool .graphiql-editor:not(.hidden) .monaco-editor').last();
    await expect.poll(() => editor.innerText()).toContain('Authorization');
    await editor.click();
    await page.keyboard.press('Control+A');
    // The editor closes the quotation mark and the bracket by itself.
    await page.keyboard.insertText(`{"Authorization": "Bearer ${app.demo.users.owner.token}`);
    await page.locator('.graphiql-execute-button').click();
  }
  const stored = () => page.evaluate('localStorage.getItem("graphiql:tabState")');
  const shown = async () => (await page.locator('.result-window').innerText()).replace(/\s+/g, ' ');

  it('explains the header, and runs a query', async () => {
    await page.goto(`${app.baseUrl}/graphql`);
    await page.locator('.graphiql-query-editor .view-lines').waitFor();
    await expect.poll(() => page.locator('.graphiql-query-editor').innerText()).toMatch(/Every.request.takes.one.header/);
    await look('graphiql');
    const tabs = () => page.locator('.graphiql-tab').allInnerTexts();
    expect(await tabs()).toEqual(['WhoAmI', 'Overview', 'Feed', 'Publish']);
    await page.locator('.graphiql-query-editor .view-lines').click();
    await page.keyboard.press('Control+Home');
    await page.keyboard.insertText('# Mine\n');
    await expect.poll(stored).toContain('Mine');
    await page.reload();
    await expect.poll(() => page.locator('.graphiql-query-editor').innerText()).toMatch(/Mine/);
    expect(await tabs()).toHaveLength(4);
    await open('Overview');
    await expect.poll(shown).toContain('"name": "Production"');
    expect(await shown()).toContain('"unreadNotificationCount": 50');
    await look('graphiql-query');
  });

  it('opens a tab at the first click, and sends the header of another tab with it', async () => {
    // From another page: GraphiQL writes down its tabs as it is left.
    await page.goto(app.baseUrl);
    await page.evaluate('localStorage.clear()');
    await page.goto(`${app.baseUrl}/graphql`);
    await page.locator('.graphiql-query-editor .view-lines').waitFor();
    const tab = await page.locator('.graphiql-tab', { hasText: 'Overview' }).boundingBox();
    if (!tab) throw new Error('there is no such tab');
    await page.mouse.move(tab.x + tab.width / 2, tab.y + tab.height / 2);
    await page.mouse.down();
    await page.waitForTimeout(300);
    await page.mouse.up();
    await expect.poll(() => page.locator('.graphiql-query-editor').innerText()).toMatch(/query.Overview/);
    await readTab(page, 'Overview');
    await page.locator('.graphiql-execute-button').click();
    await expect.poll(shown).toContain('not_authenticated');
    await open('WhoAmI');
    await expect.poll(shown).toContain(`"email": "${app.demo.users.owner.email}"`);
    await expect.poll(stored).toContain(app.demo.users.owner.token);
    await selectTab(page, 'Overview');
    await page.locator('.graphiql-execute-button').click();
    await expect.poll(shown).toContain('"name": "Production"');
  });

  it('runs a subscription, and shows an event as it arrives', async () => {
    await open('Feed');
    await expect.poll(shown).toContain('"__typename": "FeedReady"');
    await publish(app, 'Seen in the browser');
    await expect.poll(shown).toContain('"title": "Seen in the browser"');
    await look('graphiql-feed');
    await page.locator('.graphiql-execute-button').click();
  });
});

it('no page makes requests to other hosts, or logs errors', () => {
  expect(elsewhere).toEqual([]);
  // A stream that is ended by its reader, and a page that is left while it loads.
  expect(complaints.filter((text) => !text.endsWith('net::ERR_ABORTED'))).toEqual([]);
});
