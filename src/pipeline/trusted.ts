import { createHash } from 'node:crypto';
import { GraphQLError, Source } from 'graphql';
import type { Plugin } from 'graphql-yoga';
import { Fault, statusOf } from '../kernel/fault.ts';
import type { Enveloped } from './enveloped.ts';
import { toGraphqlError } from './mask.ts';

/** The documents that the operator trusts. */
export interface TrustedDocuments {
  /** By the SHA-256 of the text, in hexadecimal digits. Empty: persisted queries are not supported. */
  readonly texts: ReadonlyMap<string, string>;
  /** Whether a client's other documents are refused. */
  readonly isOnly: boolean;
}

export const trustsNone: TrustedDocuments = { texts: new Map(), isOnly: false };

/** Reads a JSON object of texts by their hashes. Throws an Error that says what is wrong with it. */
export function readTrusted(json: string): ReadonlyMap<string, string> {
  const value: unknown = JSON.parse(json);
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new Error('It is no JSON object.');
  const texts = new Map<string, string>();
  for (const [hash, text] of Object.entries(value)) {
    if (typeof text !== 'string') throw new Error(`What ${hash.slice(0, 64)} names is no text.`);
    if (hash !== hashOf(text)) throw new Error(`${hash.slice(0, 64)} is not the SHA-256 of its document.`);
    texts.set(hash, text);
  }
  if (texts.size === 0) throw new Error('There is no document in it.');
  return texts;
}

/** Throws an Error for the first document that is none of the schema, or beyond the limits of documents. */
export function validateTrusted(
  { texts }: TrustedDocuments,
  { schema, parse, validate }: Pick<Enveloped, 'schema' | 'parse' | 'validate'>,
) {
  for (const [hash, text] of texts) {
    const [error] = findErrors(() => validate(schema, parse(text)));
    if (error) throw new Error(`The document ${hash} is refused: ${error.message}`);
  }
}

function findErrors(validate: () => readonly GraphQLError[]): readonly GraphQLError[] {
  try {
    return validate();
  } catch (failure) {
    if (failure instanceof GraphQLError) return [failure];
    throw failure;
  }
}

/** The part of a request that says which document it means: a text, or the hash of one. */
export interface DocumentParams {
  readonly query?: unknown;
  readonly extensions?: unknown;
}

/** The hash that stands in the place of a text, as Apollo's protocol of persisted queries has it; null where there is none. */
export function readHash({ query, extensions }: DocumentParams): string | null {
  if (query || typeof extensions !== 'object' || extensions === null) return null;
  const { persistedQuery } = extensions as { persistedQuery?: { version?: unknown; sha256Hash?: unknown } | null };
  const { version, sha256Hash } = persistedQuery ?? {};
  return version === 1 && typeof sha256Hash === 'string' ? sha256Hash : null;
}

/** The text of a document by its hash. Throws the protocol's errors, on which a client sends the text instead. */
export function findText({ texts }: TrustedDocuments, hash: string): string {
  const text = texts.get(hash);
  if (text !== undefined) return text;
  throw texts.size > 0 ? refuse('PersistedQueryNotFound') : refuse('PersistedQueryNotSupported');
}

/** The codes that the protocol has given to its errors. */
const codes = { PersistedQueryNotFound: 'PERSISTED_QUERY_NOT_FOUND', PersistedQueryNotSupported: 'PERSISTED_QUERY_NOT_SUPPORTED' };

function refuse(message: keyof typeof codes): GraphQLError {
  return new GraphQLError(message, { extensions: { code: codes[message], http: { status: statusOf.invalid_request, spec: true } } });
}

/** Finds the document of a hash where Yoga reads the request, and refuses at every door what is not trusted where nothing else is run. */
export function trustDocuments(trusted: TrustedDocuments): Plugin {
  return {
    onParams({ params, setParams }) {
      const hash = readHash(params);
      if (hash !== null) setParams({ ...params, query: findText(trusted, hash) });
    },
    onParse({ parseFn, setParseFn }) {
      if (!trusted.isOnly) return;
      // A document that is cached has passed here.
      setParseFn((source: string | Source, options) => {
        if (!trusted.texts.has(hashOf(source instanceof Source ? source.body : source)))
          throw toGraphqlError(Fault.invalidRequest(notTrusted));
        return parseFn(source, options);
      });
    },
  };
}

const notTrusted = 'Only documents that the operator trusts are run here.';

function hashOf(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
