import { connect } from 'portico-client';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Guest } from '../support/console.ts';
import { openMachine } from './machine.ts';
import { type DeskTest, findBarriers, type Page, startDesk } from './support.ts';

let desk: DeskTest;
let page: Page;
let machine: Guest;
beforeAll(async () => {
  // Of the demo each user has one.
  desk = await startDesk({ KEYS_PER_USER: '2' });
  machine = await openMachine(desk);
  page = await desk.open({ timezoneId: 'Asia/Tokyo', permissions: ['clipboard-read', 'clipboard-write'] });
  await desk.signIn(page, 'owner', desk.toPage('people'));
});
afterAll(async () => {
  await desk?.close();
  await machine?.close();
});

const row = (text: string) => page.getByRole('row').filter({ hasText: text });
/** What the page says of a role below the list. */
const mayDo = (role: string) => page.locator('.roles div').filter({ has: page.getByRole('term').getByText(role, { exact: true }) });
const show = (path: string) => page.goto(desk.baseUrl + path);

describe('members', () => {
  it('of the project are listed with their roles, and the rights of these', async () => {
    const { project } = await desk.graphql<{
      project: { members: { nodes: Array<{ role: string; user: { name: string; email: string } }> } };
    }>('query ($id: ID!) { project(id: $id) { members { nodes { role user { name email } } } } }', { id: desk.demo.project_id });
    for (const { role, user } of project.members.nodes) {
      const cells = row(user.email).getByRole('gridcell');
      await cells.first().waitFor();
      expect(await cells.allInnerTexts()).toEqual([user.name, user.email, role]);
      await mayDo(role).waitFor();
    }
    expect(await findBarriers(page)).toEqual([]);
    await desk.look(page, 'people');
  });

  it('of the organization are listed on their own page', async () => {
    await page.getByRole('link', { name: 'Members of the organization' }).click();
    await page.waitForURL(desk.baseUrl + desk.toPage('people/organization'));
    await row('owner@acme.example').waitFor();
    await mayDo('owner').getByText('owns it').waitFor();
    expect(await row('outsider@globex.example').count()).toBe(0);
  });
});

