import { LRUCache } from 'lru-cache';

/**
 * A cache keyed by texts that clients supply, bounded by entries and by the characters of the keys; the least recently used
 * entry goes first. A value that is made of a document takes some forty times its characters, and at least 2.5 KiB: both
 * bounds are needed.
 */
export function createTextCache<Value extends object | string>(): LRUCache<string, Value> {
  return new LRUCache({ max: 1_000, maxSize: 500_000, sizeCalculation: (_value, text) => text.length });
}
