import { createInterface } from 'node:readline';
import { Writable } from 'node:stream';
import { isCredential } from '../credential.ts';
import { CommandFailure } from './failure.ts';

/** Longer than any key or token. */
const MAX_BYTES = 64 * 1024;

/** Reads a credential from the terminal, without echo, or from a pipe. */
export async function readSecret(prompt: string): Promise<string> {
  const text = process.stdin.isTTY ? await askUnseen(prompt) : await readAll(process.stdin, MAX_BYTES);
  return checkCredential(text.trim());
}

/** Returns the text; throws if it is not a credential. */
export function checkCredential(text: string): string {
  if (!isCredential(text)) throw new CommandFailure('That is neither a key nor a token.');
  return text;
}

/** Reads a whole stream; throws if it exceeds the limit. */
export async function readAll(stream: AsyncIterable<Buffer | string>, maxBytes: number): Promise<string> {
  const parts: Buffer[] = [];
  let size = 0;
  for await (const part of stream) {
    const bytes = Buffer.from(part as string);
    size += bytes.length;
    if (size > maxBytes) throw new CommandFailure(`Standard input holds more than ${maxBytes} bytes.`);
    parts.push(bytes);
  }
  return decode(Buffer.concat(parts), 'Standard input');
}

/** Throws for bytes that are not UTF-8: with replacements in their place, a text would be stored that nobody has written. */
export function decode(bytes: Uint8Array, name: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new CommandFailure(`${name} is not UTF-8.`, 2);
  }
}

function askUnseen(prompt: string): Promise<string> {
  // Readline echoes the input to this stream, which discards it.
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() });
  const lines = createInterface({ input: process.stdin, output: nowhere, terminal: true, historySize: 0 });
  // The prompt comes after readline has turned the terminal's own echo off.
  process.stderr.write(prompt);
  return new Promise((resolve, reject) => {
    const finish = (work: () => void) => {
      process.stderr.write('\n');
      work();
      lines.close();
    };
    lines.once('line', (line) => finish(() => resolve(line)));
    lines.once('SIGINT', () => finish(() => reject(new CommandFailure('Nothing was kept.'))));
    lines.once('close', () => reject(new CommandFailure('Nothing was kept.')));
  });
}
