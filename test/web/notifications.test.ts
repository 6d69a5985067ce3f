import type { Locator } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { Arrivals, countUnseen } from '../../web/src/pages/notifications/arrived.ts';
import { type DeskTest, findBarriers, type Page, startDesk } from './support.ts';

let desk: DeskTest;
/** Two tabs of one person. */
let page: Page;
let other: Page;
const tabs = () => [page, other];

beforeAll(async () => {
  desk = await startDesk();
  page = await desk.open();
  await desk.signIn(page, 'owner', desk.toPage('notifications'));
  other = await desk.openTab(page, desk.toPage('notifications'));
  for (const tab of tabs()) {
    await waitForLive(tab);
  }
  // What is drawn of a tab behind another one is drawn late.
  await page.bringToFront();
});
afterAll(() => desk?.close());

const waitForLive = async (tab: Page) => {
  await tab.locator('.connection[data-state="live"]').waitFor();
  await rows(tab).first().waitFor();
};
const rows = (tab: Page) => tab.locator('.table-row');
const row = (tab: Page, title: string) => rows(tab).filter({ hasText: title });
const news = (tab: Page, text: string | RegExp) => tab.locator('.news').getByRole('button', { name: text });
const opened = (tab: Page) => tab.getByRole('dialog', { name: 'Notification' });
const hasFocus = (part: Locator) => part.evaluate((node) => node === document.activeElement);
const scroll = (tab: Page, top: number) => tab.locator('.table').evaluate((table, to) => table.scrollTo({ top: to }), top);
const open = async (tab: Page, search = '') => {
  await tab.goto(desk.baseUrl + desk.toPage(`notifications${search}`));
  await waitForLive(tab);
};

interface Published {
  readonly id: string;
  readonly sequence: number;
}

async function publish(title: string, more: object = {}): Promise<Published> {
  const { organization_id: organizationId, project_id: projectId } = desk.demo;
  const input = { organizationId, projectId, kind: 'test.desk', severity: 'info', title, ...more };
  const { publishNotification } = await desk.graphql<{ publishNotification: { notification: Published } }>(
    'mutation ($input: PublishNotificationInput!) { publishNotification(input: $input) { notification { id sequence } } }',
    { input },
  );
  return publishNotification.notification;
}

async function publishMany(titles: readonly string[], body = ''): Promise<void> {
  const { organization_id: organizationId, project_id: projectId } = desk.demo;
  const notifications = titles.map((title) => ({ kind: 'test.desk', severity: 'info', title, body }));
  await desk.graphql('mutation ($input: PublishNotificationsInput!) { publishNotifications(input: $input) { notifications { id } } }', {
    input: { organizationId, projectId, notifications },
  });
}

async function countUnread(): Promise<number> {
  const { project } = await desk.graphql<{ project: { unreadNotificationCount: number } }>(
    'query ($id: ID!) { project(id: $id) { unreadNotificationCount } }',
    { id: desk.demo.project_id },
  );
  return project.unreadNotificationCount;
}

/** The badge and the title of both tabs, and the server, have this number. */
async function expectUnread(count: number): Promise<void> {
  await expect.poll(countUnread).toBe(count);
  for (const tab of tabs()) {
    const badge = tab.locator('.side nav .count');
    if (count === 0) await badge.waitFor({ state: 'detached' });
    else await expect.poll(() => badge.evaluate((node) => node.firstChild?.textContent)).toBe(count.toLocaleString('en'));
    await expect.poll(() => tab.title()).toMatch(count === 0 ? /^Notifications/ : new RegExp(`^\\(${count}\\) Notifications`));
  }
}

it('lists the notifications of the server, the newest first', async () => {
  const { project } = await desk.graphql<{ project: { notifications: { nodes: { title: string }[] } } }>(
    'query ($id: ID!) { project(id: $id) { notifications(first: 5) { nodes { title } } } }',
    { id: desk.demo.project_id },
  );
  const titles = await rows(page).locator('.title').allTextContents();
  expect(titles.slice(0, 5)).toEqual(project.notifications.nodes.map(({ title }) => title));
  await desk.look(page, 'notifications');
});

