import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, expect, it } from 'vitest';
import { command } from '../support/compose.ts';
import { findLowPort } from '../support/ports.ts';

const folder = mkdtempSync(join(tmpdir(), 'portico-redis-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

it('the Redis of compose.yaml requires its password, which no list of processes shows', async () => {
  const port = await findLowPort();
  const password = 'b1946ac92492d2347c6235b4d2611184';
  // The script of compose.yaml, with the test's own folder and port.
  const script = (command('redis').split('- |')[1] ?? '')
    .replaceAll('$$', '$')
    .replaceAll('/run/redis/', `${folder}/`)
    .replace(' --save', ` --port ${port} --bind 127.0.0.1 --dir ${folder} --save`);
  const server = spawn('sh', ['-c', script], { env: { PATH: process.env.PATH, REDISCLI_AUTH: password }, stdio: 'ignore' });
  try {
    const ping = (auth: Record<string, string>) =>
      execFileSync('redis-cli', ['-p', String(port), 'ping'], {
        env: { PATH: process.env.PATH, ...auth },
        encoding: 'utf8',
        stdio: 'pipe',
      });
    const known = () => {
      try {
        return ping({ REDISCLI_AUTH: password }).trim();
      } catch {
        return '';
      }
    };
    for (let tries = 0; tries < 600 && known() !== 'PONG'; tries += 1) await sleep(100);
    expect(known()).toBe('PONG');
    expect(ping({})).toContain('NOAUTH');
    expect(readFileSync(`/proc/${server.pid}/cmdline`, 'utf8')).toContain('redis-server');
    expect(readFileSync(`/proc/${server.pid}/cmdline`, 'utf8')).not.toContain(password);
  } finally {
    const exited = new Promise((resolve) => server.once('exit', resolve));
    server.kill('SIGKILL');
    await exited;
  }
});
