import { execFile, spawn } from 'node:child_process';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { demoProject } from '../../src/transport/pages/graphiql.ts';
import { guides } from '../../src/transport/pages/guides.ts';
import { type DeskTest, findBarriers, type Page, startDesk } from './support.ts';

const run = promisify(execFile);

let desk: DeskTest;
let page: Page;
let base: string;
beforeAll(async () => {
  desk = await startDesk();
  page = await desk.open({ permissions: ['clipboard-read', 'clipboard-write'] });
  // Not the project that the guides name.
  base = `/projects/${desk.demo.empty_project_id}/developers`;
  await desk.signIn(page, 'owner', base);
});
afterAll(() => desk?.close());

const credential = () => page.evaluate(() => JSON.parse(sessionStorage.getItem('portico:session') ?? '').credential as string);
const showMine = () => page.getByRole('switch', { name: 'Show my session token in the examples' });
const main = () => page.locator('.guide').innerText();
const example = (title: string) =>
  page.locator('section', { has: page.getByRole('heading', { name: title, exact: true }) }).locator('.code');

describe('the first steps', () => {
  it('name the address, the ids and no credential', async () => {
    await page.getByRole('heading', { name: 'For developers' }).waitFor();
    const text = await main();
    for (const value of [desk.baseUrl, desk.demo.organization_id, desk.demo.empty_project_id, 'YOUR_KEY']) expect(text).toContain(value);
    expect(await page.content()).not.toContain(await credential());
    expect(await findBarriers(page)).toEqual([]);
    await desk.look(page, 'developers');
  });

  it('copy their examples as shown', async () => {
    const curl = example('v1').first();
    await curl.getByRole('button', { name: 'Copy this example' }).click();
    await expect.poll(() => page.evaluate(() => navigator.clipboard.readText())).toContain('Bearer YOUR_KEY');
    await showMine().check();
    await curl.getByText(await credential()).waitFor();
    await curl.getByRole('button', { name: 'Copy this example' }).click();
    await expect.poll(() => page.evaluate(() => navigator.clipboard.readText())).toBe(await curl.locator('code').innerText());
  });

  it('have examples that run unchanged', async () => {
    const responses = await Promise.all(
      [example('v1').first(), example('A GraphQL query').nth(1)].map(async (one) => {
        const { stdout } = await run('sh', ['-c', await one.locator('code').innerText()]);
        return JSON.parse(stdout);
      }),
    );
    expect(responses).toMatchObject([{ count: 0, results: [] }, { data: { project: { name: 'Sandbox', role: 'admin' } } }]);
    const text = await example('A subscription').nth(1).locator('code').innerText();
    // It would go on until it is told to end.
    const subscription = spawn('sh', ['-c', `exec ${text}`], { stdio: ['ignore', 'pipe', 'inherit'] });
    let told = '';
    subscription.stdout.setEncoding('utf8').on('data', (part: string) => {
      told += part;
    });
    await expect.poll(() => told).toContain('"type":"ready"');
    subscription.kill();
    await showMine().uncheck();
  });
});

describe('the guides', () => {
  it('have the reader’s project, address and credential in their examples', async () => {
    await page.getByRole('navigation', { name: 'Guides' }).getByRole('link', { name: 'Getting started' }).click();
    await page.waitForURL(`${desk.baseUrl}${base}/start`);
    await page.getByText(`BASE=${desk.baseUrl}`).waitFor();
    const projectUrl = `/v1/organizations/${desk.demo.organization_id}/projects/${desk.demo.empty_project_id}`;
    const text = await main();
    expect(text).toContain(`PROJECT=$BASE${projectUrl}`);
    expect(text).toContain('KEY=YOUR_KEY');
    expect(text).toContain(`"Authorization: Bearer YOUR_KEY" "${desk.baseUrl}${projectUrl}/notifications`);
    await showMine().check();
    await page.getByText(`KEY=${await credential()}`).waitFor();
    await showMine().uncheck();
    expect(await findBarriers(page)).toEqual([]);
    await desk.look(page, 'guide');
  });

  it.each(Object.keys(guides))('%s names neither the demo’s project nor another address', async (name) => {
    await page.goto(`${desk.baseUrl}${base}/${name}`);
    await page
      .locator('.guide h1')
      .getByText(guides[name]?.title ?? '', { exact: true })
      .waitFor();
    const text = await main();
    expect(text).not.toContain(demoProject.projectId);
    expect(text).not.toMatch(/localhost:4000|wss:\/\/host|users\.owner|\$(KEY|TOKEN)\b/);
  });

  it('lead to each other within the desk, to the line', async () => {
    await page.goto(`${desk.baseUrl}${base}/start`);
    await page
      .locator('.guide p')
      .getByRole('link', { name: 'concurrency.md' })
      .or(page.locator('.guide a[href$="#sent-twice"]'))
      .first()
      .click();
    await page.waitForURL(`${desk.baseUrl}${base}/concurrency#sent-twice`);
    await expect.poll(() => page.locator('#sent-twice').evaluate((heading) => heading.getBoundingClientRect().top)).toBeLessThan(200);
    const hrefs = await page.locator('.guide a').evaluateAll((links) => links.map((link) => (link as HTMLAnchorElement).href));
    for (const href of hrefs) expect(href.startsWith(`${desk.baseUrl}${base}/`)).toBe(true);
  });

  it('are shown from their beginning where the address names a line that they do not have', async () => {
    await page.goto(`${desk.baseUrl}${base}/start#100%`);
    await page.locator('.guide h1').waitFor();
    expect(await page.evaluate(() => scrollY)).toBe(0);
  });

  it('show a message for an unknown name', async () => {
    await page.goto(`${desk.baseUrl}${base}/nothing`);
    await page.getByRole('heading', { name: 'There is no such guide' }).waitFor();
    await page.goto(`${desk.baseUrl}${base}/100%25`);
    await page.getByRole('heading', { name: 'There is no such guide' }).waitFor();
  });
});

