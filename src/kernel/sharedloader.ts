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
  const loaders = new WeakMap<Source, DataLoader<Key, Value>>();
  return (source, key) => getOrInsert(loaders, source, () => createLoader((keys: readonly Key[]) => loadMany(source, keys))).load(key);
}

function createLoader<Key, Value>(loadMany: (keys: readonly Key[]) => Promise<readonly Value[]>): DataLoader<Key, Value> {
  let activeLoads = 0;
  /** Whether the newest batch is being loaded and is not late yet. */
  let isLoading = false;
  let waitingDispatch: (() => void) | null = null;
  /** When the first call of the batch that is dispatched was made; null if it has waited for too long. */
  let askedAt: number | null = null;
  const mustWait = () => isLoading || activeLoads >= MAX_LOADS;
  const dispatchWaiting = () => {
    if (mustWait()) return;
    const dispatch = waitingDispatch;
    waitingDispatch = null;
    dispatch?.();
  };
  const attempt = async (keys: readonly Key[]) => {
    activeLoads += 1;
    try {
      return await loadMany(keys);
    } finally {
      activeLoads -= 1;
      dispatchWaiting();
    }
  };
  const load = async (keys: readonly Key[]) => {
    if (askedAt === null) throw createLateFault();
    const deadline = askedAt + DEADLINE_MS;
    isLoading = true;
    const first = attempt(keys);
    const isLate = await isPendingAfter(first, LATE_MS);
    isLoading = false;
    const attempts = isLate && activeLoads < MAX_LOADS ? [first, attempt(keys)] : [first];
    dispatchWaiting();
    if (!isLate) return first;
    const values = firstValue(attempts);
    if (await isPendingAfter(values, deadline - performance.now())) throw createLateFault();
    return values;
  };
  const schedule = (dispatch: () => void) => {
    const firstAskedAt = performance.now();
    const dispatchAs = (moment: number | null) => {
      askedAt = moment;
      dispatch();
    };
    if (!mustWait()) return void setImmediate(dispatchAs, firstAskedAt);
    const expire = () => {
      if (waitingDispatch !== dispatchInTime) return;
      waitingDispatch = null;
      dispatchAs(null);
    };
    // The immediate lets a process that was busy read what has arrived.
    const timer = setTimeout(() => setImmediate(expire), DEADLINE_MS);
    const dispatchInTime = () => {
      clearTimeout(timer);
      dispatchAs(firstAskedAt);
    };
    waitingDispatch = dispatchInTime;
  };
  return new DataLoader<Key, Value>(load, { cache: false, batchScheduleFn: schedule });
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
