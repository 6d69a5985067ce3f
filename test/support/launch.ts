import { type ChildProcess, type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../..', import.meta.url));

/**
 * Copies the files of the repository that a start needs: without anything compiled, as in a fresh clone, or with the build of
 * this checkout. The folder has a name with characters that shells, PATH and module names treat specially.
 */
export function copyCheckout({ isBuilt = false } = {}): string {
  const copy = mkdtempSync(join(tmpdir(), "portico's checkout: "));
  for (const name of [
    'package.json',
    'package-lock.json',
    'tsconfig.json',
    'openapi.json',
    'asyncapi.json',
    'rolldown.config.mjs',
    'scripts',
    'prisma',
    'src',
    'demo',
    'reference',
    'docs',
    'clients',
    'web',
    ...(isBuilt ? ['dist'] : []),
  ]) {
    const isLeftOut = (path: string) => /\/node_modules$/.test(path) || (!isBuilt && /\/(generated|dist)$/.test(path));
    const options = { recursive: true, preserveTimestamps: true, verbatimSymlinks: true } as const;
    cpSync(join(root, name), join(copy, name), { ...options, filter: (path) => !isLeftOut(path) });
  }
  symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'));
  return copy;
}

export interface Launched {
  readonly process: ChildProcess;
  /** The standard output and standard error so far. */
  readonly printed: { out: string; err: string };
  readonly exit: Promise<{ readonly code: number | null; readonly signal: NodeJS.Signals | null }>;
}

/**
 * Runs `npm run <script> -- <arguments>` without npm. The shell replaces itself with the last program of the script, which
 * therefore has the child's pid and receives its signals.
 */
export function spawnScript(
  checkout: string,
  [script = '', ...args]: readonly string[],
  env: NodeJS.ProcessEnv,
): ChildProcessWithoutNullStreams {
  const { scripts } = JSON.parse(readFileSync(join(checkout, 'package.json'), 'utf8')) as { scripts: Record<string, string> };
  return spawn('sh', ['-c', `${scripts[script]} "$@"`, script, ...args], { cwd: checkout, env });
}

/** Starts a script of package.json with its own environment. */
export function launch(checkout: string, script: readonly string[], env: NodeJS.ProcessEnv): Launched {
  const { PATH: path = '', HOME = '' } = process.env;
  // Without the programs of packages, which npx adds.
  const folders = path.split(delimiter).filter((folder) => !folder.includes('node_modules'));
  const child = spawnScript(checkout, script, { PATH: folders.join(delimiter), HOME, ...env });
  const printed = { out: '', err: '' };
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    printed.out += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    printed.err += text;
  });
  const exit = new Promise<{ code: number | null; signal: NodeJS.Signals | null }>((resolve) => {
    child.once('close', (code, signal) => resolve({ code, signal }));
  });
  return { process: child, printed, exit };
}

/** A server that has printed its address. */
export interface Started extends Launched {
  readonly baseUrl: string;
  /** Kills it as `kill -9` does. */
  kill(): Promise<void>;
}

/** A start that also builds takes some fifteen seconds on a quiet machine. */
const LISTENS_WITHIN_MS = 150_000;

/** Runs `npm start`. Rejects with the output if the server exits before it listens, or does not listen in time. */
export async function start(checkout: string, env: NodeJS.ProcessEnv, withinMs = LISTENS_WITHIN_MS): Promise<Started> {
  const launched = launch(checkout, ['start'], { HOST: '127.0.0.1', PORT: '0', LOG_LEVEL: 'error', ...env });
  const { process: child, printed, exit } = launched;
  const kill = async () => {
    child.kill('SIGKILL');
    await exit;
  };
  const baseUrl = await new Promise<string>((resolve, reject) => {
    const fail = (reason: string) => reject(new Error(`${reason}: ${printed.out}${printed.err}`));
    const deadline = setTimeout(() => {
      child.kill('SIGKILL');
      fail(`it did not listen within ${withinMs} ms`);
    }, withinMs);
    child.stdout?.on('data', () => {
      const address = /^Portico listens on (\S+)\n/m.exec(printed.out)?.[1];
      if (!address) return;
      clearTimeout(deadline);
      resolve(address);
    });
    exit.then(({ code }) => {
      clearTimeout(deadline);
      fail(`exit ${code}`);
    });
  });
  return { ...launched, baseUrl, kill };
}

/** Builds, then runs a script to its end and returns only the script's output. */
export async function buildAndRun(checkout: string, script: readonly string[], env: Record<string, string>) {
  await launch(checkout, ['build'], env).exit;
  return run(checkout, script, env);
}

/** Runs a script to its end; if nothing was built before, its output is also that of the build. */
export async function run(checkout: string, script: readonly string[], env: Record<string, string>) {
  const { printed, exit } = launch(checkout, script, env);
  const { code } = await exit;
  return { code, ...printed };
}