it('shows a published notification in another tab within 300 ms at the median', async () => {
  await other.bringToFront();
  await other.evaluate(() => {
    const seen: Record<string, number> = {};
    Object.assign(window, { seen });
    new MutationObserver(() => {
      for (const title of document.querySelectorAll('.table-row.fresh .title')) {
        const text = title.textContent ?? '';
        if (!(text in seen)) requestAnimationFrame(() => (seen[text] ??= Date.now()));
      }
    }).observe(document.body, { subtree: true, childList: true, attributes: true });
  });
  const took: number[] = [];
  // A request and a frame of that tab show how busy the machine is.
  const controls: number[] = [];
  for (let turn = 0; turn < 20; turn += 1) {
    const idle = Date.now();
    await countUnread();
    await other.evaluate(() => new Promise((resolve) => requestAnimationFrame(resolve)));
    controls.push(Date.now() - idle);
    const title = `Measured ${turn}.`;
    const begin = Date.now();
    await publish(title);
    const read = () => other.evaluate((text) => (window as unknown as { seen: Record<string, number> }).seen[text] ?? 0, title);
    await expect.poll(read, { interval: 10 }).toBeGreaterThan(0);
    took.push((await read()) - begin);
  }
  const [median, control] = [took, controls].map((some) => {
    const sorted = some.sort((a, b) => a - b);
    return ((sorted[9] ?? 0) + (sorted[10] ?? 0)) / 2;
  }) as [number, number];
  console.log(`on the screen of another tab: median ${median} ms, at most ${took.at(-1)} ms; a request and a frame took ${control} ms`);
  expect(median).toBeLessThanOrEqual(300 + control);
  // The tab behind is told by the same event, and shows it when the browser gives it time.
  const readFirst = async () => (await rows(page).locator('.title').allTextContents())[0];
  await expect.poll(readFirst).toBe('Measured 19.');
  await page.bringToFront();
});

it('marks one as read, in both tabs and at the server', async () => {
  const before = await countUnread();
  await row(page, 'Measured 19.').locator('.title').click();
  await opened(page).getByRole('button', { name: 'Mark as read' }).click();
  await opened(page).getByText('Read', { exact: true }).waitFor();
  expect(await hasFocus(opened(page))).toBe(true);
  await expectUnread(before - 1);
  for (const tab of tabs()) await expect.poll(() => row(tab, 'Measured 19.').getAttribute('class')).not.toContain('unread');
  await page.keyboard.press('Escape');
  await opened(page).waitFor({ state: 'detached' });
});

it('shows an error with the notification that it is about, and with no other', async () => {
  await page.route('**/graphql', (route) =>
    route.request().postData()?.includes(' MarkRead(')
      ? route.fulfill({ json: { errors: [{ message: 'Not now.', extensions: { code: 'permission_denied' } }], data: null } })
      : route.fallback(),
  );
  await row(page, 'Measured 18.').locator('.title').click();
  await opened(page).getByRole('button', { name: 'Mark as read' }).click();
  await opened(page).getByText('Not now.').waitFor();
  await page.keyboard.press('Escape');
  await page.getByText('Not marked: Not now.').waitFor();
  await row(page, 'Measured 17.').locator('.title').click();
  await opened(page).getByRole('heading', { name: 'Measured 17.' }).waitFor();
  await opened(page).getByText('Not now.').waitFor({ state: 'detached' });
  await page.keyboard.press('Escape');
  await opened(page).waitFor({ state: 'detached' });
  await page.unroute('**/graphql');
});

it('marks the current one and the selected ones by the keyboard', async () => {
  const before = await countUnread();
  await page.locator('.table').focus();
  await page.keyboard.press('Home');
  await page.keyboard.press('j');
  await page.keyboard.press('r');
  await expectUnread(before - 1);
  for (const key of ['j', ' ', 'j', ' ', 'j', ' ']) await page.keyboard.press(key);
  await page.locator('.table-count').getByText('3 selected').waitFor();
  await page.keyboard.press('r');
  await expectUnread(before - 4);
  for (const turn of [18, 17, 16, 15])
    await expect.poll(() => row(other, `Measured ${turn}.`).getAttribute('class')).not.toContain('unread');
  expect(await row(other, 'Measured 14.').getAttribute('class')).toContain('unread');
  // A letter that is typed is not a command.
  await page.getByLabel('Kind').fill('');
  await page.getByLabel('Kind').press('r');
  await expectUnread(before - 4);
  await page.getByLabel('Kind').fill('');
});

