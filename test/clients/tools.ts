import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const folder = fileURLToPath(new URL('.', import.meta.url));
export const checkout = fileURLToPath(new URL('../..', import.meta.url));

export interface Outcome {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

/** The script of the command of a package in this folder. */
export function commandOf(name: string): string {
  const path = join(folder, 'node_modules', name, 'package.json');
  const { bin } = JSON.parse(readFileSync(path, 'utf8')) as { bin: string | Record<string, string> };
  return join(dirname(path), typeof bin === 'string' ? bin : (Object.values(bin)[0] ?? ''));
}

/** Runs a program to its end, whatever that is. */
export function run(program: string, args: readonly string[], env: Record<string, string> = {}, cwd = folder): Promise<Outcome> {
  return new Promise((resolve) => {
    execFile(program, args, { cwd, env: { ...process.env, ...env }, maxBuffer: 2 ** 26 }, (failure, out, err) => {
      resolve({ code: failure ? (typeof failure.code === 'number' ? failure.code : 1) : 0, out, err });
    });
  });
}

export function runTool(name: string, args: readonly string[], env?: Record<string, string>): Promise<Outcome> {
  return run(process.execPath, [commandOf(name), ...args], env);
}
