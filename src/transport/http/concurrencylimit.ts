import { Fault } from '../../kernel/fault.ts';

/** Counts what each key, a client address or a user, has open at the same time in this process, against a limit for each. */
export class ConcurrencyLimit {
  readonly #open = new Map<string, number>();

  constructor(readonly max: number) {}

  /** Counts one more, even beyond the limit; returns whether the count is within it. */
  add(key: string): boolean {
    const count = this.count(key) + 1;
    this.#open.set(key, count);
    return count <= this.max;
  }

  delete(key: string): void {
    const count = this.count(key) - 1;
    if (count > 0) this.#open.set(key, count);
    else this.#open.delete(key);
  }

  count(key: string): number {
    return this.#open.get(key) ?? 0;
  }

  isFull(key: string): boolean {
    return this.count(key) >= this.max;
  }
}

/** The fault of a user who has as many WebSockets and event streams open as they may. */
export function tooManySockets({ max }: ConcurrencyLimit): Fault {
  return Fault.quotaReached(`A user may have ${max} WebSockets and event streams open at once.`, { quota: 'sockets_per_user', limit: max });
}

/** The fault of a user who has as many event streams open as they may. */
export function tooManyStreams({ max }: ConcurrencyLimit): Fault {
  return Fault.quotaReached(`A user may have ${max} event streams open at once.`, { quota: 'event_streams_per_user', limit: max });
}
