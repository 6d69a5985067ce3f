import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Browser, chromium, type Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { guides } from '../../src/transport/pages/guides.ts';
import { startApp, type TestApp } from '../support/app.ts';
import { colourRules, findBarriers } from '../support/barriers.ts';
import { findBrowser } from '../support/browser.ts';
import { selectTab } from './graphiql.ts';
import { folder } from './tools.ts';

const axe = readFileSync(join(folder, 'node_modules/axe-core/axe.min.js'), 'utf8');

let app: TestApp;
let browser: Browser;
beforeAll(async () => {
  app = await startApp();
  browser = await chromium.launch({ executablePath: findBrowser(), args: ['--no-sandbox', '--disable-gpu'] });
});
afterAll(async () => {
  await browser?.close();
  await app?.close();
});

type ColourScheme = 'light' | 'dark';

/** What axe finds on the page as it is now. In dark colours it looks at these alone. */
const audit = (page: Page, colorScheme: ColourScheme) => findBarriers(page, axe, colorScheme === 'dark' ? colourRules : undefined);

/** A narrow screen is a phone's: a page that is wider than that would be smaller than it can be read. */
const sizes = { wide: { width: 1400, height: 1000 }, narrow: { width: 390, height: 800 } };

const open = async (path: string, size: keyof typeof sizes, colorScheme: ColourScheme) => {
  // Colours on their way from one to another are none that stay.
  const page = await browser.newPage({ viewport: sizes[size], colorScheme, reducedMotion: 'reduce' });
  page.setDefaultTimeout(60_000);
  await page.goto(app.baseUrl + path);
  return page;
};

it.each(['/', '/guides', ...Object.keys(guides).map((name) => `/guides/${name}`)])('%s, on a phone', async (path) => {
  const page = await open(path, 'narrow', 'light');
  expect(await audit(page, 'light')).toEqual([]);
  expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(sizes.narrow.width);
  // These pages have no script that would have chosen colours as they were loaded.
  await page.emulateMedia({ colorScheme: 'dark' });
  expect(await audit(page, 'dark')).toEqual([]);
  await page.close();
});

describe.each(['light', 'dark'] as const)('in %s colours', (colorScheme) => {
  it('the reference of v1: closed, with a credential, open, and with a response', async () => {
    const page = await open('/docs', 'wide', colorScheme);
    await page.locator('.opblock').first().waitFor();
    expect(await audit(page, colorScheme)).toEqual([]);
    await page.locator('.auth-wrapper .authorize').click();
    await page.locator('.auth-container input').fill(app.demo.users.owner.token ?? '');
    expect(await audit(page, colorScheme)).toEqual([]);
    await page.locator('.auth-btn-wrapper .authorize').click();
    expect(await audit(page, colorScheme)).toEqual([]);
    await page.locator('.btn-done').click();
    for (const id of ['list_dashboards', 'create_dashboard', 'update_dashboard', 'delete_dashboard']) {
      const operation = page.locator(`#operations-Projects-${id}`);
      await operation.locator('.opblock-summary-control').click();
      await expect.poll(() => page.url()).toContain(id);
      await operation.locator('.execute').click();
      await operation.locator('.live-responses-table').waitFor();
      expect(await audit(page, colorScheme)).toEqual([]);
      await operation.locator('.opblock-summary-control').click();
    }
    await page.close();
  });

  it('GraphiQL: as it opens, with the schema, with its settings, and with a response', async () => {
    const page = await open('/graphql', 'wide', colorScheme);
    await page.locator('.graphiql-query-editor .view-lines').waitFor();
    await expect.poll(() => page.locator('.graphiql-tab button[aria-current=true]').innerText()).toBe('WhoAmI');
    expect(await audit(page, colorScheme)).toEqual([]);
    await selectTab(page, 'Overview');
    await page.locator('.graphiql-execute-button').click();
    await expect.poll(() => page.locator('.result-window').innerText()).toContain('not_authenticated');
    await page.getByRole('button', { name: 'Show Documentation Explorer' }).click();
    await page.locator('.graphiql-doc-explorer-type-name').first().waitFor();
    expect(await audit(page, colorScheme)).toEqual([]);
    await page.getByRole('button', { name: 'Open settings dialog' }).click();
    await page.locator('.graphiql-dialog').waitFor();
    expect(await audit(page, colorScheme)).toEqual([]);
    await page.close();
  });
});
