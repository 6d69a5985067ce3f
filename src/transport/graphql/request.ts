import { Fault } from '../../kernel/fault.ts';
import { exceedsDepth, MAX_REQUEST_DEPTH } from '../../kernel/json/depth.ts';
import { readHash } from '../../pipeline/trusted.ts';

/** An operation that a client requests. */
export interface OperationRequest {
  /** The text of its document; empty where `hash` identifies it. */
  readonly query: string;
  readonly hash: string | null;
  readonly operationName: string | null;
  readonly variables: Readonly<Record<string, unknown>>;
}

/** The operation of a request body; null for a body with anything unusual, which Yoga answers. */
export function readOperation({
  query = '',
  operationName = null,
  variables,
  extensions,
  ...others
}: Readonly<Record<string, unknown>>): OperationRequest | null {
  for (const _name in others) return null;
  if (!isObject(extensions ?? {})) return null;
  const hash = readHash({ query, extensions });
  if (typeof query !== 'string' || (query === '' && hash === null) || (operationName !== null && typeof operationName !== 'string'))
    return null;
  const values = variables ?? {};
  if (!isObject(values) || exceedsDepth(values, MAX_REQUEST_DEPTH)) return null;
  return { query, hash, operationName: operationName || null, variables: values };
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Throws `invalid_request` for the persisted documents of a draft of GraphQL over HTTP. */
export function checkDocumentId(hasDocumentId: boolean): void {
  if (!hasDocumentId) return;
  throw Fault.invalidRequest('A `documentId` is not supported: send the document as `query`, or its hash in `extensions.persistedQuery`.');
}

/** Throws `invalid_request` for duplicate parameters, which Yoga would join, and for invalid JSON, which Yoga would not catch. */
export function checkParameters(query: URLSearchParams): void {
  checkDocumentId(query.has('documentId'));
  for (const name of ['query', 'operationName', 'variables', 'extensions']) {
    if (query.getAll(name).length > 1) throw Fault.invalidRequest(`The parameter \`${name}\` is given more than once.`);
  }
  for (const name of ['variables', 'extensions']) {
    try {
      JSON.parse(query.get(name) || '{}');
    } catch {
      throw Fault.invalidRequest(`The parameter \`${name}\` is not valid JSON.`);
    }
  }
}
