import type { ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { DemoFile } from '../../demo/file.ts';
import { spawnScript } from './launch.ts';
import { findLowPort } from './ports.ts';
import { openProxy, type TcpProxy } from './proxy.ts';

/** One server process of a fleet; it keeps its port, its proxies and its log across restarts. */
export interface Replica {
  readonly name: string;
  readonly port: number;
  readonly baseUrl: string;
  /** The proxy between this replica and PostgreSQL. */
  readonly database: TcpProxy;
  /** The proxy between this replica and Redis; null without Redis. */
  readonly redis: TcpProxy | null;
  /** Every line of its standard output and standard error. */
  readonly lines: string[];
  readonly isRunning: boolean;
  readonly pid: number | undefined;
  /** Resolves once it is ready. */
  start(): Promise<void>;
  /** Kills it with SIGKILL. */
  kill(): Promise<void>;
  /** Ends it with SIGTERM; resolves with its exit code. */
  stop(): Promise<number | null>;
  /** Whether /health/ready answers 200. */
  isReady(): Promise<boolean>;
  /** Resident memory, in MiB. */
  memory(): number;
}

export interface Fleet {
  readonly replicas: readonly Replica[];
  readonly demo: DemoFile;
  /** The prefix of the keys and channels of these replicas. */
  readonly redisPrefix: string;
  /** `/v1/…` of the demo's main project. */
  readonly projectPath: string;
  close(): Promise<void>;
}

interface FleetOptions {
  readonly count: number;
  /** A database that holds the demo. */
  readonly databaseUrl: string;
  readonly redisUrl: string | null;
  readonly env?: Readonly<Record<string, string>>;
}

const root = fileURLToPath(new URL('../..', import.meta.url));

/** Opens replicas of one installation. They share the data folder, the database and Redis, each through its own proxies. */
export async function openFleet({ count, databaseUrl, redisUrl, env = {} }: FleetOptions): Promise<Fleet> {
  const dataDir = mkdtempSync(join(tmpdir(), 'portico-test-'));
  const redisPrefix = `portico-test-${randomBytes(6).toString('hex')}`;
  const replicas: Replica[] = [];
  for (let index = 0; index < count; index += 1) {
    const database = await proxyTo(databaseUrl, 5432);
    const redis = redisUrl === null ? null : await proxyTo(redisUrl, 6379);
    const replica = await openReplica(`replica ${index + 1}`, database.proxy, redis?.proxy ?? null, {
      DATA_DIR: dataDir,
      LOG_LEVEL: 'info',
      DRAIN_SECONDS: '1',
      RATE_LIMIT_USER: '100000000',
      RATE_LIMIT_ANONYMOUS: '100000000',
      MAX_CONNECTIONS_PER_ADDRESS: '20000',
      DATABASE_URL: database.url,
      ...(redis && { REDIS_URL: redis.url, REDIS_PREFIX: redisPrefix }),
      ...env,
    });
    replicas.push(replica);
  }
  const close = async () => {
    await Promise.all(replicas.map((replica) => replica.kill()));
    await Promise.all(replicas.flatMap(({ database, redis }) => [database.close(), redis?.close()]));
    rmSync(dataDir, { recursive: true, force: true });
  };
  try {
    // The first replica compiles stale files and creates the demo's keys, which the others then find.
    await replicas[0]?.start();
    await Promise.all(replicas.slice(1).map((replica) => replica.start()));
  } catch (failure) {
    await close();
    throw failure;
  }
  const demo = JSON.parse(readFileSync(join(dataDir, 'demo.json'), 'utf8')) as DemoFile;
  return { replicas, demo, redisPrefix, projectPath: `/v1/organizations/${demo.organization_id}/projects/${demo.project_id}`, close };
}

async function proxyTo(target: string, usualPort: number): Promise<{ proxy: TcpProxy; url: string }> {
  const url = new URL(target);
  const proxy = await openProxy({ host: url.hostname, port: Number(url.port || usualPort) });
  url.hostname = '127.0.0.1';
  url.port = String(proxy.port);
  return { proxy, url: url.href };
}

const READY_WITHIN_MS = 150_000;

async function openReplica(name: string, database: TcpProxy, redis: TcpProxy | null, env: Record<string, string>): Promise<Replica> {
  const port = await findLowPort();
  const baseUrl = `http://127.0.0.1:${port}`;
  const lines: string[] = [];
  const { PATH = '', HOME = '' } = process.env;
  let running: { readonly child: ChildProcess; readonly exit: Promise<number | null> } | null = null;

  const isReady = async () => {
    const response = await fetch(`${baseUrl}/health/ready`, { signal: AbortSignal.timeout(2_000) }).catch(() => null);
    await response?.arrayBuffer();
    return response?.status === 200;
  };
  const end = async (signal: NodeJS.Signals) => {
    const ending = running;
    if (!ending) return null;
    ending.child.kill(signal);
    const code = await ending.exit;
    if (running === ending) running = null;
    return code;
  };
  return {
    name,
    port,
    baseUrl,
    database,
    redis,
    lines,
    get isRunning() {
      return running !== null;
    },
    get pid() {
      return running?.child.pid;
    },
    async start() {
      if (running) return;
      const child = spawnScript(root, ['start'], { PATH, HOME, HOST: '127.0.0.1', PORT: String(port), ...env });
      let isGone = false;
      const exit = new Promise<number | null>((resolve) => {
        child.once('close', (code) => {
          isGone = true;
          resolve(code);
        });
      });
      running = { child, exit };
      for (const output of [child.stdout, child.stderr]) keepLines(output, lines);
      for (const deadline = Date.now() + READY_WITHIN_MS; !(await isReady()); await sleep(50)) {
        if (!isGone && Date.now() < deadline) continue;
        await end('SIGKILL');
        throw new Error(`${name} did not become ready: ${lines.slice(-20).join('\n')}`);
      }
    },
    kill: async () => void (await end('SIGKILL')),
    stop: () => end('SIGTERM'),
    isReady,
    memory: () => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${running?.child.pid}/status`, 'utf8'))?.[1]) / 1024,
  };
}

/** The internal errors that the replicas logged; each was answered with 500. */
export function findInternalErrors({ replicas }: Fleet): string[] {
  return replicas.flatMap(({ name, lines }) =>
    lines.filter((line) => line.includes('"internal error"')).map((line) => `${name}: ${line.slice(0, 1_500)}`),
  );
}

function keepLines(output: NodeJS.ReadableStream | null, lines: string[]): void {
  let rest = '';
  output?.setEncoding('utf8').on('data', (text: string) => {
    const parts = (rest + text).split('\n');
    rest = parts.pop() ?? '';
    lines.push(...parts);
  });
}
