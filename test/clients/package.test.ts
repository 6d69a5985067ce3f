import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { chromium } from 'playwright-core';
import { build } from 'rolldown';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startApp, type TestApp } from '../support/app.ts';
import { findBrowser } from '../support/browser.ts';
import { checkout, folder, run } from './tools.ts';

/** An empty project, in which the package is installed as a stranger would. */
const place = mkdtempSync(join(tmpdir(), 'portico-package-'));
const node24 = join(folder, `node_modules/node-linux-${process.arch}/bin/node`);

let app: TestApp;
let pages: Server;
let pageUrl: string;
beforeAll(async () => {
  const packed = await run('npm', ['pack', '--workspace', 'portico-client', '--pack-destination', place, '--silent'], {}, checkout);
  expect(packed.code, packed.err).toBe(0);
  writeFileSync(join(place, 'package.json'), JSON.stringify({ name: 'empty', private: true, type: 'module' }));
  const installed = await run('npm', ['install', '--ignore-scripts', '--no-audit', '--no-fund', `./${packed.out.trim()}`], {}, place);
  expect(installed.code, installed.err).toBe(0);
  pages = createServer((request, response) => {
    const isScript = request.url === '/page.js';
    response.setHeader('content-type', isScript ? 'text/javascript' : 'text/html');
    response.end(isScript ? readFileSync(join(place, 'page/page.js')) : '<!doctype html><title>page</title>');
  });
  await new Promise<void>((resolve) => pages.listen(0, '127.0.0.1', resolve));
  pageUrl = `http://127.0.0.1:${(pages.address() as AddressInfo).port}`;
  app = await startApp({ ALLOWED_ORIGINS: pageUrl });
});
afterAll(async () => {
  await app?.close();
  pages?.close();
  rmSync(place, { recursive: true, force: true });
});

const program = `
import { connect, describeState } from 'portico-client';
const [url, credential, project] = process.argv.slice(2);
const client = connect({ url, credential });
const { data } = await client.v1.GET('/v1/organizations');
const { data: asked } = await client.query('query ($id: ID!) { project(id: $id) { name } }', { id: project });
const states = [];
let told = 0;
for await (const event of client.feed({ project, after: 0, onState: (state) => states.push(describeState(state)) })) {
  if (event.type === 'ready') break;
  told += 1;
}
console.log(JSON.stringify([data.results.length, asked.project.name, told, states, typeof WebSocket]));
`;

it('runs on Node.js 20 and 24', async () => {
  writeFileSync(join(place, 'program.mjs'), program);
  const args = [join(place, 'program.mjs'), app.baseUrl, app.demo.users.viewer.token ?? '', app.demo.project_id];
  for (const [node, socket] of [
    [process.execPath, process.version.startsWith('v20.') ? 'undefined' : 'function'],
    [node24, 'function'],
  ] as const) {
    const { code, out, err } = await run(node, args, {}, place);
    expect([code, err]).toEqual([0, '']);
    expect(JSON.parse(out)).toEqual([1, expect.any(String), app.demo.notification_ids.length, ['connecting', 'live', 'ended'], socket]);
  }
});

const typed = `
import { connect, describeState, type FeedEvent, PorticoError } from 'portico-client';
import { attachTerminal, type TerminalLike } from 'portico-client/xterm';

const client = connect({ url: 'https://portico.example', credential: async () => 'token', maxWaitMs: 10_000 });

export async function use(terminal: TerminalLike, signal: AbortSignal): Promise<string[]> {
  const path = { organization_id: 'o', project_id: 'p' };
  const { data, error } = await client.v1.GET('/v1/organizations/{organization_id}/projects/{project_id}/notifications', {
    params: { path, query: { severity: 'critical' } },
    signal,
  });
  if (error) throw new Error('code' in error ? String(error.code) : 'fields');
  const titles: string[] = data.results.map(({ title }) => title);
  const feed = client.feed({ project: 'p', store: { load: () => 3, save: (cursor: number) => {} }, signal });
  for await (const event of feed) titles.push(nameOf(event));
  const failure = new PorticoError('not_found', 'Not found.');
  await attachTerminal(terminal, client.console({ instance: 'i', signal }));
  return [...titles, describeState(feed.state), failure.code];
}

function nameOf(event: FeedEvent): string {
  switch (event.type) {
    case 'notification':
      return event.notification.title;
    case 'ready':
      return String(event.unreadCount);
    case 'read':
      return event.notificationIds.join();
    case 'gap':
      return \`\${event.from}-\${event.to}\`;
  }
}
`;

