import type { DocumentNode } from 'graphql';
import { LRUCache } from 'lru-cache';

/** Characters of source text; what is made of it takes some forty times as much memory. */
const MAX_CHARACTERS = 500_000;

/**
 * The documents that were parsed and found valid, which Yoga asks by their text. Bounded by the length of the texts, not
 * by their number: a client may send ever new ones. Those with errors are not kept at all.
 */
export class Documents {
  readonly #cache = new LRUCache<string, DocumentNode>({ maxSize: MAX_CHARACTERS, sizeCalculation: (_document, text) => text.length });

  get(text: string): DocumentNode | undefined {
    return this.#cache.get(text);
  }

  set(text: string, document: DocumentNode): void {
    this.#cache.set(text, document);
  }

  forget(document: DocumentNode): void {
    if (document.loc) this.#cache.delete(document.loc.source.body);
  }
}

/** A text that cannot be parsed is tried again: the parser gives up at its first error. */
export const noErrors = { get: () => undefined, set: () => {} };