describe('console sessions', () => {
  const sessions = `query ($id: ID!) { project(id: $id) { consoleSessions { nodes { id state endReason userEmail } } } }`;
  interface Sessions {
    readonly project: {
      readonly consoleSessions: { readonly nodes: ReadonlyArray<{ id: string; state: string; endReason: string; userEmail: string }> };
    };
  }
  const listSessions = async () => (await desk.graphql<Sessions>(sessions, { id: desk.demo.project_id })).project.consoleSessions.nodes;

  it('have an explanation where there are none', async () => {
    await show(desk.toPage('people/sessions'));
    await page.getByRole('heading', { name: 'Nobody has been at a console yet' }).waitFor();
  });

  it('are listed with user, instance, address and volume, and found by filters in the address', async () => {
    const client = connect({ url: desk.baseUrl, credential: desk.demo.users.member.token ?? '' });
    const terminal = client.console({ instance: desk.demo.instances.console ?? '' });
    const typing = terminal.writable.getWriter();
    await typing.write(new TextEncoder().encode('help\r'));
    const reading = terminal.readable.getReader();
    await reading.read();

    await page.getByRole('button', { name: 'Running' }).click();
    await page.waitForURL(/running=true/);
    await row('member@acme.example').getByText('attached').waitFor();
    await row('member@acme.example').getByText('web-02').waitFor();
    await row('member@acme.example')
      .getByText(/^(127\.0\.0\.1|::1)/)
      .waitFor();
    expect(await findBarriers(page)).toEqual([]);
    await desk.look(page, 'console-sessions');

    await page.getByLabel('Person').selectOption('viewer@acme.example');
    await page.getByRole('heading', { name: 'No session is like this' }).waitFor();
    await page.getByLabel('Person').selectOption('member@acme.example');
    await page.getByRole('combobox', { name: 'Instance', exact: true }).fill('web-02');
    await page.getByRole('option', { name: 'web-02' }).click();
    await page.waitForURL(/instance=/);
    await row('member@acme.example').waitFor();
    await page.reload();
    await row('member@acme.example').waitFor();
    await typing.write(new TextEncoder().encode('uname\r'));
  });

  it('are ended after a question, and show their end reason', async () => {
    await row('member@acme.example').click();
    const dialog = page.getByRole('dialog', { name: 'Console session' });
    await dialog.getByRole('button', { name: 'End this session' }).click();
    await dialog.getByText('End the session of member@acme.example at web-02?').waitFor();
    const focused = () => page.evaluate(() => document.activeElement?.getAttribute('aria-label') ?? document.activeElement?.textContent);
    await expect.poll(focused).toBe('End this session');
    await desk.look(page, 'console-session');
    expect((await listSessions())[0]?.state).toBe('attached');
    await dialog.getByRole('button', { name: 'Let it run' }).click();
    await expect.poll(focused).toBe('End this session …');
    await dialog.getByRole('button', { name: 'End this session' }).click();
    await dialog.getByRole('button', { name: 'End it' }).click();
    await dialog.getByText('because somebody ended it').waitFor();
    await expect.poll(() => dialog.evaluate((node) => node.contains(document.activeElement))).toBe(true);
    expect(await listSessions()).toMatchObject([{ state: 'over', endReason: 'ended', userEmail: 'member@acme.example' }]);
    await page.keyboard.press('Escape');
    await page.getByRole('heading', { name: 'No session is like this' }).waitFor();
    // What was closed is not opened again by the way back.
    await page.goBack();
    expect(page.url()).not.toContain('open=');
    await page.getByRole('button', { name: 'Show all sessions' }).click();
    await row('member@acme.example').getByText('somebody ended it').waitFor();
  });

  it('drop a pending question when another one is opened', async () => {
    const [session] = await listSessions();
    await page.route('**/graphql', async (route) => {
      const { query, variables } = route.request().postDataJSON();
      if (!query.startsWith('query ConsoleSession(')) return route.fallback();
      const response = await route.fetch({ postData: { query, variables: { ...variables, id: session?.id } } });
      const { data } = await response.json();
      const node = { ...data.node, id: variables.id, userEmail: variables.id, state: 'attached', ended: null, endReason: null };
      // A request that is under way when the route is removed has been handled then.
      await route.fulfill({ json: { data: { ...data, node } } }).catch(() => {});
    });
    const dialog = page.getByRole('dialog', { name: 'Console session' });
    const ask = dialog.getByRole('button', { name: 'End this session' });
    const question = dialog.getByText('End the session of');
    const [one, another] = [desk.demo.organization_id, desk.demo.project_id];
    const open = async (id: string) => {
      await page.evaluate((to) => history.pushState(null, '', `?open=${to}`), id);
      await dialog.getByText(id, { exact: true }).first().waitFor();
    };
    await show(desk.toPage('people/sessions'));
    // The first one is in the cache when it is opened again.
    for (const id of [one, another]) await open(id);
    await ask.click();
    await question.waitFor();
    await open(one);
    await ask.waitFor();
    expect(await question.count()).toBe(0);
    await page.unroute('**/graphql');
    await page.keyboard.press('Escape');
  });

  it('of others are for admins alone', async () => {
    const viewer = await desk.open();
    await desk.signIn(viewer, 'viewer', desk.toPage('people/sessions'));
    await viewer.getByRole('heading', { name: 'Nobody has been at a console yet' }).waitFor();
    expect(await viewer.getByLabel('Person').count()).toBe(0);
    const [session] = await listSessions();
    await viewer.goto(`${desk.baseUrl}${desk.toPage('people/sessions')}?open=${session?.id}`);
    await viewer.getByText('There is no such session, or none that you may see').waitFor();
    await viewer.context().close();
  });
});

