import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { inject } from 'vitest';
import type { DemoFile } from '../../demo/file.ts';
import { copyTemplate } from './copies.ts';
import { start } from './launch.ts';
import { redisSettings } from './redis.ts';

export interface ServerProcess {
  readonly demo: DemoFile;
  readonly baseUrl: string;
  readonly databaseUrl: string | null;
  /** Resident memory, in MiB. */
  memory(): number;
  stop(signal?: NodeJS.Signals): Promise<number | null>;
}

/** Starts the server as operators do, in its own process, on a copy of the demo database. */
export async function startServer(env: Record<string, string> = {}): Promise<ServerProcess> {
  const dataDir = mkdtempSync(join(tmpdir(), 'portico-test-'));
  const origin = inject('origin');
  const databaseUrl = 'template' in origin ? await copyTemplate(origin) : null;
  const server = await start(fileURLToPath(new URL('../..', import.meta.url)), {
    ...process.env,
    PORT: '0',
    HOST: '127.0.0.1',
    DATA_DIR: dataDir,
    LOG_LEVEL: 'error',
    DRAIN_SECONDS: '0',
    ...(databaseUrl && { DATABASE_URL: databaseUrl, ...redisSettings() }),
    ...env,
  });
  const demo = JSON.parse(readFileSync(join(dataDir, 'demo.json'), 'utf8')) as DemoFile;
  return {
    demo,
    baseUrl: demo.base_url.replace('localhost', '127.0.0.1'),
    databaseUrl,
    memory: () => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${server.process.pid}/status`, 'utf8'))?.[1]) / 1024,
    async stop(signal = 'SIGTERM') {
      server.process.kill(signal);
      const { code } = await server.exit;
      rmSync(dataDir, { recursive: true, force: true });
      return code;
    },
  };
}
