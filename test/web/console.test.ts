import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Guest, openGuest } from '../support/console.ts';
import { openMachine } from './machine.ts';
import { HEIGHT, serveScreen, WIDTH } from './screen.ts';
import { type DeskTest, findBarriers, type Page, startDesk } from './support.ts';

let desk: DeskTest;
let page: Page;
let serial: Guest;
let screen: Guest;
const keys: number[] = [];

beforeAll(async () => {
  desk = await startDesk();
  serial = await openMachine(desk);
  screen = await openGuest((line) => serveScreen(line, (symbol) => keys.push(symbol)));
  await desk.setConsole(desk.demo.instances.eligible, { kind: 'vnc', port: screen.port });
  page = await desk.open();
  await desk.signIn(page, 'owner', toConsole());
});
afterAll(async () => {
  await desk?.close();
  await serial?.close();
  await screen?.close();
});

const toConsole = (tab = 'console', id = desk.demo.instances.console) => desk.toPage(`instances/${id}/${tab}`);
const readTerminal = (which = page) => which.locator('.xterm-rows').innerText();
const isLive = (which = page) => which.locator('.console .connection[data-state="live"]').waitFor();

interface Session {
  readonly kind: string;
  readonly state: string;
  readonly endReason: string | null;
  readonly bytesIn: number;
}
async function readSessions(instanceId = desk.demo.instances.console): Promise<readonly Session[]> {
  const { project } = await desk.graphql<{ project: { consoleSessions: { nodes: Session[] } } }>(
    'query ($id: ID!, $filter: ConsoleSessionFilter) { project(id: $id) { consoleSessions(filter: $filter) { nodes { kind state endReason bytesIn } } } }',
    { id: desk.demo.project_id, filter: { instanceId } },
  );
  return project.consoleSessions.nodes;
}

it('types into the serial console and reads its reply', async () => {
  await isLive();
  await expect.poll(readTerminal).toContain('root@web-02:~#');
  await page.keyboard.type('help\n');
  await expect.poll(readTerminal).toMatch(/lists the commands/);
  await desk.look(page, 'console');
  expect(await findBarriers(page)).toEqual([]);
});

it('has the colours of the page, and of another theme once it is chosen', async () => {
  const readDifferences = () =>
    page.evaluate(() => {
      const read = (selector: string, name: 'color' | 'backgroundColor') =>
        getComputedStyle(document.querySelector(selector) as Element)[name];
      const text = [read('.serial', 'color'), read('.xterm-rows', 'color')];
      const ground = [read('.serial', 'backgroundColor'), read('.xterm-scrollable-element', 'backgroundColor')];
      return [text, ground].filter(([own, terminal]) => own !== terminal);
    });
  for (const colorScheme of ['dark', 'light'] as const) {
    await page.emulateMedia({ colorScheme });
    await expect.poll(readDifferences).toEqual([]);
    await desk.look(page, `console-${colorScheme}`);
  }
});

it('gives the focus back to the page', async () => {
  await page.keyboard.press('Shift+Escape');
  await expect.poll(() => page.evaluate(() => document.activeElement?.textContent)).toBe('Disconnect');
});

it('asks before it takes over the console of another user', async () => {
  const other = await desk.open();
  await desk.signIn(other, 'admin', toConsole());
  await other.getByRole('heading', { name: 'Somebody is at this console' }).waitFor();
  await other.getByText('Olivia Okafor').waitFor();
  expect(await readSessions()).toMatchObject([{ state: 'attached' }]);
  await other.getByRole('button', { name: 'Take it over' }).click();
  await isLive(other);
  await page.getByText('Somebody has opened this console elsewhere.').waitFor();
  // The same question for whoever wants it back.
  await page.getByRole('button', { name: 'Connect again' }).click();
  await page.getByRole('heading', { name: 'Somebody is at this console' }).waitFor();
  await page.getByText('Anton Adler').waitFor();
  expect((await readSessions()).filter(({ state }) => state === 'attached').length).toBe(1);
  await isLive(other);
  await page.getByRole('button', { name: 'Take it over' }).click();
  await isLive();
  await other.getByText('Somebody has opened this console elsewhere.').waitFor();
  await other.close();
});