it.each([
  ['Node.js', { lib: ['es2023'], types: ['node'] }],
  ['a browser', { lib: ['es2023', 'dom', 'dom.iterable', 'dom.asynciterable'], types: [] }],
])('compiles under strict for %s, its types checked too', async (_, options) => {
  const types = join(checkout, 'node_modules/@types');
  const strict = { strict: true, noUncheckedIndexedAccess: true, exactOptionalPropertyTypes: true, skipLibCheck: false, noEmit: true };
  const compilerOptions = { ...options, ...strict, target: 'es2022', module: 'nodenext', typeRoots: [types] };
  writeFileSync(join(place, 'typed.ts'), typed);
  writeFileSync(join(place, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['typed.ts'] }));
  const tsc = join(folder, 'node_modules/typescript/bin/tsc');
  const { code, out } = await run(process.execPath, [tsc, '--project', place], {}, place);
  expect([code, out]).toEqual([0, '']);
  writeFileSync(join(place, 'typed.ts'), typed.replace("severity: 'critical'", "severity: 'loud'").replace("case 'gap'", "case 'gasp'"));
  const wrong = await run(process.execPath, [tsc, '--project', place], {}, place);
  expect(wrong.out.match(/error TS\d+/g)?.length).toBeGreaterThan(1);
});

it('is at most 15 KiB in a browser, where it reads v1 and follows a feed', async () => {
  writeFileSync(
    join(place, 'page.mjs'),
    `import { connect, describeState } from 'portico-client';\nObject.assign(window, { connect, describeState });\n`,
  );
  const { output } = await build({
    input: join(place, 'page.mjs'),
    platform: 'browser',
    cwd: place,
    output: { dir: join(place, 'page'), minify: true },
  });
  const first = output.filter((chunk) => chunk.type === 'chunk' && !chunk.isDynamicEntry);
  const bytes = first.reduce((sum, chunk) => sum + (chunk.type === 'chunk' ? gzipSync(chunk.code).length : 0), 0);
  console.log(`${bytes} bytes compressed`);
  expect(bytes).toBeLessThanOrEqual(15 * 1024);

  const browser = await chromium.launch({ executablePath: findBrowser(), args: ['--no-sandbox'] });
  const page = await browser.newPage();
  page.setDefaultTimeout(60_000);
  await page.goto(pageUrl);
  await page.addScriptTag({ url: '/page.js', type: 'module' });
  const use = (url: string, mostStates: number) =>
    page.evaluate(
      async ([address, credential, project, most]) => {
        // biome-ignore lint/suspicious/noExplicitAny: what the script has put there
        const { connect, describeState } = window as any;
        const client = connect({ url: address, credential });
        const told: unknown[] = [];
        let isOver = false;
        const leaving = new AbortController();
        const onState = (state: object) => {
          told.push(describeState(state), state);
          if (told.length === 2 * most) leaving.abort();
        };
        const feed = client.feed({ project, after: 0, signal: leaving.signal, onState });
        let events = 0;
        for await (const event of feed) {
          if ((isOver = event.type === 'ready')) break;
          events += 1;
        }
        const states = told.filter((state) => typeof state === 'string');
        const messages = told.flatMap((state) => (typeof state === 'string' ? [] : [(state as { error?: Error }).error?.message ?? '']));
        const { data } = isOver ? await client.v1.GET('/v1/organizations') : { data: null };
        return { events, states, messages, organizations: data?.count ?? null };
      },
      [url, app.demo.users.viewer.token ?? '', app.demo.project_id, mostStates] as const,
    );
  expect(await use(app.baseUrl, 10)).toEqual({
    events: app.demo.notification_ids.length,
    states: ['connecting', 'live', 'ended'],
    messages: ['', '', ''],
    organizations: 1,
  });

  // A server that allows no other origin looks like one that is off: the sentence names both.
  const closed = await startApp();
  const refused = await use(closed.baseUrl, 3);
  expect([refused.events, refused.states.slice(0, 3)]).toEqual([0, ['connecting', 'waiting 1 s: unreachable', 'connecting']]);
  expect(refused.messages[1]).toMatch(/does not answer: .*does not allow this page \(ALLOWED_ORIGINS\)\.$/);
  await closed.close();
  await browser.close();
});
