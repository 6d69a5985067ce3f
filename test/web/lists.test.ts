import type { Request } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type DeskTest, findBarriers, type Page, startDesk } from './support.ts';

let desk: DeskTest;
let page: Page;
beforeAll(async () => {
  desk = await startDesk();
  page = await desk.open();
  await desk.signIn(page, 'owner');
});
afterAll(() => desk?.close());

const open = (rest: string, which = page) => which.goto(desk.baseUrl + desk.toPage(rest));
const grid = (which = page) => which.getByRole('grid');
const current = (which = page) => which.locator('.table-row.current');
const readCurrentIndex = (which = page) =>
  current(which)
    .getAttribute('aria-rowindex')
    .then((text) => Number(text) - 2);
/** Presses a key in the very moment in which the current row, one from index 300 on, gets what it shows: before any effect of React's has run. */
const pressWhenFilled = (key: string) =>
  page.evaluate((pressed) => {
    const grid = document.querySelector('[role=grid]') as HTMLElement;
    const observer = new MutationObserver(() => {
      const row = grid.querySelector('.table-row.current');
      const index = Number(row?.getAttribute('aria-rowindex')) - 2;
      if (!row || index < 300 || row.querySelector('.cell-loading')) return;
      observer.disconnect();
      Object.assign(window, { pressed: index });
      grid.dispatchEvent(new KeyboardEvent('keydown', { key: pressed, bubbles: true, cancelable: true }));
    });
    observer.observe(grid, { subtree: true, childList: true, attributes: true });
  }, key);
const readNames = (which = page) => which.locator('.table-row a').allInnerTexts();
const readScroll = (which = page) => grid(which).evaluate((node) => node.scrollTop);

/** How many the list that is shown has, as it says itself. */
async function readCount(): Promise<number> {
  const told = page.locator('.table-count').or(page.locator('main .state h2')).first();
  await told.waitFor();
  return Number(/^\d+/.exec(await told.innerText())?.[0] ?? 0);
}

async function readInstances(args: string): Promise<{ totalCount: number; names: string[] }> {
  type Found = { project: { instances: { totalCount: number; nodes: { name: string }[] } } };
  const query = `query ($id: ID!) { project(id: $id) { instances(first: 100, ${args}) { totalCount nodes { name } } } }`;
  const { project } = await desk.graphql<Found>(query, { id: desk.demo.project_id });
  return { totalCount: project.instances.totalCount, names: project.instances.nodes.map(({ name }) => name) };
}

describe('each figure of the overview opens the list that it counts', () => {
  const check = async (selector: string, read: (text: string) => number) => {
    await page.goto(desk.baseUrl + desk.toPage());
    const figures = page.locator(selector);
    await figures.first().waitFor();
    const texts = await figures.allInnerTexts();
    const seen: unknown[] = [];
    for (const [index, text] of texts.entries()) {
      await figures.nth(index).getByRole('link').click();
      await page
        .getByRole('heading', { level: 1 })
        .and(page.getByText(/^(Instances|Tasks|Storage)$/))
        .waitFor();
      seen.push([text, await readCount()]);
      await page.goBack();
      await figures.first().waitFor();
    }
    expect(seen.length).toBeGreaterThan(3);
    expect(seen).toEqual(texts.map((text) => [text, read(text)]));
  };
  it('the figures of attention', () => check('.figures li', (text) => Number(/^\d+/.exec(text)?.[0])));
  it('instances and tasks by status', () => check('.status-bar tr', (text) => Number(/\d+$/.exec(text)?.[0])));
  it('the figures of owned resources', () => check('[aria-labelledby="owned"] .facts div', (text) => Number(/\d+$/.exec(text)?.[0])));
});

