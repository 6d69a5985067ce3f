import DataLoader from 'dataloader';

/**
 * Makes of a question about many keys one about a single key: those who ask the same owner within one turn of the event
 * loop, or while the last answer is still on its way, are answered together, whichever request they belong to. Nothing
 * is remembered: whoever asks is answered by a question that began afterwards. The answers come in the order of the keys.
 */
export function batchByOwner<Owner extends object, Key, Value>(
  loadMany: (owner: Owner, keys: readonly Key[]) => Promise<readonly Value[]>,
): (owner: Owner, key: Key) => Promise<Value> {
  const loaders = new WeakMap<Owner, DataLoader<Key, Value>>();
  return (owner, key) => {
    const loader = loaders.get(owner) ?? openLoader((keys: readonly Key[]) => loadMany(owner, keys));
    loaders.set(owner, loader);
    return loader.load(key);
  };
}

function openLoader<Key, Value>(loadMany: (keys: readonly Key[]) => Promise<readonly Value[]>): DataLoader<Key, Value> {
  let isAsking = false;
  let askNext: (() => void) | null = null;
  const load = async (keys: readonly Key[]) => {
    isAsking = true;
    try {
      return await loadMany(keys);
    } finally {
      isAsking = false;
      const ask = askNext;
      askNext = null;
      ask?.();
    }
  };
  const schedule = (ask: () => void) => {
    if (isAsking) askNext = ask;
    else setImmediate(ask);
  };
  return new DataLoader<Key, Value>(load, { cache: false, batchScheduleFn: schedule });
}