it('leaves letters to an open menu, and acts on none once they are switched off', async () => {
  const before = await countUnread();
  const person = page.getByRole('banner').getByRole('button', { name: 'Olivia Okafor' });
  const letters = page.getByRole('menuitemcheckbox', { name: /Keys of one letter/ });
  const search = page.getByRole('combobox', { name: 'Search instances and pages' });
  const current = () => page.locator('.table-row.current').getAttribute('aria-rowindex');
  await row(page, 'Measured 12.').getByRole('checkbox').check();
  await person.click();
  await letters.waitFor();
  await page.keyboard.press('r');
  await letters.click();
  await page.keyboard.press('Escape');
  await letters.waitFor({ state: 'detached' });
  for (const key of ['r', '/', 'j']) await page.keyboard.press(key);
  expect(await person.evaluate((node) => node === document.activeElement)).toBe(true);
  expect(await search.getAttribute('placeholder')).toBe('Search');
  await page.locator('.table').focus();
  await page.keyboard.press('Home');
  for (const key of ['j', 'r']) await page.keyboard.press(key);
  expect(await current()).toBe('2');
  await page.keyboard.press('ArrowDown');
  expect(await current()).toBe('3');
  await page.locator('.key-help').getByText('↓').waitFor();
  // This browser remembers it.
  await page.reload();
  await waitForLive(page);
  await page.keyboard.press('/');
  expect(await search.evaluate((node) => node === document.activeElement)).toBe(false);
  expect(await countUnread()).toBe(before);
  await person.click();
  await letters.click();
  await page.keyboard.press('Escape');
  await letters.waitFor({ state: 'detached' });
  await page.locator('.key-help').getByText('marks as read').waitFor();
  await page.keyboard.press('/');
  expect(await search.evaluate((node) => node === document.activeElement)).toBe(true);
});

it('reverts a refused change, with the server’s message', async () => {
  const before = await countUnread();
  let refuse = () => {};
  const isTime = new Promise<void>((resolve) => {
    refuse = resolve;
  });
  await page.route('**/graphql', async (route) => {
    if (!route.request().postData()?.includes('mutation MarkRead')) return route.continue();
    await isTime;
    const errors = [{ message: 'Not on a Sunday.', path: ['markNotificationsRead'], extensions: { code: 'permission_denied' } }];
    await route.fulfill({ json: { errors, data: { markNotificationsRead: null } } });
  });
  await row(page, 'Measured 13.').getByRole('checkbox').check();
  await page.getByRole('button', { name: 'Mark 1 selected as read' }).click();
  await expect.poll(() => row(page, 'Measured 13.').getAttribute('class')).not.toContain('unread');
  refuse();
  await page.getByRole('alert').getByText('Not on a Sunday.').waitFor();
  await expect.poll(() => row(page, 'Measured 13.').getAttribute('class')).toContain('unread');
  await expectUnread(before);
  await page.getByRole('button', { name: 'Mark 1 selected as read' }).waitFor();
  await row(page, 'Measured 13.').getByRole('checkbox').uncheck();
  await page.unroute('**/graphql');
  await page.getByRole('alert').getByRole('button', { name: 'Close' }).click();
});

it('counts arrivals while the user is further down, and marks only the shown ones', async () => {
  await scroll(page, 2000);
  for (const turn of [0, 1, 2]) await publish(`Above ${turn}.`);
  await news(page, /^3 new$/).waitFor();
  expect(await page.locator('.table').evaluate((table) => table.scrollTop)).toBe(2000);
  await desk.look(page, 'notifications-new');
  await page.getByRole('button', { name: 'Mark shown as read' }).click();
  await expectUnread(3);
  await news(page, /^3 new$/).click();
  await row(page, 'Above 2.').waitFor();
  await news(page, /new/).waitFor({ state: 'detached' });
  expect((await rows(page).locator('.title').allTextContents()).slice(0, 3)).toEqual(['Above 2.', 'Above 1.', 'Above 0.']);
});