/** Follows a link that opens a tab of its own. */
async function openDoor(name: string): Promise<Page> {
  await page.goto(desk.baseUrl + base);
  const [tab] = await Promise.all([page.context().waitForEvent('page'), page.getByRole('link', { name, exact: true }).click()]);
  await tab.getByText('Signed in by the desk as owner@acme.example').waitFor();
  return tab;
}

it('the reference of v1 tries what it shows, signed in', async () => {
  const tab = await openDoor('the reference of v1');
  const operation = tab.locator('.opblock', { has: tab.locator('[data-path="/v1/organizations"]') });
  await operation.locator('.opblock-summary').click();
  await operation.locator('.execute').click();
  const response = operation.locator('.live-responses-table');
  await response.getByText('Acme Cloud').first().waitFor();
  expect(await response.locator('tbody .response-col_status').first().innerText()).toMatch(/^200/);
  await tab.evaluate(() => scrollTo(0, 0));
  expect(await findBarriers(tab)).toEqual([]);
  await desk.look(tab, 'reference');
  await tab.close();
});

it('GraphiQL answers without a key, for as long as the desk is signed in', async () => {
  const tab = await openDoor('GraphiQL');
  const shown = async () => (await tab.locator('.result-window').innerText()).replace(/\s+/g, ' ');
  await tab.locator('.graphiql-query-editor .view-lines').click();
  await tab.keyboard.press('Control+A');
  // The editor closes the first bracket by itself.
  await tab.keyboard.insertText('{ viewer { email }');
  // It stores the query as it reads its operations: until then it would run the one before.
  await expect.poll(() => tab.evaluate(() => localStorage.getItem('graphiql:query'))).toMatch(/^\{ viewer \{ email \}/);
  await tab.locator('.graphiql-execute-button').click();
  await expect.poll(shown).toContain('"email": "owner@acme.example"');
  expect(await findBarriers(tab)).toEqual([]);
  await desk.look(tab, 'graphiql');
  expect(await tab.evaluate(() => JSON.stringify({ ...localStorage }))).not.toContain(await credential());

  await page.getByRole('button', { name: /Olivia/ }).click();
  await page.getByRole('menuitem', { name: 'Sign out' }).click();
  await page.waitForURL(/\/signin/);
  await tab.locator('.graphiql-execute-button').click();
  await expect.poll(shown).toContain('"viewer": null');
  expect(await tab.evaluate(() => sessionStorage.getItem('portico:session'))).toBeNull();
  await tab.close();
});

describe.each(['light', 'dark'] as const)('in %s colours, on a phone', (colorScheme) => {
  it.each(['', '/limits', '/start'])('%s', async (path) => {
    const phone = await desk.open({ viewport: { width: 390, height: 844 }, colorScheme });
    await desk.signIn(phone, 'owner', base + path);
    await phone.locator('.guide h1').waitFor();
    expect(await findBarriers(phone)).toEqual([]);
    expect(await phone.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(390);
    await desk.look(phone, `developers${path.replace('/', '-')}-${colorScheme}-phone`);
    await phone.context().close();
  });
});

it('makes no requests to other hosts, and logs no errors', () => {
  expect(desk.elsewhere).toEqual([]);
  expect(desk.complaints).toEqual([]);
});
