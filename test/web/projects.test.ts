import { afterAll, beforeAll, expect, it } from 'vitest';
import { type DeskTest, type Page, startDesk } from './support.ts';

/** More than a page has: of organizations without a project, which come first, and of projects and admins of another one. */
const EMPTY = 101;
const ADMINS = 101;
const PROJECTS = 120;
const names = Array.from({ length: PROJECTS }, (_, index) => `p-${String(index).padStart(3, '0')}`);

let desk: DeskTest;
let page: Page;
let token: string;
beforeAll(async () => {
  desk = await startDesk();
  const { database, tokens } = desk.app ?? expect.unreachable('this runs on the embedded database');
  const { id } = await database.prisma.user.create({ data: { name: 'Paula', email: 'paula@many.example' } });
  const members = { create: { userId: id, role: 'owner' } } as const;
  for (let count = 0; count < EMPTY; count += 1)
    await database.prisma.organization.create({ data: { name: `Empty ${count}`, currency: 'EUR', members } });
  const projects = { create: names.map((name) => ({ name })) };
  const many = await database.prisma.organization.create({ data: { name: 'Many', currency: 'EUR', members, projects } });
  const users = Array.from({ length: ADMINS }, (_, index) => ({ name: 'Admin', email: `admin-${index}@many.example` }));
  const admins = await database.prisma.user.createManyAndReturn({ data: users });
  await database.prisma.organizationMember.createMany({
    data: admins.map((admin) => ({ organizationId: many.id, userId: admin.id, role: 'admin' })),
  });
  token = (await tokens.local?.sign(id, 3600)) ?? '';
  page = await desk.open();
});
afterAll(() => desk?.close());

const options = () => page.getByRole('option');
const findAll = async () => {
  await expect.poll(() => options().count()).toBe(PROJECTS);
  return (await options().allInnerTexts()).map((text) => /p-\d+/.exec(text)?.[0]).sort();
};

it('the first of the projects is opened, however many organizations without one come before it', async () => {
  await page.goto(`${desk.baseUrl}/signin`);
  await page.getByLabel('API key or session token').fill(token);
  await page.getByRole('button', { name: 'Sign in', exact: true }).click();
  await page.waitForURL(/\/projects\//);
  await page.getByRole('button', { name: /^Many p-\d+$/ }).waitFor();
});

it('each of 120 projects is found in the switcher, also when it is opened again, and without the server', async () => {
  await page.getByRole('button', { name: /^Many/ }).click();
  expect(await findAll()).toEqual(names);
  await page.getByPlaceholder('Find a project').fill('p-119');
  await page.getByRole('option', { name: /p-119/ }).waitFor();
  await page.keyboard.press('Enter');
  await page.getByRole('button', { name: 'Many p-119' }).click();
  expect(await findAll()).toEqual(names);
  await page.keyboard.press('Escape');
  await page.route('**/graphql', (route) => (/ Switcher/.test(route.request().postData() ?? '') ? route.abort() : route.fallback()));
  await page.getByRole('button', { name: 'Many p-119' }).click();
  expect(await findAll()).toEqual(names);
  await page.getByRole('button', { name: 'Try again' }).waitFor();
  await page.unroute('**/graphql');
  await page.getByRole('button', { name: 'Try again' }).click();
  await page.getByRole('button', { name: 'Try again' }).waitFor({ state: 'detached' });
  await page.keyboard.press('Escape');
});

it('a dashboard is moved to any of them', async () => {
  await page.getByRole('link', { name: 'Dashboards' }).click();
  await page.getByRole('button', { name: 'Make a dashboard' }).click();
  await page.getByRole('dialog').getByRole('textbox', { name: 'Name' }).fill('On its way');
  await page.getByRole('dialog').getByRole('button', { name: 'Make it' }).click();
  const move = page.getByRole('combobox', { name: 'Move to' });
  await expect.poll(() => move.getByRole('option').count()).toBe(PROJECTS);
  await move.selectOption({ label: 'p-118' });
  await page.getByRole('button', { name: 'Move', exact: true }).click();
  await page.getByRole('button', { name: 'Many p-118' }).waitFor();
});

it('console sessions are filtered by each of more people than a page has', async () => {
  await page.getByRole('link', { name: 'People' }).click();
  await page.getByRole('link', { name: 'Console sessions' }).click();
  const people = page.getByLabel('Person').getByRole('option');
  await expect.poll(() => people.count()).toBe(1 + 1 + ADMINS);
  expect(await people.allInnerTexts()).toEqual(expect.arrayContaining(['Everybody', 'paula@many.example', 'admin-100@many.example']));
  await page.getByLabel('Person').selectOption('admin-100@many.example');
  await page.waitForURL(/person=/);
});

it('makes no requests to other hosts, and logs no errors', () => {
  expect([desk.elsewhere, desk.complaints]).toEqual([[], []]);
});
