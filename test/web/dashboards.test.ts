import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Saved } from '../../web/src/pages/dashboard/content.ts';
import { assemble, type Choices, partsOf, propose } from '../../web/src/pages/dashboard/merge.ts';
import { type DeskTest, findBarriers, type Page, startDesk } from './support.ts';

let desk: DeskTest;
let page: Page;
beforeAll(async () => {
  desk = await startDesk({ DASHBOARDS_PER_PROJECT: '12' });
  page = await desk.open();
  await desk.signIn(page, 'owner', desk.toPage('dashboards'));
});
afterAll(() => desk?.close());

interface Board {
  readonly id: string;
  readonly name: string;
  readonly description: string;
  readonly isDefault: boolean;
  readonly isPublic: boolean;
  readonly version: number;
  readonly widgets: unknown;
}

const read = async (id: string, projectId = desk.demo.project_id) => {
  const { project } = await desk.graphql<{ project: { dashboard: Board } }>(
    `query ($projectId: ID!, $id: ID!) {
      project(id: $projectId) { dashboard(id: $id) { id name description isDefault isPublic version widgets } }
    }`,
    { projectId, id },
  );
  return project.dashboard;
};

const place = () => ({ organizationId: desk.demo.organization_id, projectId: desk.demo.project_id });

const make = async (content: object) => {
  const { createDashboard } = await desk.graphql<{ createDashboard: { dashboard: Board } }>(
    `mutation ($input: CreateDashboardInput!) { createDashboard(input: $input) { dashboard { id } } }`,
    { input: { ...place(), isPublic: true, ...content } },
  );
  return createDashboard.dashboard.id;
};

const patch = (id: string, changes: object) =>
  desk.graphql(`mutation ($input: PatchDashboardInput!) { patchDashboard(input: $input) { dashboard { id } } }`, {
    input: { ...place(), id, ...changes },
  });

/** The response of v1 to the digit: `ask` would read it as JavaScript does. */
const readText = async (id: string) => {
  const { organizationId, projectId } = place();
  const address = `${desk.baseUrl}/v1/organizations/${organizationId}/projects/${projectId}/monitoring/dashboards/${id}`;
  const response = await fetch(address, { headers: { authorization: `Bearer ${desk.demo.users.owner.api_key}` } });
  return response.text();
};

const editor = (on: Page) => on.getByRole('textbox', { name: 'Widgets' });
const save = (on: Page) => on.getByRole('button', { name: 'Save', exact: true });
const openBoard = async (on: Page, id: string) => {
  await on.goto(desk.baseUrl + desk.toPage(`dashboards/${id}`));
  await editor(on).waitFor();
};

/** Takes the place of all that is in the editor, as somebody does who pastes. */
const rewrite = async (on: Page, text: string) => {
  await editor(on).focus();
  await on.keyboard.press('ControlOrMeta+a');
  await on.keyboard.insertText(text);
};

/** Signs in on the page as it is: going to an address would forget what the tab holds in memory. */
const signInHere = async (on: Page) => {
  await on.getByLabel('API key or session token').fill(desk.demo.users.owner.token ?? '');
  await on.getByRole('button', { name: 'Sign in', exact: true }).click();
};

it('lists the dashboards in the chosen order, and opens one', async () => {
  await page.getByRole('gridcell', { name: 'Operations default' }).waitFor();
  await page.getByRole('gridcell', { name: 'Anton Adler' }).first().waitFor();
  await desk.look(page, 'dashboards');
  expect(await findBarriers(page)).toEqual([]);
  await page.getByRole('button', { name: 'Name' }).click();
  await page.waitForURL(/sort=name/);
  const first = page.getByRole('grid').getByRole('link').first();
  await expect.poll(() => first.textContent()).toBe('Night shift');
  await page.getByRole('button', { name: 'Name' }).click();
  await expect.poll(() => first.textContent()).toBe('Traffic');
  await first.click();
  await page.getByRole('heading', { name: 'Traffic' }).waitFor();
});

