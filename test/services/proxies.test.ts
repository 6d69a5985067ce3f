import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { packageRoot } from '../../src/platform/packageroot.ts';
import { startApp, type TestApp } from '../support/app.ts';
import { findLowPort } from '../support/ports.ts';

/** The configurations of docs/operations.md for other proxies, in front of the app, by two of its names. */
const operations = readFileSync(new URL('docs/operations.md', packageRoot), 'utf8');

function readBlock(proxy: string): string {
  const [, block] = new RegExp(`\\*\\*${proxy}\\*\\* [\\s\\S]*?\n\`\`\`\\w*\n([\\s\\S]*?)\n\`\`\`\n`).exec(operations) ?? [];
  if (!block) throw new Error(`docs/operations.md has no configuration for ${proxy}`);
  const { port } = new URL(app.baseUrl);
  return block.replace('10.0.0.11:4000', `127.0.0.1:${port}`).replace('10.0.0.12:4000', `localhost:${port}`);
}

const modules = ['mpm_event', 'authz_core', 'proxy', 'proxy_http', 'proxy_balancer', 'proxy_hcheck', 'slotmem_shm', 'lbmethod_byrequests'];

const proxies = {
  Apache: (folder: string, port: number) => {
    const lines = [
      'ServerRoot /usr/lib/apache2',
      `DefaultRuntimeDir ${folder}`,
      `Mutex file:${folder} default`,
      `PidFile ${join(folder, 'pid')}`,
      `ErrorLog ${join(folder, 'error.log')}`,
      'User www-data',
      `Listen 127.0.0.1:${port}`,
      'ServerName api.example',
      ...[...modules, 'headers', 'alias'].map((name) => `LoadModule ${name}_module modules/mod_${name}.so`),
      readBlock('Apache'),
    ];
    writeFileSync(join(folder, 'apache.conf'), lines.join('\n'));
    return ['apache2', '-D', 'FOREGROUND', '-f', join(folder, 'apache.conf')] as const;
  },
  Caddy: (folder: string, port: number) => {
    const block = readBlock('Caddy').replace('api.example', `http://127.0.0.1:${port}`);
    writeFileSync(join(folder, 'Caddyfile'), `{\n  admin off\n}\n${block}\n`);
    return ['caddy', 'run', '--adapter', 'caddyfile', '--config', join(folder, 'Caddyfile')] as const;
  },
};

let app: TestApp;
beforeAll(async () => {
  app = await startApp({ TRUST_PROXY: 'loopback', RATE_LIMIT_ANONYMOUS: '1000' });
});
afterAll(() => app?.close());

describe.each(Object.entries(proxies))('%s, as docs/operations.md configures it', (name, configure) => {
  let folder: string;
  let proxy: ChildProcess;
  let port: number;

  /** The response to a path, which is sent as it is. */
  const ask = (path: string, headers: Record<string, string> = {}) =>
    new Promise<{ status: number; text: string }>((resolve, reject) => {
      const authorization = `Bearer ${app.demo.users.owner.api_key}`;
      const sent = request({ host: '127.0.0.1', port, path, headers: { authorization, ...headers }, agent: false }, (response) => {
        let text = '';
        response.setEncoding('utf8').on('data', (part: string) => (text += part));
        response.on('end', () => resolve({ status: response.statusCode ?? 0, text }));
      });
      sent.on('error', reject);
      sent.end();
    });
  const path = (query = '') => `${app.projectPath}/compute/instances?page_size=1${query}`;

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'portico-proxy-'));
    chmodSync(folder, 0o777);
    port = await findLowPort();
    const [program, ...args] = configure(folder, port);
    proxy = spawn(program, args, { stdio: 'ignore', env: { ...process.env, XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder } });
    await once(proxy, 'spawn');
    const isServing = () =>
      ask(path()).then(
        ({ status }) => status === 200,
        () => false,
      );
    await vi.waitUntil(isServing, { timeout: 60_000 });
  });
  afterAll(async () => {
    if (proxy?.pid && proxy.exitCode === null) {
      const exit = once(proxy, 'exit');
      proxy.kill('SIGTERM');
      await exit;
    }
    rmSync(folder, { recursive: true, force: true });
  });

  it('does not expose the metrics', async () => {
    for (const spelling of ['/metrics', '//metrics', '///metrics', '/metrics?x=1', '/%6detrics', '/x/../metrics', '/./metrics'])
      expect([spelling, await ask(spelling)]).toEqual([spelling, { status: 404, text: expect.not.stringContaining('portico_') }]);
  });

  it('links to itself, regardless of forwarding headers of the client', async () => {
    const { text } = await ask(path(), { 'x-forwarded-host': 'other.example', 'x-forwarded-proto': 'ftp' });
    const scheme = name === 'Apache' ? 'https' : 'http';
    expect(JSON.parse(text).next).toMatch(new RegExp(`^${scheme}://127\\.0\\.0\\.1:${port}/v1/`));
  });

  it('passes headers of 16 KiB, and paths unchanged', async () => {
    expect((await ask(path(), { 'x-long': 'a'.repeat(14_000) })).status).toBe(200);
    expect((await ask(path(`&x=${'a'.repeat(12_000)}`))).status).toBe(200);
    for (const spelling of ['/v1//organizations', '/v1/./organizations', '/%761/organizations', '/v1%2Forganizations'])
      expect([spelling, (await ask(spelling)).status]).toEqual([spelling, 404]);
  });
});
