import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { openDemoConsole } from '../../demo/console.ts';
import { packageRoot } from '../../src/platform/packageroot.ts';
import { startApp, type TestApp } from '../support/app.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startApp();
  await openDemoConsole(app.app.database);
});
afterAll(() => app.close());

/** The program formed by a page's code blocks, with the address of the app. */
function readProgram(page: string): string {
  const blocks = [...readFileSync(new URL(page, packageRoot), 'utf8').matchAll(/^```js\n([\s\S]*?)^```$/gm)].map(([, block]) => block);
  return blocks.join('').replaceAll('http://localhost:4000', app.baseUrl);
}

function runProgram(program: string) {
  const child = spawn(process.execPath, ['--input-type=module', '--eval', program], {
    cwd: fileURLToPath(packageRoot),
    env: { ...process.env, PORTICO_KEY: app.demo.users.member.api_key },
  });
  const printed = { out: '', err: '' };
  child.stdout.on('data', (bytes) => {
    printed.out += bytes;
  });
  child.stderr.on('data', (bytes) => {
    printed.err += bytes;
  });
  const exit = new Promise<number | null>((resolve) => child.once('close', resolve));
  return { printed, exit, kill: () => child.kill() };
}

it.each([
  ['docs/feed.md', /^149 .+\n150 .+\n$/, 'connecting\nlive\n'],
  ['docs/consoles.md', /This is web-02[\s\S]*# uname\r\nLinux\r\n/, ''],
])('the example of the client package in %s runs when pasted', async (page, expected, err) => {
  const { printed, kill, exit } = runProgram(readProgram(page));
  try {
    await expect.poll(() => printed.out).toMatch(expected);
    expect(printed.err).toBe(err);
  } finally {
    kill();
    await exit;
  }
});

it('the README of the client package runs from its first line to its last', async () => {
  const { printed, exit } = runProgram(readProgram('clients/typescript/README.md'));
  const code = await exit;
  expect([code, printed.err]).toEqual([0, '']);
  expect(printed.out).toMatch(
    new RegExp(
      [
        '^51 instances',
        'Databases',
        'Production',
        'notification 150',
        'ready 150',
        '[\\s\\S]*logout\\r',
        'ready',
        'left',
        'not_authenticated - .+\\.',
        'validation_failed - name: This field may not be blank\\.',
        'unreachable - 127\\.0\\.0\\.1:4009 does not answer: ECONNREFUSED\\.',
        '$',
      ].join('\n'),
    ),
  );
});
