import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { DemoFile } from '../../demo/file.ts';
import { createLogger, openOutput } from '../../src/platform/logger.ts';
import { type Disk, openDisk } from '../support/disk.ts';
import { launch, type Started, start } from '../support/launch.ts';
import { findLowPort } from '../support/ports.ts';

const checkout = fileURLToPath(new URL('../..', import.meta.url));
const MIB = 2 ** 20;

// What a build says of itself would stand before the sentence that is looked for.
beforeAll(async () => void (await launch(checkout, ['build'], {}).exit), 120_000);

let disk: Disk;
let server: Started | null = null;
afterEach(async () => {
  await server?.kill();
  server = null;
  disk.close();
});

const begin = async () => {
  server = await start(checkout, { DATA_DIR: disk.folder, RATE_LIMIT_USER: '1000000' });
  return server;
};
const readDemo = () => JSON.parse(readFileSync(join(disk.folder, 'demo.json'), 'utf8')) as DemoFile;

/** Null where there was no response. */
async function ask(method: string, path: string, body?: unknown) {
  const { users } = readDemo();
  const headers = { authorization: `Bearer ${users.owner.api_key}`, 'content-type': 'application/json' };
  const init = { method, headers, body: body === undefined ? null : JSON.stringify(body), signal: AbortSignal.timeout(30_000) };
  try {
    const response = await fetch(`${server?.baseUrl}${path}`, init);
    return { status: response.status, retryAfter: response.headers.get('retry-after'), json: JSON.parse(await response.text()) };
  } catch {
    return null;
  }
}

/** Text that does not become shorter in the database. */
function noise(length: number, seed: number): string {
  let state = seed + 1;
  let text = '';
  while (text.length < length) {
    state = (state * 48_271) % 2_147_483_647;
    text += state.toString(36);
  }
  return text.slice(0, length);
}

const path = (rest: string, { organization_id, project_id } = readDemo()) =>
  `/v1/organizations/${organization_id}/projects/${project_id}${rest}`;

interface Written {
  readonly id: string;
  readonly name: string;
}

/** Dashboards, until one is refused, or nothing answers any more. */
async function write(written: Written[], last: { status: number; retryAfter: string | null; json: unknown } | null = null) {
  for (let count = 0; count < 400; count += 1) {
    const name = `kept ${written.length}`;
    last = await ask('POST', path('/monitoring/dashboards'), { name, widgets: [{ text: noise(200_000, written.length) }] });
    if (last?.status !== 201) return last;
    written.push({ id: (last.json as { id: string }).id, name });
  }
  throw new Error('the disk is not full');
}

/** It serves what is read and ends when it is told to; or it has ended by itself, and said why. */
async function expectWell(isThere: boolean): Promise<void> {
  if (isThere) {
    const responses = await Promise.all([ask('GET', '/health/live'), ask('GET', path('/monitoring/dashboards?page_size=1'))]);
    expect(responses.map((response) => response?.status)).toEqual([200, 200]);
    server?.process.kill('SIGTERM');
  }
  const code = await server?.exit.then((exit) => exit.code);
  const lines = (server?.printed.err ?? '').split('\n').filter((line) => line !== '');
  console.log(code === 0 ? 'It went on.' : `It ended with ${code}: ${lines.join(' ')}`);
  if (code === 0) return;
  expect([code, lines]).toEqual([
    1,
    [expect.stringMatching(/^The embedded database has ended, as \S+ has no space left: make some, and start again\./)],
  ]);
}

