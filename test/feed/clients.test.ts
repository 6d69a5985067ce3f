import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { demoFilePath } from '../../src/config.ts';
import { packageRoot } from '../../src/platform/packageroot.ts';
import { startApp, type TestApp } from '../support/app.ts';
import { publish } from '../support/feed.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startApp();
});
afterAll(() => app.close());

// How feeds come back is in test/slow/feed-clients.test.ts.
it('the documented example prints the stored notifications, the live ones, and its states', async () => {
  const child = spawn(process.execPath, ['docs/clients/feed.mjs', demoFilePath(app.config)], { cwd: fileURLToPath(packageRoot) });
  let [out, err] = ['', ''];
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    out += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    err += text;
  });
  const events = () =>
    out
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line));
  try {
    await expect.poll(() => events().map(({ type }) => type)).toEqual(['notification', 'notification', 'ready']);
    const sequence = await publish(app, 'to the example');
    await expect.poll(() => events().at(-1)).toMatchObject({ sequence, notification: { title: 'to the example' } });
    expect(err).toBe('[connecting]\n[live]\n');
  } finally {
    child.kill();
  }
});
