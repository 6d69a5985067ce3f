import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';

/** The path of the client package's command-line program. */
export const program = fileURLToPath(new URL('../../clients/typescript/bin/portico.mjs', import.meta.url));

export interface RunOptions {
  readonly env?: Readonly<Record<string, string>>;
  /** The whole standard input. */
  readonly input?: string;
  readonly cwd?: string;
}

/** A running program whose standard streams are pipes. */
export interface Running {
  readonly printed: { out: string; err: string };
  readonly exit: Promise<{ readonly code: number | null; readonly out: string; readonly err: string }>;
  type(text: string): void;
  /** Writes the text, if any, and closes standard input. */
  end(text?: string): void;
  /** Resolves once the text appears on standard output or standard error; rejects if the program exits without it. */
  until(text: string | RegExp): Promise<void>;
  kill(): void;
}

/** Starts a program with its own environment. */
export function startProgram(command: string, args: readonly string[], { env = {}, cwd }: RunOptions = {}): Running {
  const { PATH = '' } = process.env;
  const child = spawn(command, args, { cwd, env: { PATH, ...env } });
  const printed = { out: '', err: '' };
  const waiting = new Set<() => void>();
  for (const [stream, name] of [
    [child.stdout, 'out'],
    [child.stderr, 'err'],
  ] as const) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      printed[name] += text;
      for (const check of waiting) check();
    });
  }
  // The program may exit before it has read its input.
  child.stdin.on('error', () => {});
  const exit = new Promise<{ code: number | null; out: string; err: string }>((resolve) => {
    child.once('close', (code) => resolve({ code, ...printed }));
  });
  return {
    printed,
    exit,
    type: (text) => void child.stdin.write(text),
    end: (text = '') => void child.stdin.end(text),
    until: (text) =>
      new Promise((resolve, reject) => {
        const check = () => {
          const all = printed.out + printed.err;
          if (typeof text === 'string' ? !all.includes(text) : !text.test(all)) return;
          waiting.delete(check);
          resolve();
        };
        waiting.add(check);
        check();
        exit.then(({ code }) => reject(new Error(`ended with ${code} before ${text} came: ${printed.out}${printed.err}`)));
      }),
    kill: () => void child.kill(),
  };
}

/** Runs the command-line program until it exits. */
export function portico(args: readonly string[], { input = '', ...options }: RunOptions = {}): Running['exit'] {
  const running = startPortico(args, options);
  running.end(input);
  return running.exit;
}

export const startPortico = (args: readonly string[], options: Omit<RunOptions, 'input'> = {}): Running =>
  startProgram(process.execPath, [program, ...args], options);

/** Starts it on a pseudo-terminal; `out` is what the terminal shows. */
export const startOnTerminal = (args: readonly string[], options: Omit<RunOptions, 'input'> = {}): Running =>
  startProgram('script', ['--quiet', '--return', '--command', [process.execPath, program, ...args].join(' '), '/dev/null'], options);
