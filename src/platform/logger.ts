import pino, { type DestinationStream, type Logger } from 'pino';

export type { Logger };

/** A logger of JSON lines on standard output. Credentials are redacted by name, up to two levels deep, in case a request is logged. */
export function createLogger(level: string, destination: DestinationStream = pino.destination(1)): Logger {
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
