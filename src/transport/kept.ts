import { LRUCache } from 'lru-cache';

/**
 * What is kept by a text that a client has made up, ever new ones if it likes: so much of it that the server does not
 * grow, and of the rest what was used last. What is made of a document takes some forty times its characters, and at
 * least 2.5 KiB: both bounds are needed.
 */
export function keepByText<Value extends object>(): LRUCache<string, Value> {
  return new LRUCache({ max: 1_000, maxSize: 500_000, sizeCalculation: (_value, text) => text.length });
}