describe('instances', () => {
  it('are filtered by the beginning of their names, by status and region, as in the address', async () => {
    await open('instances');
    await page.getByPlaceholder('Name begins with').fill('web');
    await page.waitForURL(/[?&]name=web/);
    await page.getByRole('button', { name: 'active', exact: true }).click();
    await page.waitForURL(/status=active/);
    const { totalCount, names } = await readInstances('filter: { namePrefix: "web", statuses: [active] }');
    await expect.poll(() => readNames()).toEqual(names);
    expect(await readCount()).toBe(totalCount);
    await page.getByPlaceholder('Region').fill('nowhere');
    await page.getByRole('heading', { name: 'No instance is like that' }).waitFor();
    await page.getByRole('button', { name: 'Clear filters' }).click();
    await expect.poll(readCount).toBe((await readInstances('filter: {}')).totalCount);
    expect(new URL(page.url()).search).toBe('');
  });

  it('are sorted by their headers, which keep the focus', async () => {
    for (const [direction, order] of [
      ['asc', 'ascending'],
      ['desc', 'descending'],
    ] as const) {
      await page.getByRole('button', { name: 'Name', exact: true }).click();
      await page.locator(`[role="columnheader"][aria-sort="${order}"]`, { hasText: 'Name' }).waitFor();
      const { names } = await readInstances(`orderBy: { field: name, direction: ${direction} }`);
      await expect.poll(async () => (await readNames()).slice(0, 10)).toEqual(names.slice(0, 10));
      expect(await page.evaluate(() => document.activeElement?.textContent)).toMatch(/^Name/);
    }
    expect(new URL(page.url()).search).toBe('?sort=-name');
  });

  it('a link shows the same list to another user', async () => {
    const address = desk.toPage('instances?status=active&status=stopped&sort=-name');
    const other = await desk.open();
    await desk.signIn(other, 'viewer', address);
    const { names } = await readInstances('filter: { statuses: [active, stopped] }, orderBy: { field: name, direction: desc }');
    await expect.poll(async () => (await readNames(other)).slice(0, 10)).toEqual(names.slice(0, 10));
    await other.close();
  });

  it.each(['j', 'k', 'ArrowDown', 'ArrowUp', 'Enter'])('the first key leads to the first row: %s', async (key) => {
    await open('instances');
    await grid().waitFor();
    await page.keyboard.press(key);
    await expect.poll(() => grid().evaluate((node) => node === document.activeElement)).toBe(true);
    expect([await readCurrentIndex(), new URL(page.url()).pathname]).toEqual([0, desk.toPage('instances')]);
    await page.keyboard.press('ArrowDown');
    await expect.poll(() => readCurrentIndex()).toBe(1);
    const name = await current().locator('a').innerText();
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { level: 1, name }).waitFor();
  });

  it('arrow keys stay with the focused element', async () => {
    await open('instances');
    await grid().waitFor();
    await page.getByRole('button', { name: 'active', exact: true }).focus();
    await page.keyboard.press('ArrowDown');
    expect(await page.evaluate(() => document.activeElement?.textContent)).toBe('active');
    await page.keyboard.press('j');
    expect([await readCurrentIndex(), await grid().evaluate((node) => node === document.activeElement)]).toEqual([0, true]);
  });

  it('keys are for the list after a click on a control in it, and the control has its own', async () => {
    await open('instances');
    await grid().waitFor();
    const isFocused = () => grid().evaluate((node) => node === document.activeElement);
    const boxes = grid().getByRole('checkbox');
    for (const [key, from, to] of [
      ['j', 3, 4],
      ['k', 5, 4],
      ['ArrowDown', 2, 3],
      ['ArrowUp', 2, 1],
    ] as const) {
      await boxes.nth(from).click();
      expect([await readCurrentIndex(), await boxes.nth(from).isChecked()]).toEqual([from, true]);
      await page.keyboard.press(key);
      expect([await readCurrentIndex(), await isFocused()]).toEqual([to, true]);
      await boxes.nth(from).uncheck();
    }
    await boxes.nth(1).click();
    await page.keyboard.press(' ');
    expect(await boxes.nth(1).isChecked()).toBe(false);
    // The header of a column sorts, and the arrows go on from there.
    await page.getByRole('button', { name: 'Name', exact: true }).focus();
    await page.keyboard.press('Enter');
    await page.waitForURL(/sort=name$/);
    await grid().waitFor();
    await boxes.nth(2).click();
    const name = await current().locator('a').innerText();
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { level: 1, name }).waitFor();
  });

  it('keys are for the list after a click on a button that copies, which Enter presses again', async () => {
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
    await open('storage');
    const copy = grid().locator('button.id');
    await copy.nth(1).click();
    await page.evaluate(() => navigator.clipboard.writeText(''));
    await page.keyboard.press('Enter');
    await expect.poll(() => page.evaluate(() => navigator.clipboard.readText())).toMatch(/^[\da-f-]{36}$/);
    await page.keyboard.press('k');
    expect([await readCurrentIndex(), await grid().evaluate((node) => node === document.activeElement)]).toEqual([0, true]);
    // The row whose control has the focus is the current one.
    await copy.nth(1).focus();
    expect(await readCurrentIndex()).toBe(1);
  });

  it('unknown filters are removed from the address, and known ones stay', async () => {
    await open('instances?status=bogus&status=active&attention=nothing&sort=-colour&name=web');
    await page.waitForURL(/\/instances\?name=web&status=active$/);
    expect(await readCount()).toBe((await readInstances('filter: { namePrefix: "web", statuses: [active] }')).totalCount);
    const sent: string[] = [];
    const onRequest = (request: Request) => sent.push(request.postData() ?? '');
    page.on('request', onRequest);
    for (const rest of [
      'instances?status=bogus',
      'tasks?created=once',
      'notifications?severity=loud&unread=no',
      'people/sessions?running=no',
      'people/sessions?person=me&instance=web-02',
    ]) {
      await open(rest);
      await page.waitForURL(desk.baseUrl + desk.toPage(rest.replace(/\?.*/, '')));
    }
    page.off('request', onRequest);
    expect(sent.filter((body) => /"(bogus|loud|web-02|me)"/.test(body))).toEqual([]);
  });

  it('the back button restores the filter, the position and the row', async () => {
    await open('instances?status=active&sort=-name');
    await grid().waitFor();
    // The letters lead into the table from anywhere.
    for (let step = 0; step < 26; step += 1) await page.keyboard.press('j');
    await page.keyboard.press('k');
    await expect.poll(() => readCurrentIndex()).toBe(24);
    const [name, scrolled] = [await current().locator('a').innerText(), await readScroll()];
    expect(scrolled).toBeGreaterThan(0);
    const isBack = async () => {
      await page.waitForURL(/instances\?status=active&sort=-name$/);
      await expect.poll(() => current().locator('a').innerText()).toBe(name);
      await expect.poll(() => readScroll()).toBe(scrolled);
    };
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { level: 1, name }).waitFor();
    // The row had the focus, and is gone.
    await expect.poll(() => page.evaluate(() => document.activeElement?.id)).toBe('main');
    await page.goBack();
    await isBack();
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { level: 1, name }).waitFor();
    await page.locator('.crumbs').getByRole('link', { name: 'Instances' }).click();
    await isBack();
    await page.keyboard.press('j');
    await expect.poll(() => readCurrentIndex()).toBe(25);
  });

  it('are opened by ids in capitals, and a change of page is announced', async () => {
    const spoken = page.locator('p.hidden[role=status]');
    await open('instances');
    const pathname = (await page.locator('.table-row a').first().getAttribute('href')) ?? '';
    await page.goto(`${desk.baseUrl}${pathname.replace(/[0-9a-f-]{36}/g, (id) => id.toUpperCase())}?from=mail`);
    await page.waitForURL(`${desk.baseUrl}${pathname}?from=mail`);
    await page.getByRole('heading', { level: 2, name: 'State' }).waitFor();
    await expect.poll(() => spoken.innerText()).toMatch(/^Instances · \S/);
    await page.getByRole('link', { name: 'Tasks', exact: true }).first().click();
    await expect.poll(() => spoken.innerText()).toMatch(/^Tasks · \S/);
  });

  it('are selected by the space bar, to copy their ids', async () => {
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
    await open('instances');
    await grid().focus();
    for (const key of [' ', 'j', 'j', ' ']) await page.keyboard.press(key);
    await page.getByText('51 in all, 2 selected').waitFor();
    await page.getByRole('button', { name: 'Copy their ids' }).click();
    await page.getByText('Copied.').waitFor();
    const ids = (await page.evaluate(() => navigator.clipboard.readText())).split('\n');
    expect(ids).toHaveLength(2);
    expect(ids).toContain(desk.demo.instances.eligible);
  });

  it('stay, greyed, while the server is unreachable, and are read again automatically', async () => {
    await open('instances');
    await grid().waitFor();
    await page.getByRole('link', { name: 'Tasks', exact: true }).click();
    await page.getByRole('heading', { level: 1, name: 'Tasks' }).waitFor();
    const body = { errors: [{ message: 'The database is out of reach.', extensions: { code: 'service_unavailable' } }] };
    await page.route('**/graphql', (route) => route.fulfill({ status: 503, headers: { 'retry-after': '6' }, json: body }));
    await page.getByRole('link', { name: 'Instances', exact: true }).click();
    await page.locator('[data-code="service_unavailable"]').filter({ hasText: 'Trying again in 6 s' }).waitFor();
    await page.locator('.table.stale').waitFor();
    expect((await readNames()).length).toBeGreaterThan(10);
    await page.unroute('**/graphql');
    await page.locator('.table:not(.stale)').waitFor();
    await expect.poll(() => page.locator('[data-code]').count()).toBe(0);
  });

  it('count the minutes until an hourly budget is reset', async () => {
    await open('instances');
    await grid().waitFor();
    const body = { errors: [{ message: 'Too many requests.', extensions: { code: 'rate_limited' } }] };
    await page.route('**/graphql', (route) => route.fulfill({ status: 429, headers: { 'retry-after': '3596' }, json: body }));
    await page.getByRole('button', { name: 'stopped', exact: true }).click();
    await page.locator('[data-code="rate_limited"]').filter({ hasText: 'Trying again in 60 min.' }).waitFor();
    await page.unroute('**/graphql');
    await page.getByRole('button', { name: 'Try now' }).click();
    await expect.poll(() => page.locator('[data-code]').count()).toBe(0);
  });

  it('have the important columns on a narrow screen', async () => {
    const phone = await desk.open({ viewport: { width: 390, height: 844 } });
    await desk.signIn(phone, 'owner', desk.toPage('instances'));
    await grid(phone).waitFor();
    expect(await phone.getByRole('columnheader').allInnerTexts()).toEqual(['Selected', 'Name', 'Status', 'Created ↑']);
    const { wide, room } = await phone.evaluate(() => ({ wide: document.documentElement.scrollWidth, room: innerWidth }));
    expect(wide).toBe(room);
    await desk.look(phone, 'instances-390');
    await phone.locator('.table-row').first().click();
    await phone.getByRole('heading', { name: 'State' }).waitFor();
    expect(await findBarriers(phone)).toEqual([]);
    await phone.close();
  });
});

