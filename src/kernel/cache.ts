import { LRUCache } from 'lru-cache';

/**
 * An LRU cache keyed by client-supplied text, bounded by entries and by characters of the keys. A value derived from a
 * document takes some forty times the document's characters, and at least 2.5 KiB: both bounds are needed.
 */
export function createTextCache<Value extends object | string>(): LRUCache<string, Value> {
  return new LRUCache({ max: 1_000, maxSize: 500_000, sizeCalculation: (_value, text) => text.length });
}
