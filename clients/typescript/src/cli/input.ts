import { readFile } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import { InvalidArgumentError } from 'commander';
import { CommandFailure } from './failure.ts';
import { decode, readAll } from './secret.ts';

/** More than the server accepts. */
const MAX_BYTES = 2 * 1024 * 1024;

/** The JSON text that `--data` refers to: the text itself, `@` and the name of a file, or `-` for standard input. */
export async function readData(argument: string): Promise<string> {
  const text =
    argument === '-' ? await readAll(process.stdin, MAX_BYTES) : argument.startsWith('@') ? await readText(argument.slice(1)) : argument;
  parseJson(text, argument === '-' ? 'Standard input' : argument.startsWith('@') ? argument.slice(1) : '--data');
  return text;
}

export async function readText(path: string): Promise<string> {
  const bytes = await readFile(path).catch((failure: NodeJS.ErrnoException) => {
    throw new CommandFailure(`${path} cannot be read (${failure.code}).`);
  });
  return decode(bytes, path);
}

export function parseJson(text: string, name: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new CommandFailure(`${name} is not JSON.`, 2);
  }
}

/** Asks a question on the terminal; whatever is not yes is no, also the end of the input. */
export function confirm(question: string): Promise<boolean> {
  process.stderr.write(`${question} [y/N] `);
  // The terminal itself echoes and edits the line.
  const lines = createInterface({ input: process.stdin, terminal: false });
  return new Promise((resolve) => {
    lines.once('line', (line) => {
      resolve(/^\s*y(es)?\s*$/i.test(line));
      lines.close();
    });
    lines.once('close', () => resolve(false));
  });
}

/** A parser for an integer option with a minimum. */
export const readNumber =
  (least: 0 | 1) =>
  (text: string): number => {
    const number = Number(text);
    if (!/^\d+$/.test(text) || number < least || !Number.isSafeInteger(number))
      throw new InvalidArgumentError(`A number from ${least} on.`);
    return number;
  };
