import type { Locator } from 'playwright-core';
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

const open = async (rest: string) => {
  await page.goto(desk.baseUrl + desk.toPage(rest));
  await page.locator('main h1').first().waitFor();
};
/** Signs in on the page as it is: going to an address would forget what the tab holds in memory. */
const signInHere = async (role: 'owner' | 'member' = 'owner') => {
  await page.getByLabel('API key or session token').fill(desk.demo.users[role].token ?? '');
  await page.getByRole('button', { name: 'Sign in', exact: true }).click();
};
const signOut = async () => {
  await page.getByRole('button', { name: /Olivia/ }).click();
  await page.getByRole('menuitem', { name: 'Sign out' }).click();
  await page.waitForURL(/\/signin/);
};
/** Handles the GraphQL requests of one operation until it is told to stop. */
const intercept = async (operation: string, handle: (route: Route) => unknown) => {
  const onRoute = (route: Route) => (route.request().postData()?.includes(` ${operation}(`) ? handle(route) : route.fallback());
  await page.route('**/graphql', onRoute as never);
  return () => page.unroute('**/graphql', onRoute as never);
};
type Route = Parameters<Parameters<Page['route']>[1]>[0];
/** A promise, and what fulfils it. */
const hold = (): [Promise<void>, () => void] => {
  let release = () => {};
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  return [held, () => release()];
};
const refuse = (route: Route) =>
  route.fulfill({
    status: 401,
    contentType: 'application/json',
    body: JSON.stringify({ errors: [{ message: 'Sign in.', extensions: { code: 'not_authenticated' } }] }),
  });
const focused = () => page.evaluate(() => document.activeElement?.textContent);

