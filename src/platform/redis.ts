import { Redis as RedisClient } from 'ioredis';
import type { Lifecycle } from '../kernel/lifecycle.ts';
import { Breaker, withinTime } from './breaker.ts';
import type { Logger } from './logger.ts';

/** How long Redis may take to answer: the fallbacks are better than a longer wait. */
const COMMAND_TIMEOUT_MS = 250;
const PROBE_INTERVAL_MS = 250;
const RECONNECT_MS = 250;

/** Redis, on which nothing depends: every use has a fallback for outages. */
export interface Redis {
  readonly isAway: boolean;
  /** The prefix of every key and channel, so that several installations can share a server. */
  readonly prefix: string;
  readonly commands: RedisClient;
  /** The connection for subscriptions: it can do nothing else. */
  readonly subscriber: RedisClient;
  /** The answer to a command. Rejects with an Error where there is none in time; at once, while Redis is known to be away. */
  ask<Answer>(command: () => Promise<Answer>): Promise<Answer>;
}

/** Connects in the background: a Redis that is away keeps nothing from starting. */
export function openRedis({ url, prefix }: { url: string; prefix: string }, lifecycle: Lifecycle, log: Logger): Redis {
  const settings = {
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    // An increment that may have happened must not happen again.
    autoResendUnfulfilledCommands: false,
    retryStrategy: () => RECONNECT_MS,
    connectTimeout: 2_000,
    // A connection that is asked and says nothing is dead: another one may not be.
    socketTimeout: 5_000,
    keepAlive: 10_000,
    connectionName: 'portico',
  };
  const commands = new RedisClient(url, settings);
  const subscriber = new RedisClient(url, settings);
  /** Why there is no connection: a ping that finds none does not say. */
  let away: Error | null = null;
  const breaker = new Breaker({
    name: 'redis',
    ask: () => commands.ping().catch((failure) => Promise.reject(away ?? failure)),
    deadlineMs: COMMAND_TIMEOUT_MS,
    intervalMs: PROBE_INTERVAL_MS,
    log,
  });
  commands.on('close', () => breaker.suspect());
  commands.on('error', (failure) => (away = failure));
  commands.on('ready', () => (away = null));
  // The breaker reports the outage; a line for every attempt would drown it.
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
    async ask(command) {
      if (breaker.isOpen) throw new Error('redis is away');
      try {
        return await withinTime(command(), COMMAND_TIMEOUT_MS);
      } catch (failure) {
        // The rate limiter rejects with an object that is no Error when the budget is spent.
        if (failure instanceof Error) breaker.suspect();
        throw failure;
      }
    },
  };
}
