import { appendFileSync, write } from 'node:fs';
import pino, { type DestinationStream, type Logger } from 'pino';

export type { Logger };

const MAX_UNWRITTEN_BYTES = 8 * 2 ** 20;

/**
 * Writes lines to a file in the background, and what is left when the process exits. Where the file takes nothing, as its disk
 * is full or nobody reads the pipe, lines wait for the next one, and those beyond the limit are lost. Pino's own destination
 * would throw on a full disk, and wait for it at the exit.
 */
export function openOutput(fd: number): DestinationStream {
  const lines: string[] = [];
  let chunk = Buffer.alloc(0);
  let unwrittenBytes = 0;
  let isWriting = false;
  const writeNext = () => {
    if (chunk.length === 0) chunk = takeLines();
    isWriting = chunk.length > 0;
    if (isWriting) write(fd, chunk, settle);
  };
  const takeLines = () => Buffer.from(lines.splice(0).join(''));
  const settle = (failure: Error | null, written: number) => {
    chunk = chunk.subarray(written);
    unwrittenBytes -= written;
    if (failure) isWriting = false;
    else writeNext();
  };
  process.on('exit', () => {
    try {
      appendFileSync(fd, isWriting ? takeLines() : Buffer.concat([chunk, takeLines()]));
    } catch {
      // These lines are lost.
    }
  });
  return {
    write(line) {
      const bytes = Buffer.byteLength(line);
      if (unwrittenBytes + bytes <= MAX_UNWRITTEN_BYTES) {
        unwrittenBytes += bytes;
        lines.push(line);
      }
      if (!isWriting) writeNext();
    },
  };
}

const standardOutput = openOutput(1);

/**
 * A logger of JSON lines on standard output. Credentials are redacted by name, up to two levels deep, in case a request is
 * logged; of an error only what says what has happened is logged, as drivers attach commands and rows to theirs.
 */
export function createLogger(level: string, destination: DestinationStream = standardOutput): Logger {
  const secrets = ['authorization', 'cookie', 'token', 'ticket', 'apiKey', 'secret', 'password'];
  return pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      serializers: { err: describeError },
      formatters: { level: (label) => ({ level: label }) },
      redact: { paths: secrets.flatMap((name) => [name, `*.${name}`, `*.*.${name}`]), censor: '[redacted]' },
    },
    destination,
  );
}

function describeError(failure: unknown): unknown {
  if (!(failure instanceof Error)) return failure;
  const { type, message, stack, code } = pino.stdSerializers.err(failure);
  const errors = failure instanceof AggregateError ? failure.errors.map(describeError) : undefined;
  return { type, message, stack, ...(code !== undefined && { code }), ...(errors && { errors }) };
}