it('shows a notification as read that was read as soon as it arrived', async () => {
  // Server-sent events that arrive together are read together.
  const third = await desk.open();
  await third.routeWebSocket(/graphql/, (socket) => socket.close());
  await desk.signIn(third, 'owner', desk.toPage('notifications'));
  await waitForLive(third);
  const unread = await countUnread();
  const busy = third.evaluate(() => {
    const until = performance.now() + 2_000;
    while (performance.now() < until);
  });
  const { id } = await publish('Read at once');
  const project = `/v1/organizations/${desk.demo.organization_id}/projects/${desk.demo.project_id}`;
  await desk.ask('POST', `${project}/notifications/read`, 'owner', { notification_ids: [id] });
  await busy;
  await row(third, 'Read at once').waitFor();
  await expect.poll(() => third.title()).toMatch(`(${unread})`);
  await expect.poll(() => row(third, 'Read at once').getAttribute('class')).not.toContain('unread');
  await third.context().close();
});

it('keeps its filters in the address, counts the hidden arrivals, and marks only the shown ones', async () => {
  await publish('A loud one.', { severity: 'critical', kind: 'test.loud' });
  await page.getByRole('button', { name: 'Unread' }).click();
  await page.waitForURL(/unread=true/);
  await page.getByRole('button', { name: 'critical' }).click();
  await page.waitForURL(/severity=critical/);
  expect(await page.evaluate(() => document.activeElement?.textContent?.trim())).toBe('critical');
  await page.getByLabel('Kind').fill('test.loud');
  await page.getByLabel('Kind').press('Enter');
  await expect.poll(() => hasFocus(page.locator('.chosen-kind'))).toBe(true);
  await page.keyboard.press('Enter');
  await expect.poll(() => hasFocus(page.getByLabel('Kind'))).toBe(true);
  await page.getByLabel('Kind').fill('test.loud');
  await page.getByLabel('Kind').press('Enter');
  const address = desk.baseUrl + desk.toPage('notifications?unread=true&severity=critical&kind=test.loud');
  await page.waitForURL(address);
  await page.reload();
  await waitForLive(page);
  expect(await rows(page).locator('.title').allTextContents()).toEqual(['A loud one.']);
  for (const name of ['Unread', 'critical', /test\.loud/])
    expect(await page.getByRole('button', { name }).getAttribute('aria-pressed')).toBe('true');

  await publish('A quiet one.');
  await news(page, '1 new, hidden by the filter').waitFor();
  await publish('Another loud one.', { severity: 'critical', kind: 'test.loud' });
  await row(page, 'Another loud one.').waitFor();
  await page.getByRole('button', { name: 'Mark shown as read' }).click();
  // Left are the three above and the quiet one.
  await expectUnread(4);
  await page.getByText('No notification is like this').waitFor();
  expect(await page.getByRole('button', { name: 'Mark shown as read' }).isDisabled()).toBe(true);
  expect(await page.getByRole('button', { name: 'Mark all as read' }).isDisabled()).toBe(false);
  await news(page, '1 new, hidden by the filter').click();
  await page.waitForURL(desk.baseUrl + desk.toPage('notifications'));
  await row(page, 'A quiet one.').waitFor();
});

it('counts the unread ones of the arrivals that are not shown', () => {
  const arrivals = new Arrivals({ writeFragment() {}, release() {} } as never, 'p');
  const add = (sequence: number, isRead: boolean, isShown: boolean, isAtTop: boolean) =>
    arrivals.add({ sequence, notification: { id: `${sequence}`, read: isRead } } as never, { isShown, isAtTop });
  add(1, true, false, true);
  add(2, false, false, true);
  add(3, true, true, false);
  add(4, false, true, false);
  const { missed, hidden } = arrivals.read();
  expect([missed, hidden, countUnseen(arrivals.read())]).toEqual([2, 2, 2]);
  arrivals.reach(4);
  expect(countUnseen(arrivals.read())).toBe(1);
  for (const sequence of [5, 6, 7]) add(sequence, false, true, false);
  // The last one came while the list was read anew.
  arrivals.reach(6);
  expect([arrivals.read().missed, countUnseen(arrivals.read())]).toEqual([1, 2]);
});

it('does not count as new what a list contains that was loaded before the feed came back', () => {
  const arrivals = new Arrivals({ writeFragment() {}, release() {} } as never, 'p');
  arrivals.reach(8);
  for (const sequence of [7, 8, 9]) {
    arrivals.add({ sequence, notification: { id: `${sequence}`, read: false } } as never, { isShown: true, isAtTop: false });
  }
  expect([arrivals.read().missed, arrivals.read().newest]).toEqual([1, 9]);
});

