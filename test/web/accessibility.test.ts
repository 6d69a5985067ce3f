import { afterAll, beforeAll, describe, expect, it } from 'vitest';
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

describe.each(['light', 'dark'] as const)('%s', (colorScheme) => {
  describe.each([1280, 390])('%i px', (width) => {
    let page: Page;
    beforeAll(async () => {
      page = await desk.open({ colorScheme, viewport: { width, height: 800 } });
      await page.goto(`${desk.baseUrl}/signin`);
      await page.getByRole('heading', { name: 'Portico' }).waitFor();
      expect(await findBarriers(page)).toEqual([]);
      await desk.look(page, `signin-${colorScheme}-${width}`);
      await desk.signIn(page, 'owner');
    });
    afterAll(() => page?.context().close());

    it('no page has a serious or critical barrier, or is wider than the screen', async () => {
      const barriers: Record<string, string[]> = {};
      const wide: string[] = [];
      for (const [name, path] of pages()) {
        await page.goto(desk.baseUrl + path);
        await page.locator('main :is(h1, h2)').first().waitFor();
        await page.waitForFunction(() => !document.querySelector('.loading'));
        const found = await findBarriers(page);
        if (found.length > 0) barriers[name] = found;
        if (await page.evaluate(() => document.documentElement.scrollWidth > innerWidth)) wide.push(name);
        await desk.look(page, `${name}-${colorScheme}-${width}`);
      }
      expect(barriers).toEqual({});
      expect(wide).toEqual([]);
    });
  });
});
