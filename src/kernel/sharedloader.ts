import DataLoader from 'dataloader';
import { Fault } from './fault.ts';
import { getOrInsert } from './map.ts';
import { isPendingAfter } from './timeout.ts';

/** After this time a batch is loaded a second time, and the next batch no longer waits for it. */
const LATE_MS = 250;
/** After this time a batch fails, whether it is being loaded or still waits for others. */
const DEADLINE_MS = 3_000;
/** Concurrent loads of one source: more would slow down a slow database further. */
const MAX_LOADS = 3;

/**
 * Batches loads by source, such as the database: calls within one iteration of the event loop, or while the previous batch is being
 * loaded, are loaded together, whichever request they belong to. Nothing is cached: each call is served by a load that began after it.
 * `loadMany` returns the values in the order of the keys.
 *
 * `loadMany` only reads. A late batch is loaded again, on another connection, and the first result counts, so that one silent
 * connection holds nobody up. Without a result in time the call throws `service_unavailable`.
 */
export function createSharedLoader<Source extends object, Key, Value>(
  loadMany: (source: Source, keys: readonly Key[]) => Promise<readonly Value[]>,
): (source: Source, key: Key) => Promise<Value> {
  const loaders = new WeakMap<Source, SharedBatches<Key, Value>>();
  const open = (source: Source) => new SharedBatches((keys: readonly Key[]) => loadMany(source, keys));
  return (source, key) => getOrInsert(loaders, source, () => open(source)).loader.load(key);
}

/** The batches of one source. */
class SharedBatches<Key, Value> {
  readonly loader = new DataLoader<Key, Value>((keys) => this.#load(keys), {
    cache: false,
    batchScheduleFn: (dispatch) => this.#schedule(dispatch),
  });
  #activeLoads = 0;
  /** Whether the newest batch is being loaded and is not late yet. */
  #isLoading = false;
  /** Dispatches the batch that waits for others. */
  #dispatchWaiting: (() => void) | null = null;
  /** When the first call of the batch that is dispatched was made; null if it has waited for too long. */
  #askedAt: number | null = null;

  constructor(private readonly loadMany: (keys: readonly Key[]) => Promise<readonly Value[]>) {}

  get #mustWait(): boolean {
    return this.#isLoading || this.#activeLoads >= MAX_LOADS;
  }

  #schedule(dispatch: () => void): void {
    const firstAskedAt = performance.now();
    const dispatchAs = (askedAt: number | null) => {
      // DataLoader calls `#load` before `dispatch` returns.
      this.#askedAt = askedAt;
      dispatch();
    };
    if (!this.#mustWait) return void setImmediate(dispatchAs, firstAskedAt);
    const expire = () => {
      if (this.#dispatchWaiting !== dispatchInTime) return;
      this.#dispatchWaiting = null;
      dispatchAs(null);
    };
    // The immediate lets a process that was busy read what has arrived.
    const timer = setTimeout(() => setImmediate(expire), DEADLINE_MS);
    const dispatchInTime = () => {
      clearTimeout(timer);
      dispatchAs(firstAskedAt);
    };
    this.#dispatchWaiting = dispatchInTime;
  }

  async #load(keys: readonly Key[]): Promise<readonly Value[]> {
    if (this.#askedAt === null) throw createLateFault();
    const deadline = this.#askedAt + DEADLINE_MS;
    this.#isLoading = true;
    const first = this.#attempt(keys);
    const isLate = await isPendingAfter(first, LATE_MS);
    this.#isLoading = false;
    const attempts = isLate && this.#activeLoads < MAX_LOADS ? [first, this.#attempt(keys)] : [first];
    this.#dispatchNext();
    if (!isLate) return first;
    const values = firstValue(attempts);
    if (await isPendingAfter(values, deadline - performance.now())) throw createLateFault();
    return values;
  }

  async #attempt(keys: readonly Key[]): Promise<readonly Value[]> {
    this.#activeLoads += 1;
    try {
      return await this.loadMany(keys);
    } finally {
      this.#activeLoads -= 1;
      this.#dispatchNext();
    }
  }

  #dispatchNext(): void {
    if (this.#mustWait) return;
    const dispatch = this.#dispatchWaiting;
    this.#dispatchWaiting = null;
    dispatch?.();
  }
}

function createLateFault(): Fault {
  return Fault.unavailable(new Error(`no answer within ${DEADLINE_MS} ms`));
}

/** The value of the first attempt that succeeds; if all fail, the failure of the first. */
async function firstValue<Value>(attempts: ReadonlyArray<Promise<Value>>): Promise<Value> {
  try {
    return await Promise.any(attempts);
  } catch (failures) {
    throw (failures as AggregateError).errors[0];
  }
}