describe('an instance', () => {
  it.each(['019b76da-a800-7444-963f-000000000000', 'nothing'])('that does not exist shows a message: %s', async (id) => {
    await open(`instances/${id}`);
    await page.locator('[data-code="not_found"]').waitFor();
  });

  it('of another organization looks absent', async () => {
    await open(`instances/${desk.demo.foreign.instance_id}`);
    await page.locator('[data-code="not_found"]').waitFor();
  });

  it('explains why its backup cannot be tried, for each reason of the server', async () => {
    const query =
      'query ($id: ID!, $instance: ID!) { project(id: $id) { instance(id: $instance) { backupTrial { eligible blockers trial { id } } } } }';
    type Found = { project: { instance: { backupTrial: { eligible: boolean; blockers: string[]; trial: object | null } } } };
    const { console: _, ...cases } = desk.demo.instances;
    const reasons = new Set<string>();
    const sentences = new Set<string>();
    for (const instance of Object.values(cases)) {
      const { backupTrial } = (await desk.graphql<Found>(query, { id: desk.demo.project_id, instance })).project.instance;
      await open(`instances/${instance}/trial`);
      await page.getByRole('heading', { name: backupTrial.eligible ? 'The daily backup can be tried' : 'cannot be tried now' }).waitFor();
      const told = await page.locator('.blockers li strong').allInnerTexts();
      expect(told).toHaveLength(backupTrial.blockers.length);
      expect(await page.getByText('There has never been one.').isVisible()).toBe(backupTrial.trial === null);
      for (const reason of backupTrial.blockers) reasons.add(reason);
      for (const sentence of told) sentences.add(sentence.replace(/: it is .*|plan .*/, ''));
    }
    expect(reasons.size).toBe(7);
    expect(sentences.size).toBe(7);
  });

  it('reads the offer of a trial again when something has happened', async () => {
    await open(`instances/${desk.demo.instances.eligible}/trial`);
    await page.getByRole('heading', { name: 'The daily backup can be tried' }).waitFor();
    await page.locator('.connection[data-state="live"]').waitFor();
    let readings = 0;
    const onRoute: Parameters<Page['route']>[1] = (route) => {
      if (route.request().postData()?.includes('query TrialOffer(')) readings += 1;
      return route.fallback();
    };
    await page.route('**/graphql', onRoute);
    const { organization_id: organizationId, project_id: projectId } = desk.demo;
    const input = { organizationId, projectId, kind: 'test.trial', severity: 'info', title: 'A trial has begun.' };
    await desk.graphql('mutation ($input: PublishNotificationInput!) { publishNotification(input: $input) { notification { id } } }', {
      input,
    });
    await expect.poll(() => readings, { timeout: 10_000 }).toBe(1);
    await page.unroute('**/graphql', onRoute);
  });

  it('has an endless list: the keys move over its pages, and distant rows are released', async () => {
    const instance = desk.demo.instances.eligible;
    const { organization_id: organizationId, project_id: projectId } = desk.demo;
    for (let batch = 0; batch < 3; batch += 1) {
      const notifications = Array.from({ length: 100 }, (_, index) => ({
        kind: 'test.walk',
        severity: 'info',
        title: `Walked over ${batch * 100 + index}`,
        resourceType: 'instance',
        resourceId: instance,
      }));
      await desk.graphql('mutation ($input: PublishNotificationsInput!) { publishNotifications(input: $input) { project { id } } }', {
        input: { organizationId, projectId, notifications },
      });
    }
    await open(`instances/${instance}/notifications`);
    await current().filter({ hasText: 'Walked over 299' }).waitFor();
    await grid().focus();
    // As far as the cursor of the next page is known.
    await page.keyboard.press('End');
    await current().filter({ hasText: 'Walked over 100' }).waitFor();
    await page.keyboard.press('ArrowDown');
    await current().filter({ hasText: 'Walked over 99' }).waitFor();
    await page.keyboard.press('PageUp');
    await page.keyboard.press('PageDown');
    await page.keyboard.press('j');
    await current().filter({ hasText: 'Walked over 98' }).waitFor();
    await pressWhenFilled('Home');
    await page.keyboard.press('End');
    await expect.poll(() => page.evaluate(() => (window as { pressed?: number }).pressed)).toBeGreaterThanOrEqual(300);
    expect(await page.locator('.table-row').count()).toBeLessThan(60);
    await current().filter({ hasText: 'Walked over 299' }).waitFor();
    await page.keyboard.press('Enter');
    await page.waitForURL(/notifications\?open=/);
  });

  it('loses no row between two pages where one is added while the second is on its way', async () => {
    const resourceId = desk.demo.instances.eligible;
    const { organization_id: organizationId, project_id: projectId } = desk.demo;
    const input = { organizationId, projectId, kind: 'test.walk', severity: 'info', title: 'Added meanwhile', resourceId };
    const isOfPage = (request: { postData(): string | null }, index: 0 | 1) => {
      const body = request.postData() ?? '';
      return body.includes('query InstanceNotifications(') && (JSON.parse(body).variables.after !== null) === (index === 1);
    };
    let release = () => {};
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    await open(`instances/${resourceId}/notifications`);
    await current().filter({ hasText: 'Walked over 299' }).waitFor();
    await page.locator('.connection[data-state="live"]').waitFor();
    const onRoute: Parameters<Page['route']>[1] = async (route) => {
      if (!isOfPage(route.request(), 1)) return route.fallback();
      const response = await route.fetch();
      await released;
      // A page that is read anew is no longer waited for.
      await route.fulfill({ response }).catch(() => {});
    };
    await page.route('**/graphql', onRoute);
    const asked = page.waitForRequest((request) => isOfPage(request, 1));
    await grid().evaluate((node) => node.scrollTo(0, 36 * 90));
    await asked;
    const updated = page.waitForResponse((response) => isOfPage(response.request(), 0));
    await desk.graphql('mutation ($input: PublishNotificationInput!) { publishNotification(input: $input) { notification { id } } }', {
      input: { ...input, resourceType: 'instance' },
    });
    await updated;
    release();
    const titles = Array.from({ length: 11 }, (_, index) => `Walked over ${204 - index}`);
    await expect.poll(() => readNames().then((names) => titles.filter((title) => !names.includes(title)))).toEqual([]);
    await page.unroute('**/graphql', onRoute);
  });

  it('retries a page that could not be read, also where another one could be since', async () => {
    const resourceId = desk.demo.instances.eligible;
    const { organization_id: organizationId, project_id: projectId } = desk.demo;
    const input = { organizationId, projectId, kind: 'test.walk', severity: 'info', title: 'Added later', resourceId };
    const isOf = (request: Request) => (request.postData() ?? '').includes('query InstanceNotifications(');
    const isFirst = (request: Request) => JSON.parse(request.postData() ?? '').variables.after === null;
    // The height of the table is the least here, and the same beside a message: it makes no other rows visible.
    await page.setViewportSize({ width: 1280, height: 500 });
    await open(`instances/${resourceId}/notifications`);
    await current().filter({ hasText: 'Added meanwhile' }).waitFor();
    await page.locator('.connection[data-state="live"]').waitFor();
    const onRoute: Parameters<Page['route']>[1] = (route) => {
      if (!isOf(route.request()) || isFirst(route.request())) return route.fallback();
      const body = { errors: [{ message: 'The database is out of reach.', extensions: { code: 'service_unavailable' } }] };
      return route.fulfill({ status: 503, headers: { 'retry-after': '6' }, json: body });
    };
    await page.route('**/graphql', onRoute);
    await grid().evaluate((node) => node.scrollTo(0, 36 * 90));
    await page.locator('[data-code="service_unavailable"]').waitFor();
    const updated = page.waitForResponse((response) => isOf(response.request()) && isFirst(response.request()));
    await desk.graphql('mutation ($input: PublishNotificationInput!) { publishNotification(input: $input) { notification { id } } }', {
      input: { ...input, resourceType: 'instance' },
    });
    await updated;
    await page.unroute('**/graphql', onRoute);
    await expect.poll(() => readNames(), { timeout: 20_000 }).toContain('Walked over 196');
    await expect.poll(() => page.locator('[data-code]').count()).toBe(0);
    await page.setViewportSize({ width: 1280, height: 800 });
  });
});

