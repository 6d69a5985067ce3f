import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type DeskTest, type Page, startDesk } from './support.ts';

let desk: DeskTest;
let page: Page;
/** A page of somebody else: `localhost` is another site to a browser than `127.0.0.1`. */
let stranger: Server;
let strangerUrl: string;
beforeAll(async () => {
  desk = await startDesk();
  page = await desk.open();
  await desk.signIn(page, 'owner');
  stranger = createServer((_request, response) => {
    response.setHeader('content-type', 'text/html').end('<!doctype html><title>Another page</title>');
  });
  await new Promise<void>((resolve) => stranger.listen(0, '127.0.0.1', resolve));
  strangerUrl = `http://localhost:${(stranger.address() as AddressInfo).port}`;
});
afterAll(async () => {
  await desk?.close();
  stranger?.close();
});

const session = () => page.evaluate(() => JSON.parse(sessionStorage.getItem('portico:session') ?? 'null') as { credential: string });

it('keeps the credential out of URLs, cookies, localStorage, history and the server’s log', async () => {
  const { credential } = await session();
  for (const rest of ['', 'notifications', 'instances', 'tasks', 'storage', 'dashboards', 'people', 'developers']) {
    await page.goto(desk.baseUrl + desk.toPage(rest));
    await page.locator('main h1').first().waitFor();
    const seen = await page.evaluate(() =>
      JSON.stringify([
        { ...localStorage },
        document.cookie,
        location.href,
        history.state,
        performance.getEntries().map(({ name }) => name),
      ]),
    );
    expect(seen).not.toContain(credential);
  }
  const lines = desk.fleet?.replicas.flatMap((replica) => replica.lines) ?? desk.logLines;
  expect(lines.length).toBeGreaterThan(0);
  expect(lines.filter((line) => line.includes(credential))).toEqual([]);
});

it('cannot be framed', async () => {
  const other = await desk.open();
  await other.goto(strangerUrl);
  await other.evaluate((url) => {
    const frame = document.createElement('iframe');
    frame.src = url;
    document.body.append(frame);
  }, `${desk.baseUrl}/`);
  await expect.poll(() => other.frames().map((frame) => frame.url())).toContain('chrome-error://chromewebdata/');
  await other.context().close();
});

it('gives a page of another origin neither the demo’s people, nor a response, nor a socket', async () => {
  const other = await desk.open();
  await other.goto(strangerUrl);
  const outcome = await other.evaluate(
    async ([base, token, project]) => {
      const read = (path: string, init?: RequestInit) =>
        fetch(base + path, init).then(
          (response) => response.status,
          () => 'refused',
        );
      const socket = new WebSocket(`${base?.replace('http', 'ws')}/graphql`, 'graphql-transport-ws');
      const opened = await new Promise((resolve) => {
        socket.onopen = () => resolve('open');
        socket.onerror = () => resolve('refused');
      });
      return [
        await read('/desk/settings'),
        await read('/desk/demo', { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{}' }),
        await read('/graphql', {
          method: 'POST',
          headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
          body: '{}',
        }),
        await read(`/v1/organizations/x/projects/${project}/compute/overview`, { headers: { authorization: `Bearer ${token}` } }),
        opened,
      ];
    },
    [desk.baseUrl, (await session()).credential, desk.demo.project_id],
  );
  expect(outcome).toEqual(['refused', 'refused', 'refused', 'refused', 'refused']);
  await other.context().close();
});

it('shares its session with no page of another origin, and with no tab that it has not opened', async () => {
  const tab = await page.context().newPage();
  await tab.goto(`${desk.baseUrl}/`);
  await tab.waitForURL(/\/signin/);
  expect(await tab.evaluate(() => sessionStorage.getItem('portico:session'))).toBeNull();
  await tab.close();
});

const hostile = [
  '<img src=x onerror="document.title=`owned`">',
  '"><script>document.title="owned"</script>',
  '\u202egnirts desrever\u202c \u2067right to left',
  '{{constructor.constructor("alert(1)")()}}',
  'x'.repeat(500),
];

it('shows published content as text, and runs none of it', async () => {
  const dialogs: string[] = [];
  page.on('dialog', (dialog) => {
    dialogs.push(dialog.message());
    dialog.dismiss();
  });
  await page.goto(desk.baseUrl + desk.toPage());
  await page.locator('.connection[data-state="live"]').waitFor();
  for (const title of hostile) {
    await desk.graphql('mutation ($input: PublishNotificationInput!) { publishNotification(input: $input) { notification { id } } }', {
      input: {
        organizationId: desk.demo.organization_id,
        projectId: desk.demo.project_id,
        kind: 'test.hostile',
        severity: 'info',
        title,
        body: hostile.join('\n'),
        data: { html: title, __proto__: { polluted: true } },
      },
    });
  }
  for (const title of hostile) await expect.poll(() => page.locator('.newest').innerText()).toContain(title.slice(0, 20));
  for (const rest of ['', 'notifications']) {
    await page.goto(desk.baseUrl + desk.toPage(rest));
    await page.getByText('constructor.constructor').first().waitFor();
    expect(await page.evaluate(() => document.querySelectorAll('main img, main script, main iframe').length)).toBe(0);
    // Nothing is pushed off the screen by a long word.
    expect(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth)).toBe(true);
  }
  expect([dialogs, await page.title()]).toEqual([[], expect.not.stringContaining('owned')]);
});

it('makes no requests to other hosts, and logs no errors', () => {
  expect([desk.elsewhere, desk.complaints]).toEqual([[], []]);
});
