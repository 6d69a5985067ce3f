import { EventEmitter } from 'node:events';

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