describe('tasks', () => {
  it('a task opens next to the list, and closes with the focus back in it', async () => {
    await open('tasks?attention=failed_24h');
    await grid().focus();
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Enter');
    await page.waitForURL(/open=/);
    const panel = page.getByRole('dialog');
    await panel.locator('.task-error').waitFor();
    const kind = await current().locator('.cell').nth(1).innerText();
    await panel.getByRole('heading', { name: kind }).waitFor();
    expect(await findBarriers(page)).toEqual([]);
    await desk.look(page, 'task');
    const address = page.url();
    await page.keyboard.press('Escape');
    await expect.poll(() => page.url()).not.toContain('open=');
    await expect.poll(() => page.evaluate(() => document.activeElement?.getAttribute('role'))).toBe('grid');
    // What was closed is not opened again by the way back.
    await page.goBack();
    expect(page.url()).not.toContain('open=');
    await page.goto(address);
    await panel.getByRole('heading', { name: kind }).waitFor();
  });

  it('times and durations are shown in full', async () => {
    await open('tasks');
    await page
      .getByText(/\d min \d+ s so far/)
      .first()
      .waitFor();
    const cut = await page
      .locator('.table-row .cell')
      .filter({ hasText: /so far|ago$/ })
      .evaluateAll((cells) => cells.filter((cell) => cell.scrollWidth > cell.clientWidth).map((cell) => cell.textContent));
    expect(cut).toEqual([]);
  });

  it('an open task that is not in the list is updated', async () => {
    const { organization_id: organizationId, project_id: projectId } = desk.demo;
    const { project } = await desk.graphql<{ project: { tasks: { nodes: Array<{ id: string }> } } }>(
      'query ($id: ID!) { project(id: $id) { tasks(first: 1, filter: { status: running }) { nodes { id } } } }',
      { id: projectId },
    );
    const id = project.tasks.nodes[0]?.id ?? '';
    await open(`tasks?attention=failed_24h&open=${id}`);
    const panel = page.getByRole('dialog');
    await panel.getByText('running', { exact: true }).waitFor();
    await page.locator('.connection[data-state="live"]').waitFor();
    if (!desk.app) throw new Error('this test writes to the embedded database');
    await desk.app.database.query`UPDATE tasks SET status = 'succeeded', finished = now() WHERE id = ${id}::uuid`;
    const input = { organizationId, projectId, kind: 'task.succeeded', severity: 'info', title: 'It is done.' };
    await desk.graphql('mutation ($input: PublishNotificationInput!) { publishNotification(input: $input) { notification { id } } }', {
      input,
    });
    await panel.getByText('succeeded', { exact: true }).waitFor({ timeout: 30_000 });
  });

  it('a hundred thousand of them scroll without growing memory', async () => {
    const total = 100_000;
    const step = 100;
    // All of them take some minutes: TASKS_WALKED=99000, by hand.
    const walked = Number(process.env.TASKS_WALKED ?? 6_000);
    const tab = await desk.open();
    await desk.signIn(tab, 'owner');
    // The demo has few tasks: those of the other pages are of the first, with ids of their own.
    await tab.route('**/graphql', async (route) => {
      const { query, variables } = route.request().postDataJSON() as { query: string; variables: { id: string; after: string | null } };
      if (!query.startsWith('query Tasks(')) return route.continue();
      const from = Number(variables.after ?? 0);
      const created = new Date(Date.now() - from * 1000).toISOString();
      const nodes = Array.from({ length: step }, (_, index) => ({
        __typename: 'Task',
        id: `019b76da-a800-7000-8000-${String(from + index).padStart(12, '0')}`,
        kind: `task.${from + index}`,
        status: 'succeeded',
        error: '',
        instanceId: null,
        instance: null,
        ...{ created, started: created, finished: created },
      }));
      const pageInfo = { __typename: 'PageInfo', endCursor: String(from + step), hasNextPage: from + step < total };
      const tasks = { __typename: 'TaskConnection', totalCount: total, pageInfo, nodes };
      await route.fulfill({ json: { data: { project: { __typename: 'Project', id: variables.id, tasks } } } });
    });
    await open('tasks', tab);
    await tab.getByText('100,000 in all').waitFor();
    await grid(tab).focus();
    const session = await tab.context().newCDPSession(tab);
    const measure = async () => {
      await session.send('HeapProfiler.collectGarbage');
      return ((await session.send('Runtime.getHeapUsage')) as { usedSize: number }).usedSize;
    };
    const walkTo = async (index: number) => {
      while ((await readCurrentIndex(tab)) < index) {
        await tab.keyboard.press('End');
        await current(tab).filter({ hasText: 'task.' }).waitFor();
      }
      return measure();
    };
    const [early, late] = [await walkTo(2_000), await walkTo(walked)];
    console.log(`${(early / 2 ** 20).toFixed(1)} MiB after 2,000 rows, ${(late / 2 ** 20).toFixed(1)} after ${walked}`);
    // What is kept of a page that was let go is its cursor: what V8 compiles meanwhile is up to 2 MiB, and all the rows would be 20.
    expect(late - early).toBeLessThan((6 * 2 ** 20 * (walked - 2_000)) / 4_000);
    expect(await tab.locator('.table-row').count()).toBeLessThan(60);
    await tab.close();
  });
});

it('makes no requests to other hosts, and logs no errors', () => {
  expect([desk.elsewhere, desk.complaints]).toEqual([[], []]);
});