it('gives the focus to the list where the button for the selected ones goes', async () => {
  await publish('To be selected.');
  const before = await countUnread();
  await row(page, 'To be selected.').getByRole('checkbox').check();
  await page.getByRole('button', { name: 'Mark 1 selected as read' }).click();
  await expectUnread(before - 1);
  expect(await hasFocus(page.locator('.table'))).toBe(true);
});

it('marks all as read', async () => {
  const all = page.getByRole('button', { name: 'Mark all as read' });
  await all.click();
  await expectUnread(0);
  expect(await hasFocus(all)).toBe(true);
  expect(await all.isDisabled()).toBe(true);
  for (const tab of tabs()) await expect.poll(() => tab.locator('.table-row.unread').count()).toBe(0);
  await page.getByText('All are read').waitFor();
});

it('opens one by its address, whole, with the way to its instance', async () => {
  const instance = desk.demo.instances.eligible;
  const { id, sequence } = await publish('About an instance.', {
    body: 'First line.\nSecond line.',
    data: { deep: { figure: 42 } },
    resourceType: 'instance',
    resourceId: instance,
  });
  await page.goto(desk.baseUrl + desk.toPage());
  await page.getByRole('link', { name: 'About an instance.' }).click();
  await page.waitForURL(new RegExp(`open=${id}`));
  const panel = opened(page);
  await panel.getByRole('heading', { name: 'About an instance.' }).waitFor();
  await panel.getByText('First line.').waitFor();
  await panel.getByText('"figure": 42').waitFor();
  await panel.getByText(String(sequence), { exact: true }).waitFor();
  await desk.look(page, 'notification');
  expect(await findBarriers(page)).toEqual([]);
  await panel.locator(`a[href*="${instance}"]`).click();
  await page.waitForURL(new RegExp(`instances/${instance}`));
  await page.goBack();
  await opened(page).waitFor();
  await page.goto(desk.baseUrl + desk.toPage('notifications?open=019b76da-a800-7699-b853-000000000000'));
  await opened(page).getByText('This notification is not here').waitFor();
  await open(page);
});

it('is not changed by a hostile title', async () => {
  const told: string[] = [];
  page.on('dialog', (dialog) => {
    told.push(dialog.message());
    dialog.dismiss();
  });
  page.on('request', (request) => request.url().includes('/stolen') && told.push(request.url()));
  const width = await page.locator('.table').evaluate((table) => table.getBoundingClientRect().width);
  const image = '<img src="/stolen" onerror="alert(1)"><script>alert(2)</script>';
  const turned = '\u202eturned\u2067 \u0645\u0631\u062d\u0628\u0627';
  const long = `<b>${'w'.repeat(496)}`;
  const hostile = { kind: '"><img src=/stolen>', body: image, data: { [image]: turned } };
  for (const title of [long, turned, image]) await publish(title, hostile);
  await row(page, 'onerror').waitFor();
  const isFlat = () => page.evaluate(() => document.documentElement.scrollWidth <= innerWidth);
  expect(await isFlat()).toBe(true);
  expect(await page.locator('.table').evaluate((table) => table.getBoundingClientRect().width)).toBe(width);
  for (const which of [0, 1, 2]) {
    await rows(page).nth(which).locator('.title').click();
    await opened(page).getByRole('heading', { level: 2 }).waitFor();
    expect(
      await page.locator('main img, main script, main b, [role="dialog"] img, [role="dialog"] script, [role="dialog"] b').count(),
    ).toBe(0);
    expect(await isFlat()).toBe(true);
    await page.keyboard.press('Escape');
    await opened(page).waitFor({ state: 'detached' });
  }
  // What stands beside a title goes on from left to right.
  const places = await rows(page)
    .nth(1)
    .locator('.cell')
    .evaluateAll((cells) => cells.map((cell) => cell.getBoundingClientRect().left));
  expect(places).toEqual([...places].sort((a, b) => a - b));
  expect(told).toEqual([]);
});

