import type { DocumentTypeDecoration } from '@graphql-typed-document-node/core';
import type { DocumentNode } from 'graphql';
import { PorticoError, readJson, readRejection, toError, toForeign } from './error.ts';
import type { Http, Retry } from './http.ts';

/** A document of any code generator: a `TypedDocumentNode`, a typed string, or a plain string. */
export type TypedDocument<Data, Variables> = (DocumentNode | string | { toString(): string }) & DocumentTypeDecoration<Data, Variables>;

/** The data of an operation; after a failure, the error and whatever data was returned with it. */
export type QueryResult<Data> =
  | { readonly data: Data; readonly error?: undefined }
  | { readonly data: Data | null; readonly error: PorticoError };

/** The reader and writer of JSON: `JSON`, or one that also keeps numbers that a double cannot hold. */
export interface JsonCodec {
  parse(text: string): unknown;
  stringify(value: unknown): string;
}

/**
 * Runs an operation. A mutation is retried only if each of its inputs is a variable that has an `idempotencyKey`. Rejects only when the
 * signal aborts.
 */
export async function query<Data, Variables>(
  http: Http,
  document: TypedDocument<Data, Variables>,
  variables: Variables,
  signal?: AbortSignal,
  json: JsonCodec = JSON,
): Promise<QueryResult<Data>> {
  const text = await toText(document);
  const request = new Request(http.address('/graphql'), {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'application/json' },
    body: json.stringify({ query: text, variables }),
    signal: signal ?? null,
  });
  try {
    const response = await http.send(request, retryOf(text, variables));
    if (!response.ok) return { data: null, error: await readRejection(response) };
    const body = await readJson(response, json);
    if (body?.data === undefined && body?.errors === undefined) throw toForeign(response, 'an answer of GraphQL');
    const { data = null, errors } = body;
    return errors ? { data, error: toError(errors, response.status) } : { data };
  } catch (failure) {
    if (failure instanceof PorticoError) return { data: null, error: failure };
    throw failure;
  }
}

async function toText(document: DocumentNode | string | { toString(): string }): Promise<string> {
  if (typeof document === 'string' || !('kind' in document)) return String(document);
  const { print } = await import('graphql');
  return print(document);
}

function retryOf(text: string, variables: unknown): Retry {
  if (!isMutation(text)) return 'read';
  return haveKeys(variables) && !hasInlineInput(text) ? 'keyed write' : 'never';
}

/** Whether the document may contain a mutation. A false positive costs nothing but the retries. */
const isMutation = (text: string): boolean => /\bmutation\b/.test(text);

/** Whether the document may contain an input of its own, whose key is not known. */
const hasInlineInput = (text: string): boolean => /\binput\s*:\s*\{/.test(text);

function haveKeys(variables: unknown): boolean {
  const inputs = Object.values(variables ?? {}).filter((value) => typeof value === 'object' && value !== null);
  return inputs.length > 0 && inputs.every((input) => typeof input.idempotencyKey === 'string');
}