describe('keys', () => {
  let key = '';
  const useKey = async () => (await fetch(`${desk.baseUrl}/v1/organizations`, { headers: { authorization: `Bearer ${key}` } })).status;

  it('show an error next to its field', async () => {
    await show('/keys');
    await page.getByRole('button', { name: 'Make the key' }).click();
    await page.locator('#key-name-error').getByText('may not be blank').waitFor();
    expect(await findBarriers(page)).toEqual([]);
  });

  it('are made with a last day in the reader’s zone, shown once, and accepted by v1', async () => {
    const day = `${new Date().getFullYear() + 1}-01-31`;
    await page.getByLabel('Name').fill('nightly <b>job</b>');
    await page.getByLabel('Last day').fill(day);
    await page.getByRole('button', { name: 'Make the key' }).click();
    await page.getByText('It will not be shown again').waitFor();
    await desk.look(page, 'key');
    key = await page.locator('.shown-key code').innerText();
    await page.getByRole('button', { name: 'Copy the key' }).click();
    await expect.poll(() => page.evaluate(() => navigator.clipboard.readText())).toBe(key);
    expect(await useKey()).toBe(200);
    const { viewer } = await askAsOwner<{ viewer: { apiKeys: { nodes: Array<{ name: string; expires: string }> } } }>(
      '{ viewer { apiKeys { nodes { name expires } } } }',
    );
    // The midnight after that day in Tokyo.
    expect(viewer.apiKeys.nodes[0]).toEqual({ name: 'nightly <b>job</b>', expires: `${day}T15:00:00.000Z` });
    await page.getByRole('button', { name: 'I have it' }).click();
    await row('nightly <b>job</b>').waitFor();
    expect(await page.content()).not.toContain(key);
    expect(await page.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }]))).not.toContain(key);
  });

  it('are refused beyond the quota, with advice', async () => {
    await page.getByLabel('Name').fill('one too many');
    await page.getByRole('button', { name: 'Make the key' }).click();
    await page.getByRole('alert').getByText('Revoke one that nothing uses any more').waitFor();
    await desk.look(page, 'keys');
  });

  it('are revoked after a question that names them, and refused from then on', async () => {
    await page.getByRole('button', { name: 'Revoke nightly <b>job</b>' }).click();
    const dialog = page.getByRole('dialog', { name: 'Revoke nightly <b>job</b>?' });
    await dialog.getByRole('button', { name: 'Keep it' }).click();
    expect(await useKey()).toBe(200);
    await page.getByRole('button', { name: 'Revoke nightly <b>job</b>' }).click();
    await dialog.getByRole('button', { name: 'Revoke it' }).click();
    await page.getByText('Revoked and ended (1)').click();
    await page.getByRole('table', { name: 'Revoked and ended keys' }).getByText('nightly <b>job</b>').waitFor();
    expect(await useKey()).toBe(401);
  });

  it('cannot be managed by a key, which is shown before an attempt', async () => {
    const other = await desk.open();
    await other.goto(`${desk.baseUrl}/signin?to=/keys`);
    await other.getByLabel('API key or session token').fill(desk.demo.users.owner.api_key);
    await other.getByRole('button', { name: 'Sign in', exact: true }).click();
    await other.getByText('You are signed in with an API key.').waitFor();
    await other.getByText('session_required').waitFor();
    expect(await other.getByRole('button', { name: 'Make the key' }).count()).toBe(0);
    expect(await findBarriers(other)).toEqual([]);
    await other.context().close();
  });

  /** With a session: a key is told of no keys. */
  async function askAsOwner<Data>(query: string): Promise<Data> {
    const response = await fetch(`${desk.baseUrl}/graphql`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${desk.demo.users.owner.token}` },
      body: JSON.stringify({ query }),
    });
    return (await response.json()).data;
  }
});

describe.each(['light', 'dark'] as const)('in %s colours, on a phone', (colorScheme) => {
  it.each(['people', 'people/organization', 'people/sessions', '/keys'])('%s', async (path) => {
    const phone = await desk.open({ viewport: { width: 390, height: 844 }, colorScheme });
    await desk.signIn(phone, 'owner', path.startsWith('/') ? path : desk.toPage(path));
    await phone.getByRole('grid').or(phone.getByRole('table')).or(phone.locator('.state')).first().waitFor();
    expect(await findBarriers(phone)).toEqual([]);
    expect(await phone.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(390);
    await desk.look(phone, `${path.replace(/\W/g, '-')}-${colorScheme}-phone`);
    await phone.context().close();
  });
});

it('the current tab is in sight on a narrow screen', async () => {
  const phone = await desk.open({ viewport: { width: 320, height: 640 } });
  await desk.signIn(phone, 'owner', desk.toPage('people/sessions'));
  const tab = phone.getByRole('link', { name: 'Console sessions', exact: true });
  await tab.waitFor();
  const { left, right } = await tab.evaluate((link) => link.getBoundingClientRect().toJSON());
  expect([left >= 0, right <= 320]).toEqual([true, true]);
  await phone.context().close();
});

it('makes no requests to other hosts, and logs no errors', () => {
  expect(desk.elsewhere).toEqual([]);
  expect(desk.complaints).toEqual([]);
});
