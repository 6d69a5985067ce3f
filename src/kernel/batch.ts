import DataLoader from 'dataloader';
import { Fault } from './fault.ts';
import { getOrInsert } from './map.ts';

/** How long a batch may take before it is loaded once more, and the next batch no longer waits for it. */
const LATE_MS = 250;
/** How long a batch may take at all. */
const DEADLINE_MS = 3_000;
/** Loads of one owner under way at once: where the database is slow, more loads would make it slower. */
const MAX_LOADS = 3;

/**
 * Batches loads by owner: calls within one turn of the event loop, or while the last batch is under way, are loaded together,
 * whichever request they belong to. Nothing is cached: each call is answered by a batch that began afterwards. `loadMany`
 * returns the values in the order of the keys.
 *
 * `loadMany` only reads. A late batch is loaded again, on another connection, and the first result counts, so that one silent
 * connection holds nobody up. Without a result in time the call throws `service_unavailable`.
 */
export function batchByOwner<Owner extends object, Key, Value>(
  loadMany: (owner: Owner, keys: readonly Key[]) => Promise<readonly Value[]>,
): (owner: Owner, key: Key) => Promise<Value> {
  const loaders = new WeakMap<Owner, DataLoader<Key, Value>>();
  return (owner, key) => getOrInsert(loaders, owner, () => openLoader((keys: readonly Key[]) => loadMany(owner, keys))).load(key);
}

function openLoader<Key, Value>(loadMany: (keys: readonly Key[]) => Promise<readonly Value[]>): DataLoader<Key, Value> {
  /** The loads under way, and whether the newest of them is not late yet. */
  let loads = 0;
  let isLoading = false;
  let askNext: (() => void) | null = null;
  const askPending = () => {
    if (isLoading || loads >= MAX_LOADS) return;
    const ask = askNext;
    askNext = null;
    ask?.();
  };
  const load = (keys: readonly Key[]) =>
    new Promise<readonly Value[]>((resolve, reject) => {
      let isSettled = false;
      let isLate = false;
      let pending = 0;
      const settle = () => {
        isSettled = true;
        clearTimeout(timer);
        if (!isLate) isLoading = false;
      };
      const ask = () => {
        loads += 1;
        pending += 1;
        const finish = (hasFailed: boolean) => {
          loads -= 1;
          pending -= 1;
          // Of two loads the other may still succeed.
          if (!isSettled && (!hasFailed || pending === 0)) settle();
          askPending();
        };
        loadMany(keys).then(
          (values) => {
            resolve(values);
            finish(false);
          },
          (failure) => {
            if (pending === 1) reject(failure);
            finish(true);
          },
        );
      };
      const beLate = () => {
        if (isSettled) return;
        isLate = true;
        isLoading = false;
        if (loads < MAX_LOADS) ask();
        askPending();
        timer = setTimeout(afterArrivals, DEADLINE_MS - LATE_MS, giveUp);
      };
      const giveUp = () => {
        if (isSettled) return;
        settle();
        reject(Fault.unavailable(new Error(`no answer within ${DEADLINE_MS} ms`)));
      };
      isLoading = true;
      let timer = setTimeout(afterArrivals, LATE_MS, beLate);
      ask();
    });
  const schedule = (ask: () => void) => {
    if (isLoading || loads >= MAX_LOADS) askNext = ask;
    else setImmediate(ask);
  };
  return new DataLoader<Key, Value>(load, { cache: false, batchScheduleFn: schedule });
}

/** Runs after the events that have arrived, in a process that was busy. */
function afterArrivals(work: () => void): void {
  setImmediate(work);
}