describe('an embedded database whose disk is full', () => {
  test.each([
    ['to the last block', 0],
    ['except for what its tables grow by, so that its log cannot go on', 12 * MIB],
  ])(
    '%s: writes are refused, reads served or the process exits with a message, and no acknowledged write is lost',
    { timeout: 300_000 },
    async (_, left) => {
      disk = openDisk(160 * MIB);
      await begin();
      const written: Written[] = [];
      for (let count = 0; count < 3; count += 1) {
        const response = await ask('POST', path('/monitoring/dashboards'), { name: `kept ${count}` });
        written.push({ id: response?.json.id, name: `kept ${count}` });
      }
      disk.fill(left);
      // Again and again: neither is it worn out by what it refuses.
      let refused = await write(written);
      for (let count = 0; count < 20 && refused; count += 1) {
        const { status, retryAfter, json } = refused;
        expect([status, retryAfter, json]).toEqual([503, '1', expect.objectContaining({ code: 'service_unavailable' })]);
        refused = await write(written);
      }
      await expectWell(refused !== null);

      // A start on the full disk says so, and ends.
      disk.fill(0);
      const again = launch(checkout, ['start'], { DATA_DIR: disk.folder, HOST: '127.0.0.1', PORT: '0', LOG_LEVEL: 'error' });
      const { code } = await again.exit;
      expect([code, again.printed.err.trimEnd().split('\n').length]).toEqual([1, 1]);
      expect(again.printed.err).toContain(disk.folder);
      expect(again.printed.err).toContain('there is no space left');

      disk.free();
      await begin();
      for (const { id, name } of written) {
        const response = await ask('GET', path(`/monitoring/dashboards/${id}`));
        expect([response?.status, response?.json.name]).toEqual([200, name]);
      }
      expect((await ask('POST', path('/monitoring/dashboards'), { name: 'after' }))?.status).toBe(201);
      server?.process.kill('SIGTERM');
      expect((await server?.exit)?.code).toBe(0);
    },
  );

  test('is not created: the start fails with a message, and succeeds once there is space', { timeout: 300_000 }, async () => {
    disk = openDisk(120 * MIB);
    disk.fill(2 * MIB);
    const { exit, printed } = launch(checkout, ['start'], { DATA_DIR: disk.folder, HOST: '127.0.0.1', PORT: '0', LOG_LEVEL: 'error' });
    expect((await exit).code).toBe(1);
    expect(printed.err).toMatch(/^\S+ cannot be used \(ENOSPC\): there is no space left: make some, and start again\.\n$/);
    disk.free();
    await begin();
    server?.process.kill('SIGTERM');
    expect((await server?.exit)?.code).toBe(0);
  });

  test('a read-only folder is named in a message', async () => {
    disk = openDisk(10 * MIB);
    disk.protect();
    for (const entry of [['start'], ['portico', 'migrate']]) {
      const { exit, printed } = launch(checkout, entry, { DATA_DIR: disk.folder, HOST: '127.0.0.1', PORT: '0', LOG_LEVEL: 'error' });
      expect((await exit).code).toBe(1);
      expect(printed.err).toBe(
        `${disk.folder} cannot be used (EROFS): the file system is read-only: make it writable, or choose another DATA_DIR.\n`,
      );
    }
  });
});

describe('a log whose disk is full', () => {
  const readLines = () => readFileSync(join(disk.folder, 'log'), 'utf8').trimEnd().split('\n');

  test('does not stop the server, which writes the lines once there is space, and ends on a signal', async () => {
    disk = openDisk(MIB);
    const log = openSync(join(disk.folder, 'log'), 'a');
    disk.fill(0);
    const dataDir = mkdtempSync(join(tmpdir(), 'portico-log-'));
    const port = await findLowPort();
    const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', 'dist/current/main.js'], {
      cwd: checkout,
      env: { DATA_DIR: dataDir, HOST: '127.0.0.1', PORT: String(port) },
      stdio: ['ignore', log, 'inherit'],
    });
    const exit = once(child, 'exit');
    const request = (name: string) =>
      fetch(`http://127.0.0.1:${port}/v1/${name}`, { signal: AbortSignal.timeout(5_000) }).then(({ status }) => status);
    try {
      await expect.poll(() => request('first').catch(() => null), { timeout: 60_000 }).toBe(401);
      expect([await request('second'), await request('third')]).toEqual([401, 401]);
      disk.free();
      expect(await request('fourth')).toBe(401);
      child.kill('SIGTERM');
      expect(await exit).toEqual([0, null]);
      const lines = readLines().map((line) => JSON.parse(line) as { msg: string });
      expect(lines.map(({ msg }) => msg)).toEqual([...Array(4).fill('request'), 'stopping']);
    } finally {
      child.kill('SIGKILL');
      closeSync(log);
      rmSync(dataDir, { recursive: true, force: true });
    }
  });

  test('keeps at most 8 MiB of lines in memory, and writes whole ones', async () => {
    disk = openDisk(20 * MIB);
    const file = openSync(join(disk.folder, 'log'), 'a');
    disk.fill(0);
    const log = createLogger('info', openOutput(file));
    for (let count = 0; count < 2_000; count += 1) log.info({ count }, 'x'.repeat(10_000));
    disk.free();
    const readAfter = () => {
      log.info('after');
      return readLines().at(-1);
    };
    await expect.poll(readAfter).toMatch(/"msg":"after"}$/);
    const counts = readLines().flatMap((line) => JSON.parse(line).count ?? []);
    expect(counts.length).toBeGreaterThan(800);
    expect(counts).toEqual(counts.map((_, index) => index));
    expect(counts.length * 10_000).toBeLessThan(8 * MIB);
    closeSync(file);
  });
});
