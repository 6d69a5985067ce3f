/** Runs what inserts a key, which no other map has meanwhile, and returns the map that it was inserted into. */
export function findMapOf(key: unknown, insert: () => void): ReadonlyMap<unknown, unknown> {
  const { set } = Map.prototype;
  let found: ReadonlyMap<unknown, unknown> | undefined;
  Map.prototype.set = function (this: Map<unknown, unknown>, inserted, value) {
    if (inserted === key) found = this;
    return set.call(this, inserted, value) as Map<unknown, unknown>;
  };
  try {
    insert();
  } finally {
    Map.prototype.set = set;
  }
  if (!found) throw new Error('the key was not inserted into a map');
  return found;
}