it('does not ask about the user’s own session, although the server may not have detached it yet', async () => {
  const tab = await desk.openTab(page, '/icon.svg');
  // A close on its way: the server's end of the socket stays open.
  await tab.routeWebSocket(/\/console\/ws/, (socket) => {
    socket.connectToServer();
    socket.onClose(() => {});
  });
  await tab.goto(desk.baseUrl + toConsole());
  await tab.getByRole('button', { name: 'Take it over' }).click();
  await isLive(tab);
  await expect.poll(() => readTerminal(tab)).toContain('root@web-02:~#');
  await tab.getByRole('button', { name: 'Disconnect' }).click();
  await tab.getByText('You have left the console.').waitFor();
  expect((await readSessions())[0]?.state).toBe('attached');
  await tab.getByRole('button', { name: 'Connect again' }).click();
  await isLive(tab);
  await tab.close();
  await page.bringToFront();
});

it('connects again', async () => {
  await expect.poll(async () => (await readSessions())[0]?.state).not.toBe('attached');
  await page.getByRole('button', { name: 'Connect again' }).click();
  await isLive();
  await expect.poll(readTerminal).toContain('root@web-02:~#');
  await page.locator('.serial').click();
  await page.keyboard.type('uname\n');
  await expect.poll(readTerminal).toMatch(/^Linux$/m);
});

it('asks a member too, who may not see whose session it is', async () => {
  const { length } = await readSessions();
  const other = await desk.open();
  await desk.signIn(other, 'member', toConsole());
  await other.getByRole('heading', { name: 'Somebody is at this console' }).waitFor();
  await other.getByText('Only admins of the project see who it is.').waitFor();
  expect(await other.locator('main').innerText()).not.toContain('Olivia');
  const sessions = await readSessions();
  expect([sessions.length, sessions[0]?.state]).toEqual([length, 'attached']);
  await other.close();
});

it('shows that the console closed', async () => {
  await page.keyboard.type('exit\n');
  await page.getByText('The console has hung up').waitFor();
  await page.getByRole('button', { name: 'Connect again' }).click();
  await isLive();
});

it('closes its socket when another tab of the page is opened', async () => {
  await expect.poll(async () => (await readSessions())[0]?.state).toBe('attached');
  await page.getByRole('link', { name: 'Facts', exact: true }).click();
  await expect.poll(async () => (await readSessions())[0]?.state).toBe('detached');
});

it('the sessions are listed with their users, volumes and end reasons', async () => {
  await page.getByRole('link', { name: 'Console sessions', exact: true }).click();
  const rows = page.getByRole('grid').getByRole('row');
  await expect.poll(() => rows.allInnerTexts()).toContainEqual(expect.stringMatching(/over[\s\S]*Olivia[\s\S]*the console hung up/));
  expect((await rows.allInnerTexts()).join('\n')).toMatch(/another session of this console began/);
  await desk.look(page, 'console-sessions');
});

it('a running session is ended after a question, by the name of its user', async () => {
  const own = await desk.open();
  await desk.signIn(own, 'member', toConsole());
  await isLive(own);
  await page.getByRole('button', { name: 'running' }).click();
  const row = page.getByRole('row').filter({ hasText: 'attached' });
  await row.getByRole('button', { name: 'End' }).click();
  await page.getByRole('heading', { name: /End the session of/ }).waitFor();
  await page.getByRole('button', { name: 'End the session' }).click();
  await own.getByText('Somebody has ended this session.').waitFor();
  await expect.poll(async () => (await readSessions())[0]?.endReason).toBe('ended');
  await own.close();
});

