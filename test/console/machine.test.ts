import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type BrowserContext, chromium, type Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openDemoConsole } from '../../demo/console.ts';
import { startApp, type TestApp } from '../support/app.ts';
import { findBrowser } from '../support/browser.ts';
import { openConsole, setEndpoint, takeConsoleTicket } from '../support/console.ts';
import { type Machine, qemu, startMachine } from './machine.ts';
import { servePage } from './page.ts';

const screenshots = fileURLToPath(new URL('generated/screenshots', import.meta.url));
const profile = mkdtempSync(join(tmpdir(), 'portico-chromium-'));

let app: TestApp;
let machine: Machine;
let site: Awaited<ReturnType<typeof servePage>>;
let browser: BrowserContext;
let page: Page;
const complaints: string[] = [];

beforeAll(async () => {
  expect(existsSync(qemu), `${qemu}: apt-get install qemu-system-x86`).toBe(true);
  mkdirSync(screenshots, { recursive: true });
  site = await servePage();
  app = await startApp({ ALLOWED_ORIGINS: site.origin });
  machine = await startMachine();
  await openDemoConsole(app.app.database);
  await setEndpoint(app, app.demo.instances.eligible, { port: machine.serialPort });
  await setEndpoint(app, app.demo.instances.trial_already_open, { kind: 'vnc', port: machine.vncPort });
  browser = await chromium.launchPersistentContext(profile, {
    executablePath: findBrowser(),
    viewport: { width: 1000, height: 1100 },
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
      '--no-first-run',
    ],
  });
  browser.setDefaultTimeout(60_000);
  page = browser.pages()[0] ?? (await browser.newPage());
  page.on('pageerror', (failure) => void complaints.push(failure.message));
});
afterAll(async () => {
  await browser?.close();
  await machine?.stop();
  await app?.close();
  await site?.close();
  rmSync(profile, { recursive: true, force: true });
  expect(complaints).toEqual([]);
});

/** The URL of a ticket for the console of an instance. */
async function urlOf(instanceId: string): Promise<string> {
  const { path, ticket } = await takeConsoleTicket(app, instanceId);
  return `${app.baseUrl.replace('http', 'ws')}${path}?ticket=${ticket}`;
}

async function openPage(): Promise<void> {
  await page.goto(site.origin);
  await page.waitForFunction('window.isReady');
}

const readTerminal = () => page.evaluate('window.readTerminal()') as Promise<string>;

describe('the serial console of a real machine', () => {
  it('prints the output of its firmware', async () => {
    const console = await openConsole(app, app.demo.instances.eligible);
    await console.until('SeaBIOS (version ');
    await console.until('No bootable device.');
    console.socket.close();
    await console.closed;
  });

  it('is shown by xterm.js, as it is published', async () => {
    await openPage();
    await page.evaluate(`window.openTerminal(${JSON.stringify(await urlOf(app.demo.instances.eligible))})`);
    await expect.poll(readTerminal).toMatch(/SeaBIOS \(version [\s\S]*No bootable device\./);
    await page.screenshot({ path: join(screenshots, 'serial.png') });
  });
});

it('the console of the demo is typed into with xterm.js, as it is published', async () => {
  await openPage();
  await page.evaluate(`window.openTerminal(${JSON.stringify(await urlOf(app.demo.instances.console))})`);
  await expect.poll(readTerminal).toContain('root@web-02:~#');
  await page.keyboard.type('unamee');
  await page.keyboard.press('Backspace');
  await page.keyboard.type(' -a\n');
  await expect.poll(readTerminal).toMatch(/root@web-02:~# uname -a\nLinux web-02 \S+ #1 SMP x86_64 GNU\/Linux\n/);
  await page.screenshot({ path: join(screenshots, 'demo.png') });
  await page.keyboard.type('exit\n');
  expect(await page.evaluate('window.terminal.closed')).toEqual({ code: 1000, reason: 'console_closed' });
});

it('the screen of a real machine is shown by noVNC, as it is published: a handshake, a first picture, and its changes', async () => {
  await openPage();
  await page.evaluate(`window.openScreen(${JSON.stringify(await urlOf(app.demo.instances.trial_already_open))})`);
  const events = () => page.evaluate('window.screenEvents.map(([name]) => name)');
  await expect.poll(events).toContain('connect');
  expect(await page.evaluate('window.screenEvents.find(([name]) => name === "desktopname")[1].name')).toContain('QEMU');
  // The firmware writes in grey on black, at 720 by 400. Before that, and again each time the machine begins anew, the screen is another.
  const read = () => page.evaluate('window.readScreen()') as Promise<{ width: number; height: number; lit: number }>;
  await expect
    .poll(async () => {
      const { width, height, lit } = await read();
      return { width, height, isLit: lit > 500 };
    })
    .toEqual({ width: 720, height: 400, isLit: true });
  await page.screenshot({ path: join(screenshots, 'screen.png') });
  // It begins again every second: the picture goes on changing.
  const pictures: number[] = [];
  const countPictures = async () => {
    const { lit } = await read();
    if (lit !== pictures.at(-1)) pictures.push(lit);
    return pictures.length;
  };
  await expect.poll(countPictures).toBeGreaterThan(2);
  await page.evaluate('window.vnc.disconnect()');
  await expect.poll(events).toContain('disconnect');
});
