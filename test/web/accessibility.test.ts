import { afterAll, beforeAll, expect, it } from 'vitest';
import { colourRules } from '../support/barriers.ts';
import { type DeskTest, findBarriers, type Page, startDesk } from './support.ts';

let desk: DeskTest;
beforeAll(async () => {
  desk = await startDesk();
});
afterAll(() => desk?.close());

const pages = (): [string, string][] => {
  const { demo } = desk;
  return [
    ['overview', desk.toPage()],
    ['notifications', desk.toPage('notifications')],
    ['notification', desk.toPage(`notifications?open=${demo.notification_ids.at(-1)}`)],
    ['instances', desk.toPage('instances')],
    ['instance', desk.toPage(`instances/${demo.instances.console}`)],
    ['trial', desk.toPage(`instances/${demo.instances.instance_not_active}/trial`)],
    ['console', desk.toPage(`instances/${demo.instances.console}/console`)],
    ['tasks', desk.toPage('tasks')],
    ['storage', desk.toPage('storage')],
    ['dashboards', desk.toPage('dashboards')],
    ['dashboard', desk.toPage(`dashboards/${demo.dashboards.default}`)],
    ['people', desk.toPage('people')],
    ['sessions', desk.toPage('people/sessions')],
    ['keys', '/keys'],
    ['developers', desk.toPage('developers')],
    ['guide', desk.toPage('developers/guides/feed')],
    ['absent', '/projects/019b76da-a800-7699-b853-000000000000'],
  ];
};

/**
 * The barriers of a page, and whether it is wider than the screen, on each kind of screen that has one. The page is loaded once:
 * colours and the width are the browser's, which a person changes at any time.
 */
async function examine(page: Page, name: string): Promise<string[]> {
  const problems: string[] = [];
  for (const width of [1280, 390]) {
    await page.setViewportSize({ width, height: 800 });
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme });
      const screen = `${name}-${colorScheme}-${width}`;
      const barriers = await findBarriers(page, colorScheme === 'dark' ? colourRules : undefined);
      problems.push(...barriers.map((barrier) => `${screen}: ${barrier}`));
      await desk.look(page, screen);
    }
    if (await page.evaluate(() => document.documentElement.scrollWidth > innerWidth)) problems.push(`${name} is wider than ${width}`);
  }
  return problems;
}

it('no page has a serious or critical barrier, or is wider than the screen', async () => {
  const page = await desk.open({ reducedMotion: 'reduce' });
  await page.goto(`${desk.baseUrl}/signin`);
  await page.getByRole('heading', { name: 'Portico' }).waitFor();
  const problems = await examine(page, 'signin');
  await desk.signIn(page, 'owner');
  for (const [name, path] of pages()) {
    await page.goto(desk.baseUrl + path);
    await page.locator('main :is(h1, h2)').first().waitFor();
    await page.waitForFunction(() => !document.querySelector('.loading'));
    problems.push(...(await examine(page, name)));
  }
  expect(problems).toEqual([]);
  await page.context().close();
});

/** What covers the focused element, if anything does: a bar that stays in its place while the page is scrolled below it. */
const findCover = (page: Page) =>
  page.evaluate(() => {
    const focused = document.activeElement;
    if (!focused?.closest('main')) return null;
    const { top, bottom, height } = focused.getBoundingClientRect();
    for (const bar of document.querySelectorAll('.top, .table-head, .save-bar')) {
      const place = bar.getBoundingClientRect();
      const isBeside = bar.contains(focused) || height > innerHeight / 2 || (bar.matches('.table-head') && !focused.closest('.table-body'));
      if (!isBeside && top < place.bottom - 1 && bottom > place.top + 1) return `${focused.outerHTML.slice(0, 120)} below ${bar.className}`;
    }
    return null;
  });

it.each([1280, 390])('no bar covers the focused element, %i wide', async (width) => {
  const page = await desk.open({ viewport: { width, height: 420 } });
  await desk.signIn(page, 'owner');
  const covered: string[] = [];
  let moves = 0;
  for (const path of ['', `dashboards/${desk.demo.dashboards.default}`, 'developers/guides/feed', 'storage']) {
    await page.goto(desk.baseUrl + desk.toPage(path));
    await page.locator('main :is(h1, h2)').first().waitFor();
    await page.waitForFunction(() => !document.querySelector('.loading'));
    for (const key of ['Tab', 'Shift+Tab']) {
      for (let count = 0; count < 60; count += 1) {
        // In the editor of widgets Tab would indent.
        await page.keyboard.press('Escape');
        await page.keyboard.press(key);
        const cover = await findCover(page);
        if (cover) covered.push(`${path}, ${key}: ${cover}`);
        moves += 1;
      }
    }
  }
  expect([covered, moves]).toEqual([[], 480]);
  await page.context().close();
});