let made: string;

it('makes one, with the server’s message next to a refused field', async () => {
  await page.goto(desk.baseUrl + desk.toPage('dashboards'));
  await page.getByRole('button', { name: 'Make a dashboard' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByRole('button', { name: 'Make it' }).click();
  const name = dialog.getByRole('textbox', { name: 'Name' });
  await expect.poll(() => name.getAttribute('aria-invalid')).toBe('true');
  const words = await dialog.locator(`#${await name.getAttribute('aria-describedby')}`).textContent();
  expect(words).toMatch(/blank/);
  expect(await findBarriers(page)).toEqual([]);
  await name.fill('Databases');
  await dialog.getByRole('textbox', { name: 'Description' }).fill('Of all of us');
  await dialog.getByRole('checkbox', { name: /Public/ }).check();
  await dialog.getByRole('button', { name: 'Make it' }).click();
  await page.waitForURL(/dashboards\/[\da-f-]{36}$/);
  made = page.url().slice(-36);
  await page.getByRole('heading', { name: 'Databases' }).waitFor();
  expect(await read(made)).toMatchObject({ name: 'Databases', description: 'Of all of us', isPublic: true, isDefault: false, widgets: [] });
});

it('edits the widgets, and sends the changed fields alone', async () => {
  await openBoard(page, made);
  expect(await save(page).getAttribute('aria-disabled')).toBe('true');
  await rewrite(page, '[\n{"id": 1,\n"title": Rows}\n]');
  await page.getByText(/This is not JSON yet. Line 3:/).waitFor();
  await expect.poll(() => save(page).getAttribute('aria-disabled')).toBe('true');
  expect(await findBarriers(page)).toEqual([]);
  await page.keyboard.press('ControlOrMeta+z');
  await expect.poll(() => editor(page).textContent()).toBe('[]');
  await rewrite(page, '[{"id": 1, "title": "Rows"}]');
  // Somebody else changes nothing of it: the patch names the widgets alone.
  const sent = page.waitForRequest((request) => Boolean(request.postData()?.includes('patchDashboard(')));
  await page.keyboard.press('ControlOrMeta+s');
  const { variables } = JSON.parse((await sent).postData() ?? '{}');
  expect(Object.keys(variables.input).sort()).toEqual(
    ['expectedVersion', 'id', 'idempotencyKey', 'organizationId', 'projectId', 'widgets'].sort(),
  );
  await page.getByText('Saved as version 2').waitFor();
  expect(await read(made)).toMatchObject({ version: 2, widgets: [{ id: 1, title: 'Rows' }] });
});

it('keeps every digit of the unchanged widgets', async () => {
  const widgets = '[{"id":"a","at":9007199254740993,"step":1.0,"10":1,"2":1e-400},{"id":"b","title":"Old"}]';
  const { organizationId, projectId } = place();
  const address = `${desk.baseUrl}/v1/organizations/${organizationId}/projects/${projectId}/monitoring/dashboards`;
  const response = await fetch(address, {
    method: 'POST',
    headers: { authorization: `Bearer ${desk.demo.users.owner.api_key}`, 'content-type': 'application/json' },
    body: `{"name":"Exact","is_public":true,"widgets":${widgets}}`,
  });
  const { id } = (await response.json()) as { id: string };
  await openBoard(page, id);
  const lines = await editor(page).locator('.cm-line').allTextContents();
  await rewrite(page, lines.join('\n').replace('"Old"', '"New"'));
  await save(page).click();
  await page.getByText('Saved as version 2').waitFor();
  expect(await readText(id)).toContain(widgets.replace('Old', 'New'));
});

it('the editor is left by the keyboard: Tab indents, Escape and then Tab leaves', async () => {
  await openBoard(page, made);
  await rewrite(page, '[]');
  await page.keyboard.press('Tab');
  await expect.poll(() => editor(page).textContent()).toBe('  []');
  await page.keyboard.press('Escape');
  await page.keyboard.press('Tab');
  await expect.poll(() => page.evaluate(() => document.activeElement?.textContent)).toBe('Save');
  // White space is not a change.
  await page.getByText('Not saved: widgets.').waitFor();
  await rewrite(page, '[ { "id": 1, "title": "Rows" } ]');
  await page.getByText('Nothing has been changed.').waitFor();
});

it('makes it the default, and public or not', async () => {
  await openBoard(page, made);
  await page.getByRole('checkbox', { name: /Default of the project/ }).check();
  await page.getByRole('checkbox', { name: /Public/ }).uncheck();
  await page.getByText('Not saved: default of the project, public.').waitFor();
  await save(page).click();
  await page.getByText('Saved as version 3').waitFor();
  expect(await read(made)).toMatchObject({ isDefault: true, isPublic: false, version: 3 });
  await page.getByRole('link', { name: 'All dashboards' }).click();
  await page.getByRole('gridcell', { name: 'Databases default' }).waitFor();
  await page.getByRole('gridcell', { name: 'Operations', exact: true }).waitFor();
});

it('asks before unsaved changes are left, by a link and by the back button', async () => {
  await page.getByRole('link', { name: 'Databases' }).click();
  await page.getByRole('textbox', { name: 'Description' }).fill('Unsaved');
  await page.getByRole('link', { name: 'Tasks' }).click();
  const dialog = page.getByRole('dialog', { name: 'Leave without saving?' });
  await dialog.getByRole('button', { name: 'Stay here' }).click();
  await expect.poll(() => page.getByRole('textbox', { name: 'Description' }).inputValue()).toBe('Unsaved');
  await page.evaluate(() => history.back());
  await dialog.getByRole('button', { name: 'Leave, and lose the changes' }).click();
  await page.waitForURL(/\/dashboards$/);
  await page.getByRole('link', { name: 'Databases' }).click();
  await expect.poll(() => page.getByRole('textbox', { name: 'Description' }).inputValue()).toBe('Of all of us');
  expect(await read(made)).toMatchObject({ description: 'Of all of us' });
});

it('keeps unsaved changes while the user signs in again', async () => {
  await page.getByRole('textbox', { name: 'Description' }).fill('Kept');
  await page.getByText('Not saved: description.').waitFor();
  await page.getByRole('button', { name: /Olivia/ }).click();
  await page.getByRole('menuitem', { name: 'Sign out' }).click();
  await page.waitForURL(/\/signin/);
  await signInHere(page);
  await page.waitForURL(new RegExp(`dashboards/${made}`));
  await expect.poll(() => page.getByRole('textbox', { name: 'Description' }).inputValue()).toBe('Kept');
  await page.getByRole('button', { name: 'Discard changes' }).click();
  await expect.poll(() => page.getByRole('textbox', { name: 'Description' }).inputValue()).toBe('Of all of us');
});

it('moves to another project of the organization', async () => {
  await openBoard(page, made);
  await page.getByRole('combobox', { name: 'Move to' }).selectOption({ label: 'Sandbox' });
  await page.getByRole('button', { name: 'Move', exact: true }).click();
  await page.waitForURL(new RegExp(`${desk.demo.empty_project_id}/dashboards/${made}`));
  await page.getByRole('heading', { name: 'Databases' }).waitFor();
  expect(await read(made, desk.demo.empty_project_id)).toMatchObject({ isDefault: false, widgets: [{ id: 1, title: 'Rows' }] });
});

it('deletes after one question with the name, and then shows an empty list', async () => {
  await page.getByRole('button', { name: 'Delete …' }).click();
  const dialog = page.getByRole('dialog', { name: 'Delete “Databases”?' });
  await dialog.getByRole('button', { name: 'Delete it' }).click();
  await page.waitForURL(/\/dashboards$/);
  await page.getByRole('heading', { name: 'No dashboards yet' }).waitFor();
  await page.getByText(`${desk.baseUrl}/v1/organizations/`).waitFor();
  await desk.look(page, 'dashboards-empty');
  expect(await findBarriers(page)).toEqual([]);
  const { project } = await desk.graphql<{ project: { dashboards: { totalCount: number } } }>(
    'query ($id: ID!) { project(id: $id) { dashboards { totalCount } } }',
    { id: desk.demo.empty_project_id },
  );
  expect(project.dashboards.totalCount).toBe(0);
});

it('shows both versions of a conflict, and saves the choices of the second user', async () => {
  const id = await make({
    name: 'Shared',
    widgets: [
      { id: 'cpu', title: 'CPU', unit: 'percent' },
      { id: 'ram', title: 'Memory', unit: 'GB' },
      { id: 'net', title: 'Traffic', unit: 'B' },
      { id: 'old', title: 'Nobody looks at this' },
    ],
  });
  const other = await desk.open();
  await desk.signIn(other, 'admin', desk.toPage(`dashboards/${id}`));
  await openBoard(page, id);
  await editor(other).waitFor();

  const byOwner = [
    { id: 'cpu', title: 'CPU of Olivia', unit: 'percent' },
    { id: 'ram', title: 'Memory of Olivia', unit: 'GB' },
    { id: 'net', title: 'Traffic of Olivia', unit: 'B' },
  ];
  await page.getByRole('textbox', { name: 'Name' }).fill('Shared by Olivia');
  await rewrite(page, JSON.stringify(byOwner));
  await save(page).click();
  await page.getByText('Saved as version 2').waitFor();

  const byAdmin = [
    { id: 'cpu', title: 'CPU of Anton', unit: 'percent' },
    { id: 'ram', title: 'Memory of Anton', unit: 'GB' },
    { id: 'net', title: 'Traffic of Anton', unit: 'B' },
    { id: 'old', title: 'Nobody looks at this' },
    { id: 'new', title: 'Disk' },
  ];
  await other.getByRole('textbox', { name: 'Name' }).fill('Shared by Anton');
  await rewrite(other, JSON.stringify(byAdmin));
  await save(other).click();
  await other.getByRole('heading', { name: 'Two versions of Shared by Olivia' }).waitFor();
  await desk.look(other, 'dashboard-conflict');
  expect(await findBarriers(other)).toEqual([]);
  const saveChosen = other.getByRole('button', { name: 'Save what is chosen' });
  expect(await saveChosen.getAttribute('aria-disabled')).toBe('true');
  const part = (name: string | RegExp) => other.getByRole('group', { name });
  // What one side alone did is chosen: theirs removed one, mine added one.
  expect(
    await part(/Nobody looks at this/)
      .getByRole('radio', { name: 'Theirs: without it' })
      .isChecked(),
  ).toBe(true);
  expect(await part(/Disk/).getByRole('radio', { name: 'Keep mine' }).isChecked()).toBe(true);
  await part(/^Name/).getByRole('radio', { name: 'Take theirs' }).check();
  await part(/cpu/).getByRole('radio', { name: 'Keep mine' }).check();
  await part(/ram/).getByRole('radio', { name: 'Take theirs' }).check();
  await part(/net/).getByRole('radio', { name: 'Edit' }).check();
  await part(/net/).locator('.cm-content').focus();
  await other.keyboard.press('ControlOrMeta+a');
  await other.keyboard.insertText('{"id": "net", "title": "Traffic of both"}');
  await other.getByText('Everything is chosen.').waitFor();
  // What was typed is still there after another choice.
  for (const name of ['Keep mine', 'Edit']) await part(/net/).getByRole('radio', { name }).check();
  await expect.poll(() => part(/net/).locator('.cm-content').textContent()).toContain('Traffic of both');
  expect(await findBarriers(other)).toEqual([]);
  await other.emulateMedia({ colorScheme: 'dark' });
  expect(await findBarriers(other)).toEqual([]);
  // Nor are the choices lost by looking at the draft between them.
  await other.goBack();
  await other.getByRole('button', { name: 'Look at both' }).click();
  await other.getByText('Everything is chosen.').waitFor();
  expect(await part(/ram/).getByRole('radio', { name: 'Take theirs' }).isChecked()).toBe(true);
  await expect.poll(() => part(/net/).locator('.cm-content').textContent()).toContain('Traffic of both');

  // Somebody is quicker once more.
  await patch(id, { description: 'Quicker' });
  await saveChosen.click();
  await other.getByText('Meanwhile version 3 has been saved elsewhere').waitFor();
  await other.getByText('Everything is chosen.').waitFor();
  await saveChosen.click();
  await other.getByText('Saved as version 4').waitFor();
  expect(await read(id)).toMatchObject({
    name: 'Shared by Olivia',
    description: 'Quicker',
    version: 4,
    widgets: [byAdmin[0], byOwner[1], { id: 'net', title: 'Traffic of both' }, byAdmin[4]],
  });
  await other.context().close();
});

it('merges widgets by their ids, by position, or as a whole', () => {
  const content = (widgets: string, version = 1): Saved => ({
    name: 'N',
    description: '',
    isDefault: false,
    isPublic: false,
    widgets,
    version,
  });
  const merge = (base: string, mine: string, theirs: string, choices: Choices = {}) => {
    const parts = partsOf(content(base), content(mine), content(theirs, 2));
    const proposed = Object.fromEntries(parts.map((part) => [part.key, choices[part.key] ?? propose(part)]));
    const open = parts.filter(({ key }) => !proposed[key]).map(({ key }) => key);
    return open.length > 0 ? open : JSON.parse(assemble(parts, proposed).widgets);
  };
  const [a, b, c] = ['{"id":"a"}', '{"id":"b"}', '{"id":"c"}'];
  // An order that one side alone has changed stays; what is new stands behind what it stood behind.
  expect(merge(`[${a},${b}]`, `[${b},${a}]`, `[${a},${c},${b}]`)).toEqual([{ id: 'b' }, { id: 'a' }, { id: 'c' }]);
  expect(merge(`[${a},${b}]`, `[${b}]`, `[${a},${b},${c}]`)).toEqual([{ id: 'b' }, { id: 'c' }]);
  // Of an id that is there twice, and of a widget without one, the position counts.
  expect(merge(`[${a},${a}]`, `[${a},${b}]`, `[${c},${a}]`)).toEqual([{ id: 'c' }, { id: 'b' }]);
  expect(merge('[1,2]', '[1,3]', '[1,4]')).toEqual(['at:1']);
  expect(merge('[1,2]', '[1,3]', '[1,4]', { 'at:1': { of: 'edit', text: '5' } })).toEqual([1, 5]);
  // Positions of lists with different lengths do not correspond.
  expect(merge('[1,2,3]', '[2,3]', '[1,2]')).toEqual(['widgets']);
  expect(merge('[1,2]', '[1,2]', '[0,1,2]')).toEqual([0, 1, 2]);
  expect(merge('{"x":1}', '{"x":2}', '[1]')).toEqual(['widgets']);
  expect(merge('{"x":1}', '{"x":2}', '[1]', { widgets: { of: 'mine' } })).toEqual({ x: 2 });
  expect(merge('null', 'null', '"text"')).toBe('text');
});

it('follows saves of others, and keeps unsaved changes', async () => {
  const id = await make({ name: 'Followed' });
  await openBoard(page, id);
  const focus = () => page.evaluate(() => dispatchEvent(new Event('focus')));
  await patch(id, { name: 'Followed anew' });
  await focus();
  await page.getByRole('heading', { name: 'Followed anew' }).waitFor();
  await page.getByRole('textbox', { name: 'Description' }).fill('Mine');
  await patch(id, { isDefault: true });
  await focus();
  await page.getByText('Version 3 has been saved elsewhere while you were writing').waitFor();
  await expect.poll(() => page.getByRole('textbox', { name: 'Description' }).inputValue()).toBe('Mine');
  await page.getByRole('button', { name: 'Look at both' }).click();
  await page.getByRole('heading', { name: 'Two versions' }).waitFor();
  await page.getByText('Everything is chosen.').waitFor();
  await page.getByRole('button', { name: 'Save what is chosen' }).click();
  await page.getByText('Saved as version 4').waitFor();
  expect(await read(id)).toMatchObject({ description: 'Mine', isDefault: true, name: 'Followed anew' });
});

it('shows a refusal next to its field, and keeps the input', async () => {
  const id = await make({ name: 'Refused' });
  await openBoard(page, id);
  await page.getByRole('textbox', { name: 'Description' }).fill('d'.repeat(10_001));
  await page.getByRole('textbox', { name: 'Name' }).fill(' ');
  await save(page).click();
  await page.getByText('Nothing was saved: see beside the fields.').waitFor();
  const errorOf = async (name: string) => {
    const field = page.getByRole('textbox', { name });
    expect(await field.getAttribute('aria-invalid')).toBe('true');
    return page.locator(`#${await field.getAttribute('aria-describedby')}`).textContent();
  };
  expect(await errorOf('Name')).toMatch(/blank/);
  expect(await errorOf('Description')).toMatch(/10000/);
  expect(await read(id)).toMatchObject({ name: 'Refused', description: '', version: 1 });
  await page.getByRole('button', { name: 'Discard changes' }).click();
  await expect.poll(() => page.getByRole('textbox', { name: 'Name' }).inputValue()).toBe('Refused');
});

it('explains that the project has reached its quota', async () => {
  const { project } = await desk.graphql<{ project: { dashboards: { totalCount: number } } }>(
    'query ($id: ID!) { project(id: $id) { dashboards { totalCount } } }',
    { id: desk.demo.project_id },
  );
  for (let count = project.dashboards.totalCount; count < 12; count += 1) await make({ name: `Filler ${count}` });
  await page.goto(desk.baseUrl + desk.toPage('dashboards'));
  await page.getByRole('button', { name: 'Make a dashboard' }).click();
  await page.getByRole('dialog').getByRole('textbox', { name: 'Name' }).fill('One too many');
  await page.getByRole('button', { name: 'Make it' }).click();
  await page.getByText('The project has as many dashboards as it may have: 12.').waitFor();
  await page.getByRole('button', { name: 'Cancel' }).click();
});

it('offers a viewer no changes, and a member those of their own dashboards', async () => {
  const viewer = await desk.open({ colorScheme: 'dark', viewport: { width: 390, height: 800 } });
  await desk.signIn(viewer, 'viewer', desk.toPage(`dashboards/${desk.demo.dashboards.public}`));
  await viewer.getByText('Your role “viewer” reads dashboards.').waitFor();
  await editor(viewer).waitFor();
  await desk.look(viewer, 'dashboard-390');
  expect(await findBarriers(viewer)).toEqual([]);
  expect(await save(viewer).count()).toBe(0);
  expect(await editor(viewer).getAttribute('contenteditable')).toBe('false');
  expect(await editor(viewer).getAttribute('aria-readonly')).toBe('true');
  await viewer.getByRole('link', { name: 'All dashboards' }).click();
  await viewer.getByText('Members make them.').waitFor();
  expect(await viewer.getByRole('button', { name: 'Make a dashboard' }).count()).toBe(0);
  await viewer.context().close();

  const member = await desk.open();
  await desk.signIn(member, 'member', desk.toPage(`dashboards/${desk.demo.dashboards.default}`));
  await member.getByText('Somebody else made this dashboard.').waitFor();
  expect(await save(member).count()).toBe(0);
  await openBoard(member, desk.demo.dashboards.public);
  await save(member).waitFor();
  await member.context().close();
});

it('makes no requests to other hosts, and logs no errors', () => {
  expect(desk.elsewhere).toEqual([]);
  expect(desk.complaints).toEqual([]);
});
