import type { DocumentNode } from 'graphql';
import type { Plugin } from 'graphql-yoga';
import { createTextCache } from '../kernel/cache.ts';
import { Fault } from '../kernel/fault.ts';
import { getOrInsert } from '../kernel/map.ts';

/** The characters of the documents that open subscriptions need: a document takes up to forty times as many bytes. */
const MAX_OPEN = 1_000_000;
const MAX_OPEN_OF_USER = 64 * 1024;

/** The documents that were found valid, by their text: those used last, and those of open subscriptions. */
export class ValidDocuments {
  readonly #recent = createTextCache<DocumentNode>();
  readonly #open = new Map<string, DocumentNode>();
  readonly #held = new HeldDocuments(MAX_OPEN);
  readonly #heldByUser = new Map<string, HeldDocuments>();

  get(text: string): DocumentNode | undefined {
    return this.#recent.get(text) ?? this.#open.get(text);
  }

  set(text: string, document: DocumentNode): void {
    this.#recent.set(text, document);
  }

  /**
   * Counts the document of a user's subscription, once however many subscriptions have it, until the function that is
   * returned is called. Throws `conflict` where the open subscriptions of the user, or of all, have too many documents.
   */
  hold(userId: string, document: DocumentNode): () => void {
    const text = textOf(document);
    const ofUser = getOrInsert<string, HeldDocuments>(this.#heldByUser, userId, () => new HeldDocuments(MAX_OPEN_OF_USER));
    if (!ofUser.hasRoom(document) || !this.#held.hasRoom(document)) {
      if (ofUser.isEmpty) this.#heldByUser.delete(userId);
      const context = { quota: 'subscription_documents_per_user', limit: MAX_OPEN_OF_USER };
      throw new Fault('conflict', 'Too many different documents are subscribed to: use variables, or end a subscription.', { context });
    }
    ofUser.add(document);
    this.#held.add(document);
    if (!this.#open.has(text)) this.#open.set(text, document);
    return () => {
      ofUser.remove(document);
      if (ofUser.isEmpty && this.#heldByUser.get(userId) === ofUser) this.#heldByUser.delete(userId);
      if (this.#held.remove(document) && this.#open.get(text) === document) this.#open.delete(text);
    };
  }
}

/** Documents, and how often each is held: bounded by the characters of their texts. */
class HeldDocuments {
  readonly #counts = new Map<DocumentNode, number>();
  #characters = 0;

  constructor(private readonly most: number) {}

  get isEmpty(): boolean {
    return this.#counts.size === 0;
  }

  hasRoom(document: DocumentNode): boolean {
    return this.#counts.has(document) || this.#characters + textOf(document).length <= this.most;
  }

  add(document: DocumentNode): void {
    const count = this.#counts.get(document) ?? 0;
    if (count === 0) this.#characters += textOf(document).length;
    this.#counts.set(document, count + 1);
  }

  /** Whether it was the last. */
  remove(document: DocumentNode): boolean {
    const count = this.#counts.get(document) ?? 0;
    if (count > 1) this.#counts.set(document, count - 1);
    else if (this.#counts.delete(document)) this.#characters -= textOf(document).length;
    return count <= 1;
  }
}

const textOf = (document: DocumentNode): string => document.loc?.source.body ?? '';

/** Caches the documents that were found valid: they are neither parsed nor validated again. */
export function cacheDocuments(documents: ValidDocuments): Plugin {
  return {
    onParse({ params, setParsedDocument }) {
      const known = documents.get(String(params.source));
      if (known) setParsedDocument(known);
    },
    onValidate({ params, setResult }) {
      const document: DocumentNode = params.documentAST;
      const text = document.loc?.source.body;
      if (text === undefined) return;
      if (documents.get(text) === document) return setResult([]);
      return ({ valid }) => {
        if (valid) documents.set(text, document);
      };
    },
  };
}
