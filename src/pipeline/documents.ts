import type { DocumentNode } from 'graphql';
import type { Plugin } from 'graphql-yoga';
import { createTextCache } from '../kernel/cache.ts';
import { Fault } from '../kernel/fault.ts';
import { getOrInsert } from '../kernel/map.ts';
import { turns } from '../kernel/turns.ts';

/** The characters of the documents of open subscriptions: a parsed document takes up to forty times as many bytes. */
const MAX_OPEN_CHARACTERS = 1_000_000;
const MAX_OPEN_CHARACTERS_OF_USER = 64 * 1024;

const MAX_RECENT_CHARACTERS = 32 * 1024;
/** A document up to this size is parsed and validated within a millisecond or two, however often it repeats a field. */
const SHORT_CHARACTERS = 256;

/** A cache of valid documents by their text: those used most recently, and those of open subscriptions. */
export class ValidDocuments {
  readonly #recent = createTextCache<DocumentNode>();
  readonly #open = new Map<string, DocumentNode>();
  readonly #usage = new DocumentUsage(MAX_OPEN_CHARACTERS);
  readonly #usageByUser = new Map<string, DocumentUsage>();

  constructor(private readonly maxSubscriptionsOfUser: number) {}

  get(text: string): DocumentNode | undefined {
    return this.#recent.get(text) ?? this.#open.get(text);
  }

  /** The turn of an owner to parse and validate a long document; null for one that is short, or cached. */
  takeTurn(owner: string, text: string): Promise<void> | null {
    return text.length > SHORT_CHARACTERS && !this.get(text) ? turns.take(owner) : null;
  }

  /** Adds a document, unless it is so long that it would take the place of many others. */
  set(text: string, document: DocumentNode): void {
    if (text.length <= MAX_RECENT_CHARACTERS) this.#recent.set(text, document);
  }

  /**
   * Counts a user's subscription, and reserves its document, until the returned function is called. A document counts once,
   * however many subscriptions use it. Throws `conflict` if the user has too many subscriptions open, or if the documents of the
   * user's open subscriptions, or of all, exceed their limit.
   */
  reserve(userId: string, document: DocumentNode): () => void {
    const text = textOf(document);
    const ofUser = getOrInsert<string, DocumentUsage>(this.#usageByUser, userId, () => new DocumentUsage(MAX_OPEN_CHARACTERS_OF_USER));
    const most = this.maxSubscriptionsOfUser;
    if (ofUser.subscriptions >= most)
      throw Fault.quotaReached(`A user may have ${most} subscriptions open at once.`, { quota: 'subscriptions_per_user', limit: most });
    if (!ofUser.hasRoom(document) || !this.#usage.hasRoom(document)) {
      const [quota, { maxCharacters: limit }] = ofUser.hasRoom(document)
        ? ['subscription_documents', this.#usage]
        : ['subscription_documents_per_user', ofUser];
      if (ofUser.isEmpty) this.#usageByUser.delete(userId);
      const detail = 'Too many different documents are subscribed to: use variables, or end a subscription.';
      throw Fault.quotaReached(detail, { quota, limit });
    }
    ofUser.add(document);
    this.#usage.add(document);
    if (!this.#open.has(text)) this.#open.set(text, document);
    return () => {
      ofUser.remove(document);
      if (ofUser.isEmpty && this.#usageByUser.get(userId) === ofUser) this.#usageByUser.delete(userId);
      if (this.#usage.remove(document) && this.#open.get(text) === document) this.#open.delete(text);
    };
  }
}

/** The number of subscriptions of each document, bounded by the characters of the documents. */
class DocumentUsage {
  readonly #counts = new Map<DocumentNode, number>();
  #characters = 0;
  #subscriptions = 0;

  constructor(readonly maxCharacters: number) {}

  get subscriptions(): number {
    return this.#subscriptions;
  }

  get isEmpty(): boolean {
    return this.#counts.size === 0;
  }

  hasRoom(document: DocumentNode): boolean {
    return this.#counts.has(document) || this.#characters + textOf(document).length <= this.maxCharacters;
  }

  add(document: DocumentNode): void {
    const count = this.#counts.get(document) ?? 0;
    if (count === 0) this.#characters += textOf(document).length;
    this.#counts.set(document, count + 1);
    this.#subscriptions += 1;
  }

  /** Returns whether no subscription of the document is left. */
  remove(document: DocumentNode): boolean {
    const count = this.#counts.get(document) ?? 0;
    this.#subscriptions -= 1;
    if (count > 1) this.#counts.set(document, count - 1);
    else if (this.#counts.delete(document)) this.#characters -= textOf(document).length;
    return count <= 1;
  }
}

const textOf = (document: DocumentNode): string => document.loc?.source.body ?? '';

/** Caches valid documents, so that they are neither parsed nor validated again. */
export function cacheDocuments(documents: ValidDocuments): Plugin {
  return {
    onParse({ params, setParsedDocument }) {
      const cached = documents.get(String(params.source));
      if (cached) setParsedDocument(cached);
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