it('resumes after a disconnect without a gap, with the reads since then', async () => {
  const { id } = await publish('Before the break.');
  await row(page, 'Before the break.').waitFor();
  await page.context().setOffline(true);
  await page.getByText('Not live.').waitFor();
  await desk.look(page, 'notifications-offline');
  const titles = Array.from({ length: 130 }, (_, index) => `While away ${index}.`);
  await publishMany(titles.slice(0, 70));
  await publishMany(titles.slice(70));
  await desk.graphql('mutation ($input: MarkNotificationsReadInput!) { markNotificationsRead(input: $input) { marked } }', {
    input: { organizationId: desk.demo.organization_id, projectId: desk.demo.project_id, notificationIds: [id] },
  });
  await page.context().setOffline(false);
  await waitForLive(page);
  await page.getByText('Not live.').waitFor({ state: 'detached' });
  await expectUnread(await countUnread());
  await row(page, 'While away 129.').waitFor();
  // They are all there, each once, and in their order.
  const found: string[] = [];
  for (let index = 0; index <= titles.length; index += 1) {
    const here = page.locator(`[id="Notifications-${index}"] .title`);
    if (index % 10 === 0) await scroll(page, index * 36);
    found.push((await here.textContent()) ?? '');
  }
  expect(found).toEqual([...titles.reverse(), 'Before the break.']);
  await expect.poll(() => row(page, 'Before the break.').getAttribute('class')).not.toContain('unread');
  await scroll(page, 0);
});

it('shows the numbers of a gap', async () => {
  const lacking = await desk.openTab(page, '/icon.svg');
  let tell = (_frame: string) => {};
  let subscription = '';
  await lacking.routeWebSocket('**/graphql', (socket) => {
    const server = socket.connectToServer();
    tell = (frame) => socket.send(frame);
    socket.onMessage((message) => {
      const { type, id } = JSON.parse(String(message));
      if (type === 'subscribe') subscription = id;
      server.send(message);
    });
  });
  await open(lacking);
  const gap = { type: 'gap', from: 1200, to: 1300 };
  const isReadAnew = lacking.waitForRequest('**/graphql');
  tell(JSON.stringify({ id: subscription, type: 'next', payload: { data: { notificationFeed: gap } } }));
  await lacking.getByText(/Numbers 1,200 to 1,300 could not be told/).waitFor();
  await isReadAnew;
  await rows(lacking).first().waitFor();
  await desk.look(lacking, 'notifications-gap');
  await lacking.close();
  await page.bringToFront();
});

it('follows another project, and the first one again', async () => {
  const { organization_id: organizationId, project_id: main, empty_project_id: empty } = desk.demo;
  const choose = async (name: string, typed: string) => {
    await page.getByRole('button', { name }).click();
    await page.getByPlaceholder('Find a project').fill(typed);
    await page.keyboard.press('Enter');
  };
  await choose('Production', 'sandbox');
  await page.waitForURL(new RegExp(empty));
  await page.locator('.side nav').getByRole('link', { name: 'Notifications' }).click();
  await page.getByText('Nothing has happened yet').waitFor();
  await page.locator('.connection[data-state="live"]').waitFor();
  await desk.look(page, 'notifications-empty');
  await publish('In the other project.');
  const input = { organizationId, projectId: empty, kind: 'test.desk', severity: 'info', title: 'In this project.' };
  await desk.graphql('mutation ($input: PublishNotificationInput!) { publishNotification(input: $input) { notification { id } } }', {
    input,
  });
  await row(page, 'In this project.').waitFor();
  expect(await rows(page).locator('.title').allTextContents()).toEqual(['In this project.']);
  await choose('Sandbox', 'production');
  await page.waitForURL(new RegExp(main));
  await page.locator('.side nav').getByRole('link', { name: 'Notifications' }).click();
  await row(page, 'In the other project.').waitFor();
  await expectUnread(await countUnread());
});

