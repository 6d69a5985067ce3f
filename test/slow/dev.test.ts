import { mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { copyCheckout, type Launched, launch } from '../support/launch.ts';
import { findLowPort } from '../support/ports.ts';

const dataDir = mkdtempSync(join(tmpdir(), 'portico-dev-'));
let checkout: string;
let port: number;
let dev: Launched;

beforeAll(async () => {
  checkout = copyCheckout({ isBuilt: true });
  port = await findLowPort();
  dev = launch(checkout, ['dev'], { DATA_DIR: dataDir, HOST: '127.0.0.1', PORT: String(port), LOG_LEVEL: 'error' });
});

afterAll(async () => {
  dev.process.kill('SIGTERM');
  await dev.exit;
  rmSync(dataDir, { recursive: true, force: true });
  rmSync(checkout, { recursive: true, force: true });
});

/** As many editors save: another file takes the place of the one before. */
function save(path: string, text: string): void {
  writeFileSync(join(checkout, `${path}.new`), text);
  renameSync(join(checkout, `${path}.new`), join(checkout, path));
}

const shows = (text: string, path = '/guides') =>
  expect
    .poll(
      () =>
        fetch(`http://127.0.0.1:${port}${path}`, { headers: { accept: 'text/html' } }).then(
          (response) => response.text(),
          () => 'nobody answers',
        ),
      { interval: 100, timeout: 300_000 },
    )
    .toContain(text);

test('npm run dev reloads after every save, also by rename, survives a broken source, and ends on a signal', async () => {
  const path = 'src/transport/pages/guides.ts';
  const text = readFileSync(join(checkout, path), 'utf8');
  await shows('<h1>Guides</h1>');
  for (const name of ['First', 'Second', 'Third']) {
    save(path, text.replace('<h1>Guides</h1>', `<h1>${name}</h1>`));
    await shows(`<h1>${name}</h1>`);
  }
  save(path, 'export const = broken');
  await expect.poll(() => dev.printed.err, { interval: 100, timeout: 300_000 }).toContain('guides.ts');
  await shows('<h1>Third</h1>');
  save(path, text);
  await shows('<h1>Guides</h1>');
  for (const [name, shown, address] of [
    ['docs/start.md', 'Getting started', '/guides/start'],
    ['openapi.json', 'The response contains a secret', '/v1/openapi.json'],
  ] as const) {
    save(name, readFileSync(join(checkout, name), 'utf8').replace(shown, 'What was saved'));
    await shows('What was saved', address);
  }
  dev.process.kill('SIGTERM');
  expect(await dev.exit).toEqual({ code: 0, signal: null });
}, 1_800_000);
