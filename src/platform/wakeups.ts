import { randomUUID } from 'node:crypto';
import { EventEmitter } from 'node:events';
import type { Redis } from './redis.ts';

/** A wake-up: its listeners read the database. One that is lost costs latency, never an event. */
export interface Wakeup {
  readonly projectId: string;
  /** The user whose read state has moved; without it, the project's log has. */
  readonly userId?: string;
}

export interface Wakeups {
  send(wakeup: Wakeup): void;
  /** Returns the function that ends the listening. */
  listen(listener: (wakeup: Wakeup) => void): () => void;
}

/** Wake-ups within one process. */
export function openLocalWakeups(): Wakeups {
  const emitter = new EventEmitter();
  return {
    send: (wakeup) => void emitter.emit('wakeup', wakeup),
    listen(listener) {
      emitter.on('wakeup', listener);
      return () => void emitter.off('wakeup', listener);
    },
  };
}

/** Wake-ups within this process at once, and in every other process through Redis. */
export function openSharedWakeups(redis: Redis): Wakeups {
  const local = openLocalWakeups();
  const channel = `${redis.prefix}:wakeups`;
  const ownName = randomUUID();
  redis.subscriber.on('message', (_channel, text) => {
    const [sender, projectId = '', userId] = text.split(' ');
    if (sender !== ownName) local.send(userId ? { projectId, userId } : { projectId });
  });
  // The subscription is renewed after every connect: the library resubscribes only to channels that it has subscribed to once.
  redis.subscriber.on('ready', () => void redis.subscriber.subscribe(channel).catch(() => {}));
  return {
    send(wakeup) {
      local.send(wakeup);
      const text = [ownName, wakeup.projectId, ...(wakeup.userId ? [wakeup.userId] : [])].join(' ');
      redis.ask(() => redis.commands.publish(channel, text)).catch(() => {});
    },
    listen: local.listen,
  };
}
