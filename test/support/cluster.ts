import { execFile } from 'node:child_process';
import { chownSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { fillDemo } from './database.ts';
import { findLowPort } from './ports.ts';
import { databaseUrl } from './sql.ts';

/** A PostgreSQL server owned by the test, with a migrated database that holds the demo. */
export interface Cluster {
  readonly host: string;
  readonly port: number;
  /** The URL of the demo database. */
  readonly url: string;
  start(): Promise<void>;
  /** `fast` aborts running transactions; `immediate` is a crash, from which the next start recovers. */
  stop(mode?: 'fast' | 'immediate'): Promise<void>;
  /** Suspends the postmaster and all backends: connections stay open, the kernel accepts new ones, and nothing is answered. */
  freeze(): void;
  thaw(): void;
  close(): Promise<void>;
}

const execute = promisify(execFile);

export async function openCluster(): Promise<Cluster> {
  const folder = mkdtempSync(join(tmpdir(), 'portico-cluster-'));
  const data = join(folder, 'data');
  const host = '127.0.0.1';
  const port = await findLowPort();
  const run = await asPostgres(folder);
  await run('initdb', ['-D', data, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--locale=C.UTF-8', '--no-sync']);
  const settings = {
    port,
    listen_addresses: `'${host}'`,
    unix_socket_directories: "''",
    // Without fsync a crash of the machine loses data, but a crash of PostgreSQL does not.
    fsync: 'off',
    max_connections: 200,
    shared_buffers: '64MB',
  };
  const lines = Object.entries(settings).map(([name, value]) => `${name} = ${value}\n`);
  writeFileSync(join(data, 'postgresql.conf'), lines.join(''), { flag: 'a' });
  const start = async () => void (await run('pg_ctl', ['-D', data, '-w', '-t', '60', '-l', join(folder, 'log'), 'start']));
  const stop = async (mode = 'fast') => void (await run('pg_ctl', ['-D', data, '-w', '-m', mode, 'stop']));
  const postmaster = () => Number(readFileSync(join(data, 'postmaster.pid'), 'utf8').split('\n')[0]);
  let frozen: number[] = [];
  const thaw = () => {
    for (const pid of frozen) signal(pid, 'SIGCONT');
    frozen = [];
  };
  const close = async () => {
    thaw();
    if (existsSync(join(data, 'postmaster.pid'))) await stop('immediate');
    rmSync(folder, { recursive: true, force: true });
  };
  const url = databaseUrl(`postgresql://postgres@${host}:${port}/postgres`, 'portico');
  try {
    await start();
    await run('createdb', ['-h', host, '-p', String(port), '-U', 'postgres', 'portico']);
    await fillDemo(url);
  } catch (failure) {
    await close();
    throw failure;
  }
  return {
    host,
    port,
    url,
    start,
    stop,
    freeze() {
      const parent = postmaster();
      // The postmaster is stopped first, so that it starts no more backends.
      signal(parent, 'SIGSTOP');
      frozen = [parent, ...childrenOf(parent)];
      for (const pid of frozen) signal(pid, 'SIGSTOP');
    },
    thaw,
    close,
  };
}

/** Returns a function that runs PostgreSQL's programs; as root it runs them as `postgres`, because PostgreSQL refuses to run as root. */
export async function asPostgres(folder: string) {
  const versions = '/usr/lib/postgresql';
  const [newest] = existsSync(versions) ? readdirSync(versions).sort((a, b) => Number(b) - Number(a)) : [];
  const pathOf = (program: string) => (newest ? join(versions, newest, 'bin', program) : program);
  if (process.getuid?.() !== 0) return (program: string, args: string[]) => execute(pathOf(program), args, { cwd: folder });
  const { stdout } = await execute('id', ['-u', 'postgres']);
  chownSync(folder, Number(stdout), -1);
  return (program: string, args: string[]) => execute('runuser', ['-u', 'postgres', '--', pathOf(program), ...args], { cwd: folder });
}

function childrenOf(parent: number): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => parentOf(pid) === parent);
}

/** Reads the parent's pid behind the last parenthesis, because the program's name stands in parentheses and may contain any character. */
function parentOf(pid: number): number | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]);
  } catch {
    return null;
  }
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch (failure) {
    if ((failure as NodeJS.ErrnoException).code !== 'ESRCH') throw failure;
  }
}
