import type { Page } from 'playwright-core';
import { expect } from 'vitest';

/**
 * Selects a tab of GraphiQL as somebody does who reads before they click: GraphiQL reads the operations of a tab a moment
 * after it shows it, and until then would run the operation of the tab before. It stores the query as it reads it.
 */
export async function selectTab(page: Page, name: string): Promise<void> {
  await page.locator('.graphiql-query-editor .view-lines').waitFor();
  const tab = page.locator('.graphiql-tab', { hasText: name }).locator('button[aria-current]');
  await tab.waitFor();
  if ((await tab.getAttribute('aria-current')) === 'true') return;
  await tab.click();
  await readTab(page, name);
}

/** Waits until GraphiQL has read the operation of this name in the tab that it shows. */
export async function readTab(page: Page, name: string): Promise<void> {
  await expect
    .poll(() => page.evaluate(`localStorage.getItem('graphiql:query') ?? ''`))
    .toMatch(new RegExp(`(query|mutation|subscription) ${name}\\b`));
}
