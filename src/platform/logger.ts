import pino, { type DestinationStream, type Logger } from 'pino';

export type { Logger };

/**
 * A logger of JSON lines on standard output. Credentials are redacted by name, up to two levels deep, in case a request is
 * logged; of an error only what says what has happened is logged, as drivers attach commands and rows to theirs.
 */
export function createLogger(level: string, destination: DestinationStream = pino.destination(1)): Logger {
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
