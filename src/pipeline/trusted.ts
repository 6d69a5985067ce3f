import { createHash } from 'node:crypto';
import { type DocumentNode, GraphQLError, type GraphQLSchema, Kind, Source } from 'graphql';
import type { Plugin } from 'graphql-yoga';
import { createCostCheck, takeSmallestPages } from '../graph/cost.ts';
import { Fault, statusByCode } from '../kernel/fault.ts';
import { toGraphqlError } from './mask.ts';
import type { PipelineSteps } from './operation.ts';
import { literalErrorsByDocument } from './validation.ts';

/** The documents that the operator trusts. */
export interface TrustedDocuments {
  /** By the SHA-256 of the text, in hexadecimal digits. Empty: persisted queries are not supported. */
  readonly texts: ReadonlyMap<string, string>;
  /** Whether all other documents are rejected. */
  readonly isOnly: boolean;
}

export const trustsNone: TrustedDocuments = { texts: new Map(), isOnly: false };

/** Reads a JSON object of texts by their hashes, which may begin with `sha256:`. Throws an Error that describes the first problem. */
export function readTrusted(json: string): ReadonlyMap<string, string> {
  const value: unknown = JSON.parse(json);
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new Error('It is not a JSON object.');
  const texts = new Map<string, string>();
  for (const [key, text] of Object.entries(value)) {
    const hash = withoutPrefix(key);
    if (typeof text !== 'string') throw new Error(`What ${hash.slice(0, 64)} names is not a string.`);
    if (hash !== hashOf(text)) throw new Error(`${hash.slice(0, 64)} is not the SHA-256 of its document.`);
    texts.set(hash, text);
  }
  if (texts.size === 0) throw new Error('There is no document in it.');
  return texts;
}

/**
 * Throws an Error for the first document that is not valid against the schema, or of which an operation exceeds the limits of
 * documents whatever its variables are.
 */
export function validateTrusted(
  { texts }: TrustedDocuments,
  { schema, parse, validate }: Pick<PipelineSteps, 'schema' | 'parse' | 'validate'>,
) {
  for (const [hash, text] of texts) {
    const problem = describeProblem(() => {
      const document = parse(text);
      const [error] = validate(schema, document);
      if (error) throw error;
      return findLiteralError(document) ?? findExceededLimit(schema, document);
    });
    if (problem !== null) throw new Error(`The document ${hash} is refused: ${problem}`);
  }
}

function describeProblem(find: () => string | null): string | null {
  try {
    return find();
  } catch (failure) {
    if (failure instanceof GraphQLError) return failure.message;
    throw failure;
  }
}

function findLiteralError(document: DocumentNode): string | null {
  const [invalid] = Object.entries(literalErrorsByDocument.get(document) ?? {});
  return invalid ? `${invalid[0]}: ${invalid[1][0]}` : null;
}

function findExceededLimit(schema: GraphQLSchema, document: DocumentNode): string | null {
  const smallest = takeSmallestPages(schema, document);
  for (const definition of smallest.definitions) {
    if (definition.kind !== Kind.OPERATION_DEFINITION) continue;
    const { exceeded } = createCostCheck(schema, smallest, definition)({});
    if (exceeded !== null) return exceeded;
  }
  return null;
}

/** The part of a request that names its document, by text or by hash. */
interface DocumentParams {
  readonly query?: unknown;
  readonly extensions?: unknown;
}

/** The hash that is sent instead of a text, by Apollo's protocol of persisted queries; null if there is none. */
export function readHash({ query, extensions }: DocumentParams): string | null {
  if (query) return null;
  const { persistedQuery } = (extensions ?? {}) as { persistedQuery?: { version?: unknown; sha256Hash?: unknown } | null };
  const { version, sha256Hash } = persistedQuery ?? {};
  return version === 1 && typeof sha256Hash === 'string' ? withoutPrefix(sha256Hash) : null;
}

/** A hash without the name of its algorithm, by which GraphQL over HTTP and graphql-codegen begin it. */
function withoutPrefix(hash: string): string {
  return hash.replace(/^sha256:/, '');
}

/** The text of a document by its hash. Throws the protocol's errors, after which a client sends the text. */
export function findText({ texts }: TrustedDocuments, hash: string): string {
  const text = texts.get(hash);
  if (text !== undefined) return text;
  throw protocolError(texts.size > 0 ? 'PersistedQueryNotFound' : 'PersistedQueryNotSupported');
}

/** The protocol's error codes, by message. */
const codes = { PersistedQueryNotFound: 'PERSISTED_QUERY_NOT_FOUND', PersistedQueryNotSupported: 'PERSISTED_QUERY_NOT_SUPPORTED' };

function protocolError(message: keyof typeof codes): GraphQLError {
  return new GraphQLError(message, { extensions: { code: codes[message], http: { status: statusByCode.invalid_request, spec: true } } });
}

/**
 * Replaces a hash by its text in requests that Yoga reads, and rejects other documents over every transport if only trusted ones
 * may run: Yoga's plugin for persisted operations does so for its own HTTP handler alone.
 */
export function trustDocuments(trusted: TrustedDocuments): Plugin {
  return {
    onParams({ params, setParams }) {
      const hash = readHash(params);
      // A request is in memory as long as its stream: 60 KB of extensions may take over a megabyte. Yoga rejects what is not an object.
      if (typeof params.extensions === 'object' && !Array.isArray(params.extensions)) Object.assign(params, { extensions: undefined });
      if (hash !== null) setParams({ ...params, query: findText(trusted, hash) });
    },
    onParse({ parseFn, setParseFn }) {
      if (!trusted.isOnly) return;
      // A cached document has passed this check.
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
