import DataLoader from 'dataloader';
import { Fault } from './fault.ts';
import { getOrInsert } from './map.ts';

/** After this time a batch is loaded a second time, and the next batch no longer waits for it. */
const LATE_MS = 250;
/** After this time a batch fails. */
const DEADLINE_MS = 3_000;
/** Concurrent loads of one owner: more would slow down a slow database further. */
const MAX_LOADS = 3;

/**
 * Batches loads by owner: calls within one iteration of the event loop, or while the previous batch is being loaded, are loaded
 * together, whichever request they belong to. Nothing is cached: each call is served by a load that began after it. `loadMany`
 * returns the values in the order of the keys.
 *
 * `loadMany` only reads. A late batch is loaded again, on another connection, and the first result counts, so that one silent
 * connection holds nobody up. Without a result in time the call throws `service_unavailable`.
 */
export function batchByOwner<Owner extends object, Key, Value>(
  loadMany: (owner: Owner, keys: readonly Key[]) => Promise<readonly Value[]>,
): (owner: Owner, key: Key) => Promise<Value> {
  const loaders = new WeakMap<Owner, DataLoader<Key, Value>>();
  return (owner, key) => getOrInsert(loaders, owner, () => createLoader((keys: readonly Key[]) => loadMany(owner, keys))).load(key);
}

function createLoader<Key, Value>(loadMany: (keys: readonly Key[]) => Promise<readonly Value[]>): DataLoader<Key, Value> {
  let activeLoads = 0;
  /** Whether the newest batch is being loaded and is not late yet. */
  let isLoading = false;
  let waitingDispatch: (() => void) | null = null;
  const mustWait = () => isLoading || activeLoads >= MAX_LOADS;
  const dispatchWaiting = () => {
    if (mustWait()) return;
    const dispatch = waitingDispatch;
    waitingDispatch = null;
    dispatch?.();
  };
  const load = (keys: readonly Key[]) =>
    new Promise<readonly Value[]>((resolve, reject) => {
      let isSettled = false;
      let isLate = false;
      let attempts = 0;
      const settle = () => {
        if (isSettled) return;
        isSettled = true;
        clearTimeout(timer);
        if (!isLate) isLoading = false;
      };
      const attempt = async () => {
        activeLoads += 1;
        attempts += 1;
        try {
          resolve(await loadMany(keys));
          settle();
        } catch (failure) {
          // While another attempt is under way, it may still succeed.
          if (attempts === 1) {
            reject(failure);
            settle();
          }
        }
        activeLoads -= 1;
        attempts -= 1;
        dispatchWaiting();
      };
      const onLate = () => {
        if (isSettled) return;
        isLate = true;
        isLoading = false;
        if (activeLoads < MAX_LOADS) void attempt();
        dispatchWaiting();
        timer = setTimeout(afterPendingEvents, DEADLINE_MS - LATE_MS, onDeadline);
      };
      const onDeadline = () => {
        reject(Fault.unavailable(new Error(`no answer within ${DEADLINE_MS} ms`)));
        settle();
      };
      isLoading = true;
      let timer = setTimeout(afterPendingEvents, LATE_MS, onLate);
      void attempt();
    });
  const schedule = (dispatch: () => void) => {
    if (mustWait()) waitingDispatch = dispatch;
    else setImmediate(dispatch);
  };
  return new DataLoader<Key, Value>(load, { cache: false, batchScheduleFn: schedule });
}

/** Runs a timer's callback after the I/O events that arrived while the process was busy: the result may be among them. */
function afterPendingEvents(callback: () => void): void {
  setImmediate(callback);
}