describe('signing in', () => {
  it('shows that the server is unreachable, and recovers when it is back', async () => {
    const other = await desk.open();
    await other.route('**/desk/settings', (route) => route.abort());
    await other.goto(`${desk.baseUrl}/signin`);
    const alert = other.locator('[data-code]');
    await alert.getByText('The server does not answer').first().waitFor();
    expect(await alert.innerText()).not.toMatch(/failed to fetch|ALLOWED_ORIGINS/i);
    await other.unroute('**/desk/settings');
    await alert.getByRole('button', { name: 'Try now' }).click();
    await other.getByRole('button', { name: /owner@acme/ }).waitFor();
    await expect.poll(() => alert.count()).toBe(0);
    await other.context().close();
  });

  it('shows that the server does not respond, and recovers', async () => {
    const other = await desk.open();
    await other.route('**/desk/settings', () => {}, { times: 1 });
    await other.goto(`${desk.baseUrl}/signin`);
    await other.getByRole('alert').getByText('The server does not answer').first().waitFor();
    await other.getByRole('button', { name: /owner@acme/ }).waitFor();
    await other.context().close();
  });

  it('shows that the server is unreachable for a credential, and for a response that is not JSON', async () => {
    const other = await desk.open();
    await other.goto(`${desk.baseUrl}/signin`);
    const paste = async () => {
      await other.getByLabel('API key or session token').fill(desk.demo.users.owner.api_key);
      await other.getByRole('button', { name: 'Sign in', exact: true }).click();
    };
    await other.route('**/graphql', (route) => route.abort());
    await paste();
    await other.getByRole('alert').getByText('The server does not answer').waitFor();
    await other.unroute('**/graphql');
    await other.route('**/graphql', (route) => route.fulfill({ status: 502, contentType: 'text/html', body: '<h1>Bad gateway</h1>' }));
    await paste();
    await other.getByRole('alert').getByText('The answer is not one of this server (502)').waitFor();
    await other.unroute('**/graphql');
    await paste();
    await other.waitForURL(/\/projects\//);
    await other.context().close();
  });
});

describe('the search', () => {
  const search = () => page.getByRole('combobox', { name: 'Search instances and pages' });
  const found = () => page.getByRole('listbox', { name: 'Found' });

  it('shows that it searches, and opens the first result when it arrives after Enter', async () => {
    await open('tasks');
    let release = () => {};
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    const stop = await intercept('Search', async (route) => {
      await released;
      await route.continue();
    });
    await search().fill('web');
    await found().getByText('Searching …').waitFor();
    expect(await found().getByText('Nothing begins so.').count()).toBe(0);
    await search().press('Enter');
    release();
    await page.waitForURL(/\/instances\/[\da-f-]{36}/);
    await stop();
  });

  it('opens no result of the previous text, however soon Enter follows the last letter', async () => {
    await open('tasks');
    await search().fill('web');
    await found().getByRole('option', { name: /^web-/ }).first().waitFor();
    await expect.poll(() => search().getAttribute('aria-activedescendant')).toBeTruthy();
    await search().evaluate(async (field: HTMLInputElement) => {
      Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value')?.set?.call(field, 'storage');
      field.dispatchEvent(new InputEvent('input', { bubbles: true, inputType: 'insertText' }));
      // The text has been rendered then, and its results have not.
      await null;
      field.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter', bubbles: true, cancelable: true }));
    });
    await page.waitForURL(/\/(storage|instances\/.*)$/);
    expect(page.url()).toBe(desk.baseUrl + desk.toPage('storage'));
  });

  it('shows that it failed, and tries again', async () => {
    const stop = await intercept('Search', (route) => route.abort());
    await search().fill('web-');
    const again = found().getByRole('option', { name: 'Try again' });
    await again.waitFor();
    expect(await found().getByText('Nothing begins so.').count()).toBe(0);
    await stop();
    await again.click();
    await found().getByRole('option', { name: /^web-/ }).first().waitFor();
    await search().fill('no instance is called so');
    await found().getByText('Nothing begins so.').waitFor();
    await search().fill('');
  });
});

describe('the Enter that confirms the composition of an input method', () => {
  // Safari sends it after the composition has ended.
  const confirm = (field: Locator, isComposing: boolean) =>
    field.evaluate((node, isComposing) => {
      const details = { key: 'Enter', keyCode: 229, isComposing, bubbles: true, cancelable: true };
      node.dispatchEvent(new KeyboardEvent('keydown', details));
    }, isComposing);
  const expectNothing = async (field: Locator, text: string) => {
    const address = page.url();
    await expect.poll(() => field.getAttribute('aria-activedescendant')).toBeTruthy();
    for (const isComposing of [true, false]) await confirm(field, isComposing);
    await page.waitForTimeout(200);
    expect([page.url(), await field.inputValue()]).toEqual([address, text]);
  };

  it('opens nothing that the search has found, nor what it finds later', async () => {
    await open('tasks');
    const field = page.getByRole('combobox', { name: 'Search instances and pages' });
    await field.fill('web');
    await expectNothing(field, 'web');
    const [held, release] = hold();
    const stop = await intercept('Search', async (route) => {
      await held;
      await route.continue();
    });
    await field.fill('web-0');
    for (const isComposing of [true, false]) await confirm(field, isComposing);
    release();
    await page
      .getByRole('option', { name: /^web-0/ })
      .first()
      .waitFor();
    await expectNothing(field, 'web-0');
    await stop();
    await field.fill('');
  });

  it('opens no project', async () => {
    await page.getByRole('button', { name: /Production/ }).click();
    const field = page.getByRole('combobox', { name: 'Find a project' });
    await field.fill('sand');
    await page.getByRole('option', { name: /Sandbox/ }).waitFor();
    await expectNothing(field, 'sand');
    await page.keyboard.press('Escape');
  });

  it('chooses no instance to filter by', async () => {
    await open('people/sessions');
    const field = page.getByRole('combobox', { name: 'Instance', exact: true });
    await field.fill('web-02');
    await page.getByRole('option', { name: 'web-02' }).waitFor();
    await expectNothing(field, 'web-02');
    await field.press('Enter');
    await page.waitForURL(/instance=/);
  });
});

describe('an id', () => {
  const search = () => page.getByRole('combobox', { name: 'Search instances and pages' });
  const found = () => page.getByRole('listbox', { name: 'Found' });

  it('of an instance is found by pasting it', async () => {
    await open('tasks');
    const { console: id } = desk.demo.instances;
    await search().fill(` ${id.toUpperCase()} `);
    await found().getByRole('option', { name: 'Instance: web-02' }).click();
    await page.waitForURL(desk.baseUrl + desk.toPage(`instances/${id}`));
  });

  it('of a project is opened by Enter', async () => {
    await search().fill(desk.demo.empty_project_id);
    await search().press('Enter');
    await page.waitForURL(`${desk.baseUrl}/projects/${desk.demo.empty_project_id}`);
    await open('tasks');
  });

  it('that is not visible is not found, and one that cannot be looked up is tried again', async () => {
    await search().fill(desk.demo.foreign.instance_id);
    await found().getByText('Nothing begins so.').waitFor();
    const stop = await intercept('Lookup', (route) => route.abort());
    await search().fill(desk.demo.instances.eligible);
    const again = found().getByRole('option', { name: 'Try again' });
    await again.waitFor();
    await stop();
    await again.click();
    await found().getByRole('option', { name: 'Instance: web-01' }).waitFor();
    await search().fill('');
  });
});

it('an invisible project still shows the signed-in user', async () => {
  const { project_id: foreign } = desk.demo.foreign;
  await page.goto(`${desk.baseUrl}/projects/${foreign}`);
  await page.locator('[data-code="not_found"]').waitFor();
  await page.getByRole('banner').getByRole('button', { name: 'Olivia Okafor' }).waitFor();
});

it('the list of projects shows that it could not be read, and tries again', async () => {
  await open('tasks');
  const onRoute = (route: Route) => (route.request().postData()?.includes('query Switcher') ? route.abort() : route.fallback());
  await page.route('**/graphql', onRoute);
  await page.getByRole('button', { name: /Production/ }).click();
  const again = page.getByRole('button', { name: 'Try again' });
  await again.waitFor();
  await page.unroute('**/graphql', onRoute);
  await again.click();
  await page.getByRole('option', { name: /Sandbox/ }).waitFor();
  await page.keyboard.press('Escape');
});

it('a cleared filter stays clear after input just before', async () => {
  await open('instances?status=active');
  const name = page.getByPlaceholder('Name begins with');
  await page.getByRole('button', { name: 'Clear filters' }).waitFor();
  await name.evaluate((field: HTMLInputElement) => {
    Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value')?.set?.call(field, 'web');
    field.dispatchEvent(new Event('input', { bubbles: true }));
    const clear = [...document.querySelectorAll('button')].find(({ textContent }) => textContent === 'Clear filters');
    setTimeout(() => clear?.click());
  });
  await page.waitForURL(desk.baseUrl + desk.toPage('instances'));
  await expect.poll(() => name.inputValue()).toBe('');
  // Twice the time after which a text is written to the address.
  await page.waitForTimeout(500);
  expect([await name.inputValue(), new URL(page.url()).search]).toEqual(['', '']);
});

it('a new dashboard keeps its input while the user signs in again', async () => {
  await open('dashboards');
  await page.getByRole('button', { name: 'Make a dashboard' }).click();
  const dialog = page.getByRole('dialog', { name: 'Make a dashboard' });
  await dialog.getByRole('textbox', { name: 'Name' }).fill('Half written');
  await dialog.getByRole('textbox', { name: 'Description' }).fill('Before the session ended');
  const stop = await intercept('DashboardsRole', refuse);
  await intercept('Dashboards', refuse).then(async (end) => {
    await page.evaluate(() => dispatchEvent(new Event('focus')));
    await page.waitForURL(/\/signin\?to=/);
    await end();
  });
  await stop();
  await signInHere();
  await page.waitForURL(/\/dashboards$/);
  await expect.poll(() => dialog.getByRole('textbox', { name: 'Name' }).inputValue()).toBe('Half written');
  expect(await dialog.getByRole('textbox', { name: 'Description' }).inputValue()).toBe('Before the session ended');
  const stopMaking = await intercept('CreateDashboard', refuse);
  await dialog.getByRole('button', { name: 'Make it' }).click();
  await page.waitForURL(/\/signin\?to=/);
  await stopMaking();
  await signInHere();
  await expect.poll(() => dialog.getByRole('textbox', { name: 'Name' }).inputValue()).toBe('Half written');
  await dialog.getByRole('button', { name: 'Cancel' }).click();
  await page.getByRole('button', { name: 'Make a dashboard' }).click();
  expect(await dialog.getByRole('textbox', { name: 'Name' }).inputValue()).toBe('');
  await page.keyboard.press('Escape');
  await expect.poll(focused).toBe('Make a dashboard');
});

it('a dashboard is made once, also where the first response leaves it uncertain', async () => {
  await open('dashboards');
  await page.getByRole('button', { name: 'Make a dashboard' }).click();
  const dialog = page.getByRole('dialog', { name: 'Make a dashboard' });
  await dialog.getByRole('textbox', { name: 'Name' }).fill('Made once');
  const stop = await intercept('CreateDashboard', async (route) => {
    await route.fetch();
    const errors = [{ message: 'The database is away.', extensions: { code: 'service_unavailable' } }];
    await route.fulfill({ status: 503, headers: { 'retry-after': '6' }, json: { errors } });
  });
  await dialog.getByRole('button', { name: 'Make it' }).click();
  await dialog.getByRole('alert').waitFor();
  await stop();
  await dialog.getByRole('button', { name: 'Make it' }).click();
  await page.waitForURL(/\/dashboards\/[\w-]+$/);
  const { project } = await desk.graphql<{ project: { dashboards: { nodes: { id: string; name: string }[] } } }>(
    'query ($id: ID!) { project(id: $id) { dashboards(first: 100) { nodes { id name } } } }',
    { id: desk.demo.project_id },
  );
  const made = project.dashboards.nodes.filter(({ name }) => name === 'Made once');
  expect(made.map(({ id }) => id)).toEqual([page.url().split('/').at(-1)]);
});

it('a late response to making, moving or deleting a dashboard does not navigate back, and the request is sent once', async () => {
  const place = { organizationId: desk.demo.organization_id, projectId: desk.demo.project_id };
  const make = async (name: string) => {
    const { createDashboard } = await desk.graphql<{ createDashboard: { dashboard: { id: string } } }>(
      'mutation ($input: CreateDashboardInput!) { createDashboard(input: $input) { dashboard { id } } }',
      { input: { ...place, name, isPublic: true } },
    );
    return createDashboard.dashboard.id;
  };
  const hold = async (operation: string) => {
    let [sent, release] = [0, () => {}];
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    const stop = await intercept(operation, async (route) => {
      sent += 1;
      await held;
      await route.continue();
    });
    return { count: () => sent, release: () => release(), stop };
  };
  const dialog = page.getByRole('dialog');
  const staysAt = async (rest: string, toast: string) => {
    await page.getByText(toast).waitFor();
    await page.waitForTimeout(200);
    expect(page.url()).toBe(desk.baseUrl + desk.toPage(rest));
  };

  await open('dashboards');
  await page.getByRole('button', { name: 'Make a dashboard' }).click();
  await dialog.getByRole('textbox', { name: 'Name' }).fill('Made late');
  const making = await hold('CreateDashboard');
  for (let time = 0; time < 2; time += 1) await dialog.getByRole('textbox', { name: 'Name' }).press('Enter');
  await dialog.getByRole('button', { name: 'Making …' }).waitFor();
  await expect.poll(making.count).toBe(1);
  await dialog.getByRole('button', { name: 'Cancel' }).click();
  await dialog.waitFor({ state: 'detached' });
  making.release();
  await staysAt('dashboards', '“Made late” is made.');
  // Long before the list is read again by itself.
  await page.getByRole('link', { name: 'Made late' }).waitFor({ timeout: 10_000 });
  expect(making.count()).toBe(1);
  await making.stop();

  await open(`dashboards/${await make('Moved late')}`);
  await page.getByRole('combobox', { name: 'Move to' }).selectOption({ label: 'Sandbox' });
  const moving = await hold('PatchDashboard');
  for (let time = 0; time < 2; time += 1) await page.getByRole('button', { name: 'Move', exact: true }).dispatchEvent('click');
  await page.getByRole('link', { name: 'All dashboards' }).click();
  await page.getByRole('heading', { name: 'Dashboards', exact: true }).waitFor();
  moving.release();
  await staysAt('dashboards', '“Moved late” is in Sandbox now.');
  expect(moving.count()).toBe(1);
  await moving.stop();

  await open(`dashboards/${await make('Deleted late')}`);
  await page.getByRole('button', { name: 'Delete …' }).click();
  const deleting = await hold('DeleteDashboard');
  for (let time = 0; time < 2; time += 1) await dialog.getByRole('button', { name: 'Delete it' }).dispatchEvent('click');
  await dialog.getByRole('button', { name: 'Keep it' }).click();
  await page.locator('.side nav').getByRole('link', { name: 'Tasks' }).click();
  await page.getByRole('heading', { name: 'Tasks', exact: true }).waitFor();
  deleting.release();
  await staysAt('tasks', '“Deleted late” is deleted.');
  expect(deleting.count()).toBe(1);
  await deleting.stop();
});

it('a dashboard that was saved without a response is recognized as one’s own, also after more input', async () => {
  const place = { organizationId: desk.demo.organization_id, projectId: desk.demo.project_id };
  const { createDashboard } = await desk.graphql<{ createDashboard: { dashboard: { id: string } } }>(
    'mutation ($input: CreateDashboardInput!) { createDashboard(input: $input) { dashboard { id } } }',
    { input: { ...place, name: 'Saved once', isPublic: true } },
  );
  await open(`dashboards/${createDashboard.dashboard.id}`);
  const description = page.getByRole('textbox', { name: 'Description' });
  const save = page.getByRole('button', { name: 'Save', exact: true });
  const saveUnanswered = async (text: string) => {
    const stop = await intercept('PatchDashboard', async (route) => {
      await route.fetch();
      await route.abort();
    });
    await description.fill(text);
    await save.click();
    await page.getByRole('alert').getByText('The server does not answer').waitFor();
    await stop();
  };
  await saveUnanswered('First');
  await save.click();
  await page.getByText('Saved as version 2.').waitFor();
  await saveUnanswered('Second');
  await page.evaluate(() => dispatchEvent(new Event('focus')));
  await page.getByText(/^3, saved/).waitFor();
  expect(await page.getByText('has been saved elsewhere').count()).toBe(0);
  await description.fill('Third');
  await save.click();
  await page.getByText('Saved as version 4.').waitFor();
  expect(await page.getByRole('heading', { name: 'Two versions' }).count()).toBe(0);
  expect(await description.inputValue()).toBe('Third');
});

it('a dashboard that was changed meanwhile is neither moved nor deleted, with a message', async () => {
  const place = { organizationId: desk.demo.organization_id, projectId: desk.demo.project_id };
  const { createDashboard } = await desk.graphql<{ createDashboard: { dashboard: { id: string } } }>(
    'mutation ($input: CreateDashboardInput!) { createDashboard(input: $input) { dashboard { id } } }',
    { input: { ...place, name: 'Moved twice', isPublic: true } },
  );
  const { id } = createDashboard.dashboard;
  await open(`dashboards/${id}`);
  await page.getByRole('combobox', { name: 'Move to' }).selectOption({ label: 'Sandbox' });
  await desk.graphql('mutation ($input: PatchDashboardInput!) { patchDashboard(input: $input) { dashboard { id } } }', {
    input: { ...place, id, description: 'Changed by somebody else' },
  });
  await page.getByRole('button', { name: 'Move', exact: true }).click();
  await page.getByRole('alert').getByText('It has been changed meanwhile, and was not moved.').waitFor();
  await page.route('**/graphql', (route) =>
    /mutation (Patch|Delete)Dashboard/.test(route.request().postData() ?? '') ? route.abort() : route.fallback(),
  );
  await page.getByRole('button', { name: 'Move', exact: true }).click();
  await page.getByRole('alert').getByText('It is not known whether it was moved').waitFor();
  expect(await page.locator('.manage').innerText()).not.toContain('What you wrote');
  const opener = page.getByRole('button', { name: 'Delete …' });
  await opener.click();
  await page.getByRole('dialog').getByRole('button', { name: 'Delete it' }).click();
  await page.getByRole('dialog').getByRole('alert').getByText('It is not known whether it was deleted').waitFor();
  await page.unroute('**/graphql');
  await page.getByRole('dialog').getByRole('button', { name: 'Keep it' }).click();
  await expect.poll(focused).toBe('Delete …');
  await opener.click();
  await page.getByRole('dialog').getByRole('button', { name: 'Keep it' }).waitFor();
  expect(await page.getByRole('dialog').getByRole('alert').count()).toBe(0);
  await page.keyboard.press('Escape');
});

it('a dashboard that cannot be sent, as the identity provider does not answer, is said to be neither made nor deleted', async () => {
  const errors = [{ message: 'There is no credential now.', extensions: { code: 'credential_unavailable' } }];
  await page.route('**/graphql', (route) =>
    /mutation (Create|Delete)Dashboard/.test(route.request().postData() ?? '') ? route.fulfill({ json: { errors } }) : route.fallback(),
  );
  await page.getByRole('button', { name: 'Delete …' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Delete it' }).click();
  await page.getByRole('alert').getByText('The identity provider does not answer, and it was not deleted.').waitFor();
  await open('dashboards');
  await page.getByRole('button', { name: 'Make a dashboard' }).click();
  await page.getByRole('dialog').getByRole('textbox', { name: 'Name' }).fill('Not sent');
  await page.getByRole('dialog').getByRole('button', { name: 'Make it' }).click();
  await page.getByRole('alert').getByText('The identity provider does not answer, and nothing was saved.').waitFor();
  await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click();
  await page.unroute('**/graphql');
});

it('a notification shows its data to the digit', async () => {
  const data = '{"large": 9007199254740993, "exact": 1.0, "small": 1e-400, "2": 0, "1": 0, "dataText": 9007199254740995}';
  const input = {
    organizationId: desk.demo.organization_id,
    projectId: desk.demo.project_id,
    kind: 'test.digits',
    severity: 'info',
    title: 'Numbers that a double cannot hold',
    data: 'DATA',
  };
  const query = 'mutation ($input: PublishNotificationInput!) { publishNotification(input: $input) { notification { id } } }';
  const response = await fetch(`${desk.baseUrl}/graphql`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${desk.demo.users.owner.api_key}` },
    body: JSON.stringify({ query, variables: { input } }).replace('"DATA"', data),
  });
  const { publishNotification } = (await response.json()).data;
  await open(`notifications?open=${publishNotification.notification.id}`);
  const shown = page.locator('.notification-data');
  await shown.waitFor();
  for (const part of data.slice(1, -1).split(', ')) expect(await shown.innerText()).toContain(part);
  await page.keyboard.press('Escape');
});

it('the session of a tab that the desk has opened ends with the desk’s, at once', async () => {
  await open('developers');
  const opening = page.context().waitForEvent('page');
  await page.getByRole('link', { name: 'the reference of v1' }).first().click();
  const tab = await opening;
  await tab.getByText('Signed in by the desk as').waitFor();
  const stored = () => tab.evaluate(() => sessionStorage.getItem('portico:session'));
  expect(await stored()).not.toBeNull();
  await signOut();
  await expect.poll(stored).toBeNull();
  await tab.getByText('The session of the desk has ended').waitFor();
  await tab.close();
  await desk.signIn(page, 'owner');
});

describe('keys', () => {
  it('are shown, once, on a narrow screen too', async () => {
    const phone = await desk.open({ viewport: { width: 360, height: 740 } });
    await desk.signIn(phone, 'admin', '/keys');
    await phone.getByLabel('Name').fill('x'.repeat(120));
    await phone.getByRole('button', { name: 'Make the key' }).click();
    await phone.getByText('It will not be shown again').waitFor();
    const widest = () => Math.max(...[...document.querySelectorAll('main, main *')].map((node) => node.getBoundingClientRect().right));
    expect(await phone.evaluate(widest)).toBeLessThanOrEqual(360);
    expect(await findBarriers(phone)).toEqual([]);
    await phone.context().close();
  });

  it('require a new sign-in when the session has ended', async () => {
    const stop = await intercept('Keys', refuse);
    await page.goto(`${desk.baseUrl}/keys`);
    await page.waitForURL(/\/signin\?to=/);
    await page.getByText('Your session has ended').waitFor();
    await stop();
    await signInHere();
    await page.waitForURL(`${desk.baseUrl}/keys`);
  });

  it('keep their input while its author signs in again, and show it to no other user', async () => {
    const typed = () => Promise.all([page.getByLabel('Name').inputValue(), page.getByLabel('Last day').inputValue()]);
    const end = async () => {
      const stop = await intercept('CreateApiKey', refuse);
      await page.getByRole('button', { name: 'Make the key' }).click();
      await page.waitForURL(/\/signin\?to=/);
      await stop();
    };
    await page.getByLabel('Name').fill('half typed');
    await page.getByLabel('Last day').fill('2999-01-31');
    await end();
    await signInHere('member');
    await page.waitForURL(`${desk.baseUrl}/keys`);
    await expect.poll(typed).toEqual(['', '']);
    await end();
    await signInHere();
    await page.waitForURL(`${desk.baseUrl}/keys`);
    await expect.poll(typed).toEqual(['half typed', '2999-01-31']);
    await page.getByRole('button', { name: 'Make the key' }).click();
    await page.getByRole('button', { name: 'I have it' }).click();
    await expect.poll(typed).toEqual(['', '']);
    const revoke = async () => {
      await page.getByRole('button', { name: 'Revoke half typed' }).click();
      await page.getByRole('dialog').getByRole('button', { name: 'Revoke it' }).click();
    };
    const stop = await intercept('RevokeApiKey', refuse);
    await revoke();
    await page.waitForURL(/\/signin\?to=/);
    await stop();
    await signInHere();
    await revoke();
    await page.getByRole('dialog').waitFor({ state: 'detached' });
  });

  it('wait to be seen where their page was left before they were made', async () => {
    const [held, release] = hold();
    const stop = await intercept('CreateApiKey', async (route) => {
      await held;
      await route.continue();
    });
    await page.goto(`${desk.baseUrl}/keys`);
    await page.getByLabel('Name').fill('left alone');
    await page.getByRole('button', { name: 'Make the key' }).click();
    // The button keeps the focus while the key is being made.
    expect(await focused()).toBe('Make the key');
    await page.getByRole('link', { name: 'Developers' }).click();
    await page.waitForURL(/developers/);
    release();
    await page.getByText('The key left alone is made, and waits').waitFor();
    await page.goBack();
    await page.locator('.shown-key code').getByText(/^sk-/).waitFor();
    await page.getByRole('button', { name: 'I have it' }).click();
    expect(await page.getByLabel('Name').inputValue()).toBe('');
    await stop();
  });

  it('return the focus from the question about a revocation to its button, or to the page without it', async () => {
    await page.getByLabel('Name').fill('to be kept');
    await page.getByRole('button', { name: 'Make the key' }).click();
    await page.getByRole('button', { name: 'I have it' }).click();
    const revoke = page.getByRole('button', { name: 'Revoke to be kept' });
    await revoke.click();
    await page.getByRole('dialog').getByRole('button', { name: 'Keep it' }).click();
    await expect.poll(() => page.evaluate(() => document.activeElement?.getAttribute('aria-label'))).toBe('Revoke to be kept');
    await revoke.click();
    await page.getByRole('dialog').getByRole('button', { name: 'Revoke it' }).click();
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await expect.poll(() => page.evaluate(() => document.activeElement?.id)).toBe('main');
  });

  it('keep the question about another key when a late response arrives, and a late refusal is shown', async () => {
    await page.goto(`${desk.baseUrl}/keys`);
    for (const name of ['first', 'second']) {
      await page.getByLabel('Name').fill(name);
      await page.getByRole('button', { name: 'Make the key' }).click();
      await page.getByRole('button', { name: 'I have it' }).click();
    }
    const dialog = page.getByRole('dialog');
    const ask = (name: string) => page.getByRole('button', { name: `Revoke ${name}` }).click();
    const errors = [{ message: 'Not on a Sunday.', path: ['revokeApiKey'], extensions: { code: 'permission_denied' } }];
    for (const [isRefused, toast] of [
      [true, 'The key first: Not on a Sunday.'],
      [false, 'The key first is revoked.'],
    ] as const) {
      const [held, release] = hold();
      const stop = await intercept('RevokeApiKey', async (route) => {
        await held;
        await (isRefused ? route.fulfill({ json: { errors, data: { revokeApiKey: null } } }) : route.continue());
      });
      await ask('first');
      await dialog.getByRole('button', { name: 'Revoke it' }).click();
      await dialog.getByRole('button', { name: 'Keep it' }).click();
      await ask('second');
      release();
      await page.getByText(toast).waitFor();
      await page.waitForTimeout(200);
      expect(await dialog.getByRole('heading').textContent()).toBe('Revoke second?');
      await dialog.getByRole('button', { name: 'Keep it' }).click();
      await stop();
    }
  });
});

describe('a screen reader', () => {
  /** Collects what is read out from now on: changes of the parts of the page that are, and new parts. */
  const listen = () =>
    page.evaluate(() => {
      const live = '[role="alert"], [role="status"], [aria-live="polite"]';
      const heard: string[] = [];
      Object.assign(window, { heard });
      new MutationObserver((changes) => {
        for (const { target, addedNodes } of changes) {
          const parent = target instanceof Element ? target : target.parentElement;
          const added = [...addedNodes].filter((node) => node instanceof Element);
          const region = parent?.closest(live) ?? added.find((node) => node.matches(live) || node.querySelector(live));
          if (region) heard.push(region.textContent ?? '');
        }
      }).observe(document.body, { subtree: true, childList: true, characterData: true });
    });
  const readHeard = () => page.evaluate(() => (window as unknown as { heard: string[] }).heard);

  it('announces once that a page could not be read, and neither the countdown nor the attempts', async () => {
    await open('tasks');
    let attempts = 0;
    const errors = [{ message: 'The database is out of reach.', extensions: { code: 'service_unavailable' } }];
    const stop = await intercept('Overview', async (route) => {
      attempts += 1;
      await route.fulfill({ status: 503, headers: { 'retry-after': '6' }, json: { errors } });
    });
    await page.getByRole('link', { name: 'Overview' }).click();
    await page.getByRole('alert').getByText('The database is out of reach.').waitFor();
    await page.getByText('Trying again in 5 s').waitFor();
    await listen();
    const before = attempts;
    await expect.poll(() => attempts, { timeout: 20_000 }).toBeGreaterThan(before);
    await page.getByText('Trying again in 4 s').waitFor();
    expect(await readHeard()).toEqual([]);
    await stop();
    await page.getByRole('button', { name: 'Try now' }).click();
    await page.getByRole('alert').waitFor({ state: 'detached' });
  });

  it('announces once that the page is not live, and not each attempt', async () => {
    await open('notifications');
    await page.locator('.connection[data-state="live"]').waitFor();
    await page.context().setOffline(true);
    await page.getByText('Not live.').waitFor();
    await page.locator('.connection[data-state="waiting"]').waitFor();
    await listen();
    const attempted = page.waitForEvent('requestfailed', (request) => request.url().endsWith('/graphql'));
    await page.getByText(/Trying again within [2-9] s/).waitFor();
    await attempted;
    expect(await readHeard()).toEqual([]);
    await page.context().setOffline(false);
    await page.locator('.connection[data-state="live"]').waitFor();
    await page.getByText('Not live.').waitFor({ state: 'detached' });
  });
});

it('an unreachable server is not reported as a matter of allowed origins', async () => {
  await open('');
  await page.route('**/graphql', (route) => route.abort());
  await page.getByRole('link', { name: 'Storage' }).click();
  const problem = page.locator('[data-code="unreachable"]').first();
  await problem.waitFor();
  expect(await problem.innerText()).not.toContain('ALLOWED_ORIGINS');
  await page.unroute('**/graphql');
  await problem.getByRole('button', { name: 'Try now' }).click();
  await problem.waitFor({ state: 'detached' });
});

it('makes no requests to other hosts, and logs no errors', () => {
  expect([desk.elsewhere, desk.complaints]).toEqual([[], []]);
});

it('a broken page shows an error within the frame, and is loaded again', async () => {
  const stop = await intercept('Tasks', async (route) => {
    const response = await route.fetch();
    const body = (await response.text()).replace(/"created":"[^"]*"/g, '"created":"no time"');
    await route.fulfill({ response, body });
  });
  await page.goto(desk.baseUrl + desk.toPage('tasks'));
  await page.getByRole('alert').getByText('This page has failed').waitFor();
  expect(await findBarriers(page)).toEqual([]);
  // The way to all other pages stays.
  await page.getByRole('link', { name: 'Storage' }).click();
  await page.getByRole('grid').waitFor();
  expect(await page.getByText('This page has failed').count()).toBe(0);
  await page.goBack();
  await page.getByRole('alert').getByText('This page has failed').waitFor();
  await stop();
  await page.getByRole('button', { name: 'Load the page again' }).click();
  await page.getByRole('grid').waitFor();
});

it('a page whose code cannot be loaded shows an error after one reload, and opens once it can be', async () => {
  const code = '**/assets/storage-*.js';
  await open('tasks');
  await page.route(code, (route) => route.fulfill({ status: 404 }));
  let reloads = 0;
  const count = (request: { isNavigationRequest(): boolean }) => {
    if (request.isNavigationRequest()) reloads += 1;
  };
  page.on('request', count);
  await page.getByRole('link', { name: 'Storage' }).click();
  await page.getByRole('alert').getByText('This page has failed').waitFor();
  page.off('request', count);
  expect(reloads).toBe(1);
  await page.unroute(code);
  await page.getByRole('button', { name: 'Load the page again' }).click();
  await page.getByRole('grid').waitFor();
});

it('a page of an old build reloads the document when somebody waits for it, and not under another page', async () => {
  const other = await desk.open();
  await desk.signIn(other, 'owner', desk.toPage('instances'));
  await other.getByRole('grid').waitFor();
  let isAway = true;
  let missing = 0;
  let reloads = 0;
  other.on('request', (request) => {
    if (request.isNavigationRequest()) reloads += 1;
  });
  await other.route('**/icon.svg', (route) => (isAway ? route.abort() : route.fallback()));
  await other.route('**/assets/storage-*.js', (route) => {
    if (isAway) return route.abort();
    if (reloads > 0) return route.fallback();
    missing += 1;
    return route.fulfill({ status: 404 });
  });
  await other.getByRole('link', { name: 'Storage' }).click();
  await other.getByText('This page could not be loaded.').waitFor();
  await other.goBack();
  await other.getByRole('grid').waitFor();
  isAway = false;
  // Both attempts fail, and the document stays.
  await expect.poll(() => missing).toBe(2);
  await other.waitForTimeout(500);
  expect(reloads).toBe(0);
  await other.getByRole('link', { name: 'Storage' }).click();
  await expect.poll(() => reloads).toBe(1);
  await other.getByRole('grid').waitFor();
  await other.context().close();
});

it('a browser without storage for the site gets a message', async () => {
  const other = await desk.open();
  await other.addInitScript(() => {
    Object.defineProperty(window, 'sessionStorage', {
      get() {
        throw new DOMException('Access is denied for this document.', 'SecurityError');
      },
    });
  });
  await other.goto(desk.baseUrl);
  await other.getByRole('heading', { name: 'This browser lets the desk store nothing' }).waitFor();
  expect(await findBarriers(other)).toEqual([]);
  await other.close();
});
