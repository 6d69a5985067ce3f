import { randomUUID } from 'node:crypto';
import { EventEmitter } from 'node:events';
import type { Redis } from './redis.ts';

/** Word that something moved, nothing more: whoever hears it looks at the database. One that is lost costs time only. */
export interface Wakeup {
  readonly projectId: string;
  /** Whose read state moved; without it, the project's log did. */
  readonly userId?: string;
}

export interface Wakeups {
  send(wakeup: Wakeup): void;
  /** Returns the function that ends the listening. */
  listen(listener: (wakeup: Wakeup) => void): () => void;
}

/** Within one process. */
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

/** Within this process at once, and in every other that shares the Redis as soon as it carries the word there. */
export function openSharedWakeups(redis: Redis): Wakeups {
  const local = openLocalWakeups();
  const channel = `${redis.prefix}:wakeups`;
  const ownName = randomUUID();
  redis.subscriber.on('message', (_channel, text) => {
    const [sender, projectId = '', userId] = text.split(' ');
    if (sender !== ownName) local.send(userId ? { projectId, userId } : { projectId });
  });
  // After every connection anew: the first may come late, and the library resubscribes only to what it once could.
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
