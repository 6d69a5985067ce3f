import { randomUUID } from 'node:crypto';
import { EventEmitter } from 'node:events';
import type { Redis } from './redis.ts';

/** A notice upon which listeners read the database. A lost one costs latency, never an event. */
export interface Wakeup {
  readonly projectId: string;
  /** The user whose read state has changed; without it, the project's log has. */
  readonly userId?: string;
}

export interface Wakeups {
  send(wakeup: Wakeup): void;
  /** Returns the function that removes the listener. */
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

/** Wake-ups within this process, without delay, and in all other processes through Redis. */
export function openSharedWakeups(redis: Redis): Wakeups {
  const local = openLocalWakeups();
  const processId = randomUUID();
  redis.subscriber.on('message', (_channel, text) => {
    const [sender, projectId = '', userId] = text.split(' ');
    if (sender !== processId) local.send(userId ? { projectId, userId } : { projectId });
  });
  return {
    send(wakeup) {
      local.send(wakeup);
      const text = [processId, wakeup.projectId, ...(wakeup.userId ? [wakeup.userId] : [])].join(' ');
      redis.run(() => redis.commands.publish(redis.channel, text)).catch(() => {});
    },
    listen: local.listen,
  };
}