it('shows a screen, whose kind it does not know before, and sends it keys', async () => {
  const { eligible } = desk.demo.instances;
  await page.goto(desk.baseUrl + toConsole('console', eligible));
  await isLive();
  await page.getByText('The screen of a test').waitFor();
  const canvas = page.locator('.screen canvas');
  await expect
    .poll(() => canvas.evaluate((node) => [(node as HTMLCanvasElement).width, (node as HTMLCanvasElement).height]))
    .toEqual([WIDTH, HEIGHT]);
  await page.keyboard.press('p');
  await expect.poll(() => keys).toContain('p'.charCodeAt(0));
  await desk.look(page, 'screen');
  await page.keyboard.press('Shift+Escape');
  await page.keyboard.press('Enter');
  await page.getByText('You have left the console.').waitFor();
  // One session, though the line was opened to learn what it is.
  expect(await readSessions(eligible)).toMatchObject([{ kind: 'vnc' }]);
});

it('shows text so that it can be read, in whichever colour the machine writes it', async () => {
  const codes = Array.from({ length: 8 }, (_, index) => [30 + index, 90 + index]).flat();
  const painter = await openGuest((line) => line.write(codes.map((code) => `\x1b[${code}mcolour ${code}\x1b[m`).join('\r\n')));
  const id = desk.demo.instances.backup_already_enabled;
  await desk.setConsole(id, { kind: 'serial', port: painter.port });
  const tab = await desk.open();
  await desk.signIn(tab, 'owner', toConsole('console', id));
  for (const colorScheme of ['light', 'dark'] as const) {
    await tab.emulateMedia({ colorScheme });
    const readWeak = () =>
      tab.evaluate(() => {
        const measure = (colour: string) => {
          const [red = 0, green = 0, blue = 0] = (colour.match(/\d+/g) ?? []).map((part) => {
            const share = Number(part) / 255;
            return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
          });
          return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
        };
        const ground = measure(getComputedStyle(document.querySelector('.serial') as Element).backgroundColor);
        const texts = [...document.querySelectorAll('.xterm-rows span')].filter((span) => span.textContent?.startsWith('colour'));
        const weak = texts.filter((span) => {
          const text = measure(getComputedStyle(span).color);
          return (Math.max(text, ground) + 0.05) / (Math.min(text, ground) + 0.05) < 4.45;
        });
        return [texts.length, weak.map((span) => span.textContent)];
      });
    await expect.poll(readWeak, { timeout: 15_000 }).toEqual([codes.length, []]);
    await desk.look(tab, `console-colours-${colorScheme}`);
  }
  await tab.context().close();
  await painter.close();
});

it('explains why there is no console: no endpoint, a low role, an API key', async () => {
  await page.goto(desk.baseUrl + toConsole('console', desk.demo.instances.trial_already_open));
  await page.getByText('There is no console behind this instance').waitFor();
  const viewer = await desk.open();
  await desk.signIn(viewer, 'viewer', toConsole());
  await viewer.getByRole('heading', { name: 'Your role opens no console' }).waitFor();
  const program = await desk.open();
  await program.goto(`${desk.baseUrl}/signin?to=${encodeURIComponent(toConsole())}`);
  await program.getByLabel('API key or session token').fill(desk.demo.users.owner.api_key);
  await program.getByRole('button', { name: 'Sign in', exact: true }).click();
  await program.getByRole('heading', { name: 'An API key opens no console in a page' }).waitFor();
});

it('a console page of an old build is loaded from the current one', async () => {
  const other = await desk.open();
  let isGone = true;
  await other.route('**/assets/console-*.js', (route) => (isGone ? route.fulfill({ status: 404 }) : route.fallback()));
  await desk.signIn(other, 'owner', toConsole('facts', desk.demo.instances.trial_already_open));
  await other.getByRole('heading', { name: 'State' }).waitFor();
  other.on('request', (request) => {
    if (request.isNavigationRequest()) isGone = false;
  });
  await other.getByRole('link', { name: 'Console', exact: true }).click();
  await other.getByText('There is no console behind this instance').waitFor();
  expect(isGone).toBe(false);
  await other.context().close();
});

it('makes no requests to other hosts, and logs no errors', () => {
  expect([desk.elsewhere, desk.complaints]).toEqual([[], []]);
});
