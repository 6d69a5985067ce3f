import { Fault } from '../kernel/fault.ts';
import { getOrInsert } from '../kernel/map.ts';

/** What the waiting operations of a user may take, in bytes of JSON: parsed they take many times as much. */
const MAX_WAITING_BYTES = 1024 * 1024;
/** What a waiting operation takes besides its JSON. */
const OPERATION_BYTES = 1024;
/**
 * How long an operation counts as under way. Bodies, statements and answers have shorter timeouts; but if an operation were
 * never to end, its user would have one less for as long as the process lives.
 */
const MAX_TURN_MS = 60_000;
/** How long an operation waits. Clients and proxies give up after half a minute, and its body must have come by then, too. */
const MAX_WAIT_MS = 20_000;

/** The place of an operation among those of its user. */
export interface Turn {
  /**
   * Resolves when the operation may begin, null if it may at once. Rejects if it is ended before, and with
   * `service_unavailable` after `maxWaitMs`.
   */
  readonly beginning: Promise<void> | null;
  /**
   * Lets the user's next operation begin. To be called when the operation has ended, however it did, or is given up while it
   * waits; a second call has no effect.
   */
  readonly end: () => void;
}

interface Place {
  readonly bytes: number;
  readonly deadline: NodeJS.Timeout;
  begin(): void;
}

/** An operation under way. */
interface Executing {
  readonly begunAt: number;
  readonly end: () => void;
}

/** The operations of one user: those under way, the oldest first, and those that wait. */
interface Own {
  readonly executing: Executing[];
  waiting: Set<Place> | null;
  waitingBytes: number;
}

const createOwn = (): Own => ({ executing: [], waiting: null, waitingBytes: 0 });

/**
 * Shares a process among its users: a few operations of each are executed at the same time, the others wait for those of their
 * own user, in the order in which they came. A user with hundreds of connections then takes no more of the event loop and of the
 * database than a user with a few.
 */
export class Turns {
  readonly #users = new Map<string, Own>();
  #executing = 0;
  #waiting = 0;

  constructor(
    private readonly max: number,
    private readonly maxWaitingBytes = MAX_WAITING_BYTES,
    private readonly maxWaitMs = MAX_WAIT_MS,
  ) {}

  /** The number of operations that are under way. */
  get executing(): number {
    return this.#executing;
  }

  /** The number of operations that wait. */
  get waiting(): number {
    return this.#waiting;
  }

  /** Whether the user's next operation has to wait. */
  isBusy(userId: string): boolean {
    return (this.#users.get(userId)?.executing.length ?? 0) >= this.max;
  }

  /** Throws `service_unavailable` if an operation that takes so many bytes had to wait, and too much waits already. */
  requireRoom(userId: string, bytes: number): void {
    this.#endOverdue(userId);
    const own = this.#users.get(userId);
    if (own) this.#checkRoom(own, bytes);
  }

  /** `measure` returns the bytes that the operation takes while it waits. Throws as `requireRoom` does. */
  take(userId: string, measure: () => number): Turn {
    this.#endOverdue(userId);
    const own = getOrInsert(this.#users, userId, createOwn);
    if (own.executing.length < this.max) return { beginning: null, end: this.#begin(userId, own) };
    const measured = measure();
    this.#checkRoom(own, measured);
    const bytes = OPERATION_BYTES + measured;
    let end = () => {};
    const beginning = new Promise<void>((resolve, reject) => {
      const giveUp = (fault: Fault) => {
        if (this.#leave(own, place)) reject(fault);
      };
      const place: Place = {
        bytes,
        deadline: setTimeout(() => giveUp(Fault.unavailable(new Error('the operation waited for too long'))), this.maxWaitMs).unref(),
        begin: () => {
          end = this.#begin(userId, own);
          resolve();
        },
      };
      end = () => giveUp(Fault.invalidRequest('The client has gone.'));
      (own.waiting ??= new Set()).add(place);
      own.waitingBytes += bytes;
      this.#waiting += 1;
    });
    return { beginning, end: () => end() };
  }

  #checkRoom({ executing, waitingBytes }: Own, bytes: number): void {
    if (executing.length >= this.max && waitingBytes + OPERATION_BYTES + bytes > this.maxWaitingBytes)
      throw Fault.unavailable(new Error('too many operations of the user wait'));
  }

  /** Counts an operation that begins; returns the function that ends it. */
  #begin(userId: string, own: Own): () => void {
    const begun = { begunAt: performance.now(), end: () => this.#end(userId, own, begun) };
    own.executing.push(begun);
    this.#executing += 1;
    return begun.end;
  }

  #end(userId: string, own: Own, ended: Executing): void {
    const at = own.executing.indexOf(ended);
    if (at < 0) return;
    own.executing.splice(at, 1);
    this.#executing -= 1;
    const [next] = own.waiting ?? [];
    if (next) {
      this.#leave(own, next);
      next.begin();
    } else if (own.executing.length === 0) this.#users.delete(userId);
  }

  /** Ends what has been under way for too long. */
  #endOverdue(userId: string): void {
    const latest = performance.now() - MAX_TURN_MS;
    for (const { begunAt, end } of this.#users.get(userId)?.executing.slice() ?? []) if (begunAt <= latest) end();
  }

  /** Returns whether the operation was waiting. */
  #leave(own: Own, place: Place): boolean {
    if (!own.waiting?.delete(place)) return false;
    clearTimeout(place.deadline);
    own.waitingBytes -= place.bytes;
    this.#waiting -= 1;
    return true;
  }
}
