import type { IncomingMessage } from 'node:http';
import accepts from 'accepts';
import { exceedsDepth } from '../../kernel/depth.ts';
import { Fault } from '../../kernel/fault.ts';
import { MAX_VARIABLE_DEPTH } from '../../pipeline/limits.ts';
import { readHash } from '../../pipeline/trusted.ts';

/** An operation that a client asks for. */
export interface OperationRequest {
  /** The text of its document; empty where it names that by a hash. */
  readonly query: string;
  readonly hash: string | null;
  readonly operationName: string | null;
  readonly variables: Readonly<Record<string, unknown>>;
}

/** Null for a body with anything unusual in it, which is Yoga's to word. */
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
  if (!isObject(values) || exceedsDepth(values, MAX_VARIABLE_DEPTH)) return null;
  return { query, hash, operationName, variables: values };
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Yoga would join what is given twice, and parses JSON unguarded. */
export function checkParameters(query: URLSearchParams): void {
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

/** How an answer may be given: as a whole, in a media type, and whether as a stream. */
interface Acceptable {
  /** Null where the client takes nothing but a stream. */
  readonly mediaType: string | null;
  readonly canStream: boolean;
}

const json = 'application/json';
const charset = '; charset=utf-8';
const mediaTypes = [json, 'application/graphql-response+json'].map((type) => type + charset);
const plain: Acceptable = { mediaType: json, canStream: true };

/** A client that takes none of what there is gets JSON, rather than nothing. */
export function readAccept(request: IncomingMessage): Acceptable {
  const { accept } = request.headers;
  if (accept === undefined || accept === '*/*') return plain;
  const accepted = accepts(request);
  const mediaType = accepted.type(mediaTypes);
  const canStream = Boolean(accepted.type('text/event-stream'));
  const isTaken = typeof mediaType === 'string';
  return { mediaType: isTaken ? mediaType.slice(0, -charset.length) : canStream ? null : json, canStream };
}