it('keeps the current row where more arrives at once than is added, and acts on no other', async () => {
  await open(page);
  await publish('The current one.');
  await row(page, 'The current one.').waitFor();
  await page.locator('.table').focus();
  await page.keyboard.press('Home');
  const current = page.locator('.table-row.current');
  await publishMany(Array.from({ length: 60 }, (_, index) => `In a burst ${index}.`));
  await row(page, 'In a burst 59.').waitFor();
  await expect.poll(() => current.getAttribute('aria-rowindex')).toBe('62');
  expect(await current.textContent()).toContain('The current one.');
  await publishMany(Array.from({ length: 60 }, (_, index) => `In the next ${index}.`));
  await row(page, 'In the next 59.').waitFor();
  // It is behind the first hundred rows now.
  await expect.poll(() => current.count()).toBe(0);
  // A busy machine still takes in the burst, which would move the row that becomes the current one.
  await page.waitForTimeout(1_000);
  await page.keyboard.press('j');
  await expect.poll(() => current.getAttribute('aria-rowindex')).toBe('2');
});

it('keeps no more arrivals than it shows', async () => {
  const browser = await page.context().newCDPSession(page);
  // The lowest of five, as the page takes in responses while it is measured: some MiB that it does not keep.
  const measure = async () => {
    let lowest = Number.POSITIVE_INFINITY;
    for (let time = 0; time < 5; time += 1) {
      await page.waitForTimeout(200);
      await browser.send('HeapProfiler.collectGarbage');
      const { usedSize } = await browser.send('Runtime.getHeapUsage');
      lowest = Math.min(lowest, usedSize / 1024 / 1024);
    }
    return lowest;
  };
  const body = 'x'.repeat(6_000);
  let count = 0;
  const flood = async (turns: number) => {
    for (let turn = 0; turn < turns; turn += 1) {
      const titles = Array.from({ length: 40 }, () => `Flood ${(count += 1)}.`);
      await publishMany(titles, body);
    }
    await row(page, `Flood ${count}.`).waitFor();
  };
  // What the page and its engine keep at most is there by then.
  await flood(15);
  const before = await measure();
  await flood(35);
  const grown = (await measure()) - before;
  console.log(`1400 notifications of 6 KB have left ${grown.toFixed(1)} MiB in the page`);
  // All of them would be 8 MiB and more; what the engine keeps for itself goes up and down by some.
  expect(grown).toBeLessThan(5);
  expect(await rows(page).count()).toBeLessThan(60);
  await expectUnread(await countUnread());
});

it('marks the shown ones also where the first rows are no longer loaded', async () => {
  for (let turn = 0; turn < 10; turn += 1) await publishMany(Array.from({ length: 60 }, (_, index) => `Far down ${60 * turn + index}.`));
  await open(page);
  const goFarDown = async () => {
    for (let first = 80; first <= 560; first += 80) {
      await scroll(page, first * 36);
      await page.locator(`[id="Notifications-${first + 5}"] .title`).waitFor();
    }
  };
  await goFarDown();
  await publish('Far above.');
  await news(page, /^1 new$/).waitFor();
  expect(await page.locator('datalist option').evaluateAll((kinds) => kinds.map((kind) => (kind as HTMLOptionElement).value))).toContain(
    'test.desk',
  );
  await page.getByRole('button', { name: 'Mark shown as read' }).click();
  await expectUnread(1);
  // Coming back to the list, as far down as before, loads no other rows than those.
  await news(page, /^1 new$/).click();
  await row(page, 'Far above.').waitFor();
  await goFarDown();
  await publish('Further above.');
  await news(page, /^1 new$/).waitFor();
  await page.locator('.side nav').getByRole('link', { name: 'Instances' }).click();
  await page.getByRole('heading', { name: 'Instances' }).waitFor();
  await page.goBack();
  await page.locator('[id="Notifications-565"] .title').waitFor();
  await page.getByRole('button', { name: 'Mark shown as read' }).click();
  await expectUnread(1);
  await scroll(page, 0);
});

it('is accessible on a phone, magnified, in the dark, and by a screen reader', async () => {
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme });
    expect(await findBarriers(page)).toEqual([]);
  }
  await page.setViewportSize({ width: 390, height: 800 });
  expect(await findBarriers(page)).toEqual([]);
  expect(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth)).toBe(true);
  await desk.look(page, 'notifications-390');
  // A screen of 1366 by 768, magnified to 200 %.
  await page.setViewportSize({ width: 683, height: 384 });
  expect(await page.locator('.table').evaluate((table) => table.clientHeight)).toBeGreaterThan(290);
});

it('makes no requests to other hosts, and logs no errors', () => {
  expect(desk.elsewhere).toEqual([]);
  expect(desk.complaints).toEqual([]);
});
