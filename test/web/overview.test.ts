import { afterAll, beforeAll, expect, it } from 'vitest';
import { isPostgres } from '../support/app.ts';
import { type DeskTest, type Page, startDesk } from './support.ts';

let desk: DeskTest;
let page: Page;
beforeAll(async () => {
  desk = await startDesk();
  page = await desk.open();
});
afterAll(() => desk?.close());

const overview = `query ($id: ID!) {
  project(id: $id) { computeOverview { instancesTotal attention { tasksFailed24h instancesSuspended } } }
}`;

async function publish(title: string): Promise<void> {
  const { organization_id: organizationId, project_id: projectId } = desk.demo;
  const input = { organizationId, projectId, kind: 'test.desk', severity: 'warning', title };
  const document = 'mutation ($input: PublishNotificationInput!) { publishNotification(input: $input) { notification { id } } }';
  await desk.graphql(document, { input });
}

it('is one click away from the address', async () => {
  await page.goto(desk.baseUrl);
  await page.getByRole('heading', { name: 'Portico' }).waitFor();
  await desk.look(page, 'signin');
  if (isPostgres) await desk.signIn(page, 'owner', '/');
  else await page.getByRole('button', { name: 'owner@acme.example' }).click();
  await page.waitForURL(/\/projects\//);
  await page.getByRole('heading', { name: 'Needs attention' }).waitFor();
});

it('shows the figures of the server', async () => {
  await page.goto(desk.baseUrl + desk.toPage());
  const { project } = await desk.graphql<{
    project: { computeOverview: { instancesTotal: number; attention: { tasksFailed24h: number; instancesSuspended: number } } };
  }>(overview, { id: desk.demo.project_id });
  const { attention, instancesTotal } = project.computeOverview;
  await page.getByRole('link', { name: `${attention.tasksFailed24h} Tasks failed within 24 hours` }).waitFor();
  await page.getByRole('link', { name: `${attention.instancesSuspended} Instances suspended` }).waitFor();
  await page.getByText(`Instances by status: ${instancesTotal}`).waitFor();
  await page.locator('.connection[data-state="live"]').waitFor();
  await desk.look(page, 'overview');
  // The README's picture: DESK_PICTURE=docs/desk.png.
  if (process.env.DESK_PICTURE) await page.screenshot({ path: process.env.DESK_PICTURE });
});

it('shows a notification that is published meanwhile, and counts it in the menu and the title', async () => {
  const unread = Number(
    await page
      .locator('nav .count')
      .first()
      .evaluate((node) => node.firstChild?.textContent),
  );
  await publish('Seen on the overview');
  await page.getByRole('link', { name: 'Seen on the overview' }).waitFor();
  await expect.poll(() => page.title()).toMatch(new RegExp(`^\\(${unread + 1}\\) `));
});

it('shows a notification that was published while the list was loading', async () => {
  await page.goto(desk.baseUrl + desk.toPage('instances'));
  await page.locator('.connection[data-state="live"]').waitFor();
  await page.getByRole('grid').waitFor();
  const readUnread = async () => /^\(\d+\)/.exec(await page.title())?.[0];
  const before = await readUnread();
  let isFirst = true;
  await page.route('**/graphql', async (route) => {
    if (!isFirst || !route.request().postData()?.includes('query Newest(')) return route.fallback();
    isFirst = false;
    const response = await route.fetch();
    await publish('Published meanwhile');
    await expect.poll(readUnread).not.toBe(before);
    await route.fulfill({ response });
  });
  await page.getByRole('link', { name: 'Overview' }).click();
  await page.getByRole('link', { name: 'Published meanwhile' }).waitFor();
  await page.unroute('**/graphql');
});

it('reads its figures a few times for many notifications, and not at all while hidden', async () => {
  let reads = 0;
  await page.route('**/graphql', (route) => {
    if (route.request().postData()?.includes('query Overview(')) reads += 1;
    return route.fallback();
  });
  const turn = (visibility: DocumentVisibilityState) =>
    page.evaluate((value) => {
      Object.defineProperty(document, 'visibilityState', { configurable: true, value });
      document.dispatchEvent(new Event('visibilitychange'));
    }, visibility);
  await page.goto(desk.baseUrl + desk.toPage());
  await page.getByRole('heading', { name: 'Needs attention' }).waitFor();
  await page.locator('.connection[data-state="live"]').waitFor();
  expect(reads).toBe(1);
  const publishLater = (index: number) => page.waitForTimeout(index * 100).then(() => publish(`Of many ${index}`));
  await Promise.all(Array.from({ length: 20 }, (_, index) => publishLater(index)));
  await page.waitForTimeout(6_000);
  expect(reads).toBe(3);
  await turn('hidden');
  await publish('While nobody looks');
  await page.getByRole('link', { name: 'While nobody looks' }).waitFor();
  await page.waitForTimeout(6_000);
  expect(reads).toBe(3);
  await turn('visible');
  await expect.poll(() => reads).toBe(4);
  await page.unroute('**/graphql');
});

it('reads its figures again once a minute, and after a disconnect', async () => {
  const other = await desk.openTab(page, '/icon.svg');
  await other.clock.install();
  let reads = 0;
  await other.route('**/graphql', (route) => {
    if (route.request().postData()?.includes('query Overview(')) reads += 1;
    return route.fallback();
  });
  await other.goto(desk.baseUrl + desk.toPage());
  await other.getByRole('heading', { name: 'Needs attention' }).waitFor();
  await other.locator('.connection[data-state="live"]').waitFor();
  expect(reads).toBe(1);
  await other.clock.fastForward(60_000);
  await expect.poll(() => reads, { timeout: 10_000 }).toBe(2);
  await other.locator('.connection[data-state="live"]').waitFor();
  await other.evaluate(() => dispatchEvent(new Event('offline')));
  await other.clock.fastForward(6_000);
  await expect.poll(() => reads, { timeout: 10_000 }).toBe(3);
  await other.close();
  await page.bringToFront();
});

it('marks the current items with the colours of the system', async () => {
  await page.emulateMedia({ forcedColors: 'active' });
  const styleOf = (selector: string, name: string) =>
    page
      .locator(selector)
      .first()
      .evaluate((node, property) => getComputedStyle(node).getPropertyValue(property), name);
  expect(await styleOf('.side nav a[aria-current]', 'outline-style')).toBe('solid');
  expect(await styleOf('.side nav a:not([aria-current])', 'outline-style')).toBe('none');
  expect(await styleOf('.connection i', 'forced-color-adjust')).toBe('none');
  await page.emulateMedia({ forcedColors: 'none' });
});

it('opens another project by typing a part of its name', async () => {
  await page.getByRole('button', { name: /Production/ }).click();
  await page.getByPlaceholder('Find a project').fill('sand');
  await page.getByRole('option', { name: /Sandbox/ }).waitFor();
  await page.keyboard.press('Enter');
  await page.waitForURL(new RegExp(desk.demo.empty_project_id));
  await page.getByText('Nothing has happened yet').waitFor();
});

it('forgets the user after a sign-out', async () => {
  await page.getByRole('button', { name: /Olivia/ }).click();
  await page.getByRole('menuitem', { name: 'Sign out' }).click();
  await page.waitForURL(/\/signin/);
  expect(await page.evaluate(() => sessionStorage.getItem('portico:session'))).toBeNull();
  await page.goBack();
  await page.waitForURL(/\/signin/);
});

it('makes no requests to other hosts, and logs no errors', () => {
  expect(desk.elsewhere).toEqual([]);
  expect(desk.complaints).toEqual([]);
});
