import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { findLowPort } from './ports.ts';

/** A Redis server owned by the test. It stores nothing on disk, so it is empty after a restart. */
export interface RedisServer {
  readonly host: string;
  readonly port: number;
  readonly url: string;
  start(): Promise<void>;
  /** Kills it with SIGKILL. */
  stop(): Promise<void>;
  /** Suspends it: connections stay open, and nothing is answered. */
  freeze(): void;
  thaw(): void;
  /** Deletes all keys. */
  flush(): Promise<void>;
  /** Runs a command with redis-cli and returns the lines of its output. */
  run(...command: string[]): Promise<string[]>;
  close(): Promise<void>;
}

const execute = promisify(execFile);

/** The environment variables that point a server to the tests' Redis with its own key prefix; empty without one. */
export function redisSettings(): Record<string, string> {
  const url = process.env.TEST_REDIS_URL;
  return url ? { REDIS_URL: url, REDIS_PREFIX: `portico-test-${randomBytes(6).toString('hex')}` } : {};
}

/** `settings` are options of redis-server besides those that every test has. */
export async function openRedis(settings: Readonly<Record<string, string>> = {}): Promise<RedisServer> {
  const folder = mkdtempSync(join(tmpdir(), 'portico-redis-'));
  const host = '127.0.0.1';
  const port = await findLowPort();
  let server: ChildProcess | null = null;

  const run = async (...command: string[]) => {
    const { stdout } = await execute('redis-cli', ['-h', host, '-p', String(port), ...command], { timeout: 5_000, maxBuffer: 2 ** 28 });
    return stdout.split('\n').filter((line) => line !== '');
  };
  const start = async () => {
    if (server) return;
    const options = { port, bind: host, dir: folder, save: '', appendonly: 'no', 'protected-mode': 'no', ...settings };
    const args = Object.entries(options).flatMap(([name, value]) => [`--${name}`, String(value)]);
    server = spawn('redis-server', args, { stdio: 'ignore' });
    for (let tries = 0; ; tries += 1) {
      const [reply] = await run('PING').catch(() => []);
      if (reply === 'PONG') return;
      if (tries === 1_200) throw new Error('redis-server does not answer');
      await sleep(50);
    }
  };
  const stop = async () => {
    const stopping = server;
    server = null;
    if (!stopping) return;
    const exited = new Promise((resolve) => stopping.once('exit', resolve));
    stopping.kill('SIGKILL');
    await exited;
  };
  await start();
  return {
    host,
    port,
    url: `redis://${host}:${port}`,
    run,
    start,
    stop,
    freeze: () => void server?.kill('SIGSTOP'),
    thaw: () => void server?.kill('SIGCONT'),
    flush: async () => void (await run('FLUSHALL')),
    async close() {
      await stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
