import { Fault } from './fault.ts';
import { getOrInsert } from './map.ts';

/** The bytes of JSON that the waiting operations of an owner may take: parsed they take many times as much. */
const MAX_WAITING_BYTES = 1024 * 1024;
/** The bytes that a waiting operation takes besides its JSON. */
const OPERATION_BYTES = 1024;
/**
 * How long an operation counts as under way. Bodies, statements and responses have shorter timeouts; but if an operation were
 * never to end, its owner would have one less for as long as the process lives.
 */
const MAX_PERMIT_MS = 60_000;
/** How long an operation waits. Clients and proxies give up after half a minute, and its body must have come by then, too. */
const MAX_WAIT_MS = 20_000;

/** A permit to run one operation, or a place in the queue for one. */
export interface Permit {
  /**
   * Resolves when the operation may begin, null if it may at once. Rejects if the permit is released before, and with
   * `service_unavailable` after `maxWaitMs`.
   */
  readonly acquired: Promise<void> | null;
  /**
   * Lets the owner's next operation begin. To be called when the operation has ended, however it did, or is given up while it
   * waits; a second call has no effect.
   */
  readonly release: () => void;
}

interface Waiter {
  readonly bytes: number;
  readonly deadline: NodeJS.Timeout;
  begin(): void;
}

/** An operation under way. */
interface Executing {
  readonly begunAt: number;
  readonly release: () => void;
}

/** The operations of one owner: those under way, the oldest first, and those that wait. */
interface OwnedOperations {
  readonly executing: Executing[];
  waiting: Set<Waiter> | null;
  waitingBytes: number;
}

const createOwnedOperations = (): OwnedOperations => ({ executing: [], waiting: null, waitingBytes: 0 });

/**
 * A semaphore for each owner: `max` operations of an owner are executed at the same time, the others wait for those of their own
 * owner, first in, first out. The queue is bounded in bytes, and a permit expires. An owner of hundreds of connections then takes
 * no more of the event loop and of the database than an owner of a few.
 */
export class KeyedSemaphore {
  readonly #owners = new Map<string, OwnedOperations>();
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

  /** Whether the owner's next operation has to wait. */
  mustWait(owner: string): boolean {
    return (this.#owners.get(owner)?.executing.length ?? 0) >= this.max;
  }

  /**
   * `measure` returns the bytes that the operation takes while it waits. Throws `service_unavailable` if it had to wait, and too
   * much waits already.
   */
  acquire(owner: string, measure: () => number): Permit {
    this.#releaseExpired(owner);
    const own = getOrInsert(this.#owners, owner, createOwnedOperations);
    if (own.executing.length < this.max) return { acquired: null, release: this.#begin(owner, own) };
    const bytes = OPERATION_BYTES + measure();
    if (own.waitingBytes + bytes > this.maxWaitingBytes) throw Fault.unavailable(new Error('too many operations of the owner wait'));
    let release = () => {};
    const acquired = new Promise<void>((resolve, reject) => {
      const giveUp = (fault: Fault) => {
        this.#dequeue(own, waiter);
        reject(fault);
      };
      const waiter: Waiter = {
        bytes,
        deadline: setTimeout(() => giveUp(Fault.unavailable(new Error('the operation waited for too long'))), this.maxWaitMs).unref(),
        begin: () => {
          release = this.#begin(owner, own);
          resolve();
        },
      };
      release = () => giveUp(Fault.invalidRequest('The client has gone.'));
      (own.waiting ??= new Set()).add(waiter);
      own.waitingBytes += bytes;
      this.#waiting += 1;
    });
    return { acquired, release: () => release() };
  }

  /** Counts an operation that begins; returns the function that releases its permit. */
  #begin(owner: string, own: OwnedOperations): () => void {
    const begun = { begunAt: performance.now(), release: () => this.#release(owner, own, begun) };
    own.executing.push(begun);
    this.#executing += 1;
    return begun.release;
  }

  #release(owner: string, own: OwnedOperations, ended: Executing): void {
    const at = own.executing.indexOf(ended);
    if (at < 0) return;
    own.executing.splice(at, 1);
    this.#executing -= 1;
    const [next] = own.waiting ?? [];
    if (next) {
      this.#dequeue(own, next);
      next.begin();
    } else if (own.executing.length === 0) this.#owners.delete(owner);
  }

  /** Releases the permits of operations that have been under way for too long. */
  #releaseExpired(owner: string): void {
    const latest = performance.now() - MAX_PERMIT_MS;
    for (const { begunAt, release } of this.#owners.get(owner)?.executing.slice() ?? []) if (begunAt <= latest) release();
  }

  #dequeue(own: OwnedOperations, waiter: Waiter): void {
    if (!own.waiting?.delete(waiter)) return;
    clearTimeout(waiter.deadline);
    own.waitingBytes -= waiter.bytes;
    this.#waiting -= 1;
  }
}
