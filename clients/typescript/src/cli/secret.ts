import { createInterface } from 'node:readline';
import { Writable } from 'node:stream';
import { isCredential } from '../credential.ts';
import { CommandFailure } from './failure.ts';

/** More than any key or token. */
const MAX_BYTES = 64 * 1024;

/** A credential from the terminal, where it is not shown, or from a pipe. */
export async function readSecret(prompt: string): Promise<string> {
  const text = process.stdin.isTTY ? await askUnseen(prompt) : await readAll(process.stdin, MAX_BYTES);
  return checkCredential(text.trim());
}

/** Throws for what is no credential. */
export function checkCredential(text: string): string {
  if (!isCredential(text)) throw new CommandFailure('That is no key and no token.');
  return text;
}

/** All of a stream, up to a limit. */
export async function readAll(stream: AsyncIterable<Buffer | string>, maxBytes: number): Promise<string> {
  const parts: Buffer[] = [];
  let size = 0;
  for await (const part of stream) {
    const bytes = Buffer.from(part as string);
    size += bytes.length;
    if (size > maxBytes) throw new CommandFailure(`Standard input holds more than ${maxBytes} bytes.`);
    parts.push(bytes);
  }
  return Buffer.concat(parts).toString('utf8');
}

function askUnseen(prompt: string): Promise<string> {
  // What is typed is echoed by readline, to nowhere.
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() });
  const lines = createInterface({ input: process.stdin, output: nowhere, terminal: true, historySize: 0 });
  // From here on nothing that is typed is seen.
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
