import { Redis as RedisClient, ReplyError } from 'ioredis';
import { RateLimiterRedis } from 'rate-limiter-flexible';
import type { Lifecycle } from '../kernel/lifecycle.ts';
import { withTimeout } from '../kernel/timeout.ts';
import { Breaker } from './breaker.ts';
import type { Logger } from './logger.ts';

/** The timeout of a command: using a fallback is better than a longer wait. */
const COMMAND_TIMEOUT_MS = 250;
const PROBE_INTERVAL_MS = 250;
const RECONNECT_MS = 250;

/** Access to Redis. Every use of it has a fallback for outages. */
export interface Redis {
  readonly isAway: boolean;
  /** The prefix of every key and channel, so that several installations can share a server. */
  readonly prefix: string;
  readonly commands: RedisClient;
  /** A connection of its own for subscriptions: with a Redis before version 6 a subscribed connection accepts no other commands. */
  readonly subscriber: RedisClient;
  /** The channel of the wake-ups, which `subscriber` is subscribed to. */
  readonly channel: string;
  /** Runs a command. Rejects with an Error where no reply arrives in time, and at once while the breaker is open. */
  run<Result>(command: () => Promise<Result>): Promise<Result>;
}

/** Whether the server has become a replica. */
function isReadOnly(reply: Error): boolean {
  return reply.message.startsWith('READONLY');
}

/** The options of both connections. */
const connectionOptions = {
  enableOfflineQueue: false,
  maxRetriesPerRequest: 0,
  // An increment that may have been executed must not be repeated.
  autoResendUnfulfilledCommands: false,
  retryStrategy: () => RECONNECT_MS,
  connectTimeout: 2_000,
  // A connection that leaves a command unanswered for this long is considered dead, and replaced.
  socketTimeout: 5_000,
  keepAlive: 10_000,
  // Its name may lead to the new primary by now, so connect again.
  reconnectOnError: isReadOnly,
  connectionName: 'portico',
};

/** Connects in the background, so that a start does not wait for Redis. */
export function openRedis({ url, prefix }: { url: string; prefix: string }, lifecycle: Lifecycle, log: Logger): Redis {
  const commands = new RedisClient(url, connectionOptions);
  // The driver's own resubscription drops an error, such as a missing right to the channel: `ready` subscribes below instead.
  const subscriber = new RedisClient(url, { ...connectionOptions, autoResubscribe: false });
  const channel = `${prefix}:wakeups`;
  const causeOf = trackConnectionError(commands);
  const probe = createProbe({ prefix, commands, subscriber, channel });
  const breaker = new Breaker({
    name: 'redis',
    probe: () => probe().catch((failure) => Promise.reject(causeOf(failure))),
    deadlineMs: COMMAND_TIMEOUT_MS,
    intervalMs: PROBE_INTERVAL_MS,
    log,
  });
  /** The first attempt to connect; null when it has ended. Commands of the start wait for it, within their own timeout. */
  let connecting: Promise<void> | null = whenFirstAttemptEnds(commands);
  void connecting.then(() => (connecting = null));
  commands.on('close', () => breaker.startProbing());
  commands.on('ready', () => breaker.startProbing());
  subscriber.on('ready', () => void subscriber.subscribe(channel).catch(() => breaker.startProbing()));
  // The breaker reports the outage: a warning for every attempt to reconnect would flood the log.
  for (const connection of [commands, subscriber]) connection.on('error', (failure) => log.debug({ err: failure }, 'redis'));
  lifecycle.onClose(() => {
    breaker.stop();
    for (const connection of [commands, subscriber]) connection.disconnect();
  });
  return {
    get isAway() {
      return breaker.isOpen;
    },
    prefix,
    commands,
    subscriber,
    channel,
    async run(command) {
      if (breaker.isOpen) throw new Error('redis is away');
      try {
        return await withTimeout(connecting ? connecting.then(command) : command(), COMMAND_TIMEOUT_MS);
      } catch (failure) {
        // The rate limiter rejects with an object that is not an Error when the budget is spent.
        if (failure instanceof Error) breaker.startProbing();
        throw failure;
      }
    },
  };
}

/**
 * Selects the database that the URL names, because the driver would silently use database 0 if that does not exist. Then sends
 * every kind of command that Portico uses: a server that is read-only, out of memory or disk, or that denies the user a right would
 * still answer a mere PING.
 */
function createProbe({ prefix, commands, subscriber, channel }: Omit<Redis, 'isAway' | 'run'>): () => Promise<void> {
  /** A rate limiter as the budgets use it. */
  const counter = new RateLimiterRedis({ points: 2 ** 31, duration: 60, keyPrefix: prefix, storeClient: commands });
  return async () => {
    await commands.select(commands.options.db ?? 0);
    await Promise.all([
      ...QUARTERS.map((quarter) => commands.set(`${prefix}:probe${quarter}`, 0, 'EX', 60)),
      counter.consume('probe'),
      commands.publish(channel, ''),
      subscriber.status === 'ready' && subscriber.subscribe(channel),
    ]);
  };
}

/**
 * Digits that put a key into each quarter of the slots of a Redis Cluster, whatever is before them: the last two bits of a key's last byte
 * decide the first two of its slot, as CRC-16 hashes it. A node
 * answers for the keys in its own slots alone, so one key would find out by chance whether there are other nodes.
 */
const QUARTERS = [0, 1, 2, 3];

/** Returns a function that says why a probe has failed, which its own error does not: why there is no connection. */
function trackConnectionError(commands: RedisClient): (failure: unknown) => unknown {
  let connectionError: Error | null = null;
  commands.on('error', (failure) => (connectionError = failure));
  commands.on('ready', () => (connectionError = null));
  // A connection that the server has closed has no error until the next one fails; a reply that closes it is its error.
  return (failure) => {
    const reply = failure instanceof ReplyError ? (failure as Error) : null;
    if (reply && isReadOnly(reply)) connectionError = reply;
    return connectionError ?? (reply ? explain(reply) : new Error('the connection was closed'));
  };
}

/** Explains the replies of a node that has not all keys. */
function explain(reply: Error): Error {
  if (!/^(MOVED|ASK) /.test(reply.message)) return reply;
  return new Error('REDIS_URL leads to one node of a Redis Cluster, which is not supported', { cause: reply });
}

/** Resolves when the first attempt to connect has succeeded or failed. */
function whenFirstAttemptEnds(commands: RedisClient): Promise<void> {
  return new Promise((resolve) => {
    for (const event of ['ready', 'close'] as const) commands.once(event, resolve);
  });
}
