import pino, { type DestinationStream, type Logger } from 'pino';

export type Log = Logger;

/** JSON lines on standard output. Credentials are cut out by name wherever they stand, in case somebody logs a request. */
export function createLog(level: string, destination: DestinationStream = pino.destination(1)): Log {
  const secrets = ['authorization', 'cookie', 'token', 'ticket', 'apiKey', 'secret', 'password'];
  return pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      redact: { paths: secrets.flatMap((name) => [name, `*.${name}`, `*.*.${name}`]), censor: '[redacted]' },
    },
    destination,
  );
}
