import type { IncomingMessage } from 'node:http';
import accepts from 'accepts';

/** The forms of a response that a client accepts: one document in a media type, or a stream. */
export interface Accepted {
  /** Null where the client accepts only a stream. */
  readonly mediaType: string | null;
  readonly canStream: boolean;
}

const json = 'application/json';
export const graphqlMediaType = 'application/graphql-response+json';
const charset = '; charset=utf-8';
const mediaTypes = [json, graphqlMediaType].map((type) => type + charset);
const anything: Accepted = { mediaType: json, canStream: true };
const onlyJson: Accepted = { mediaType: json, canStream: false };

/** Longer values of these headers are not read: browsers send some 150 characters, and 16 KiB of them take milliseconds to parse. */
const MAX_LENGTH = 1_000;

/** A client that accepts none of the forms gets JSON, and so does one with a header that is too long: Yoga might find no stream in it. */
export function readAccept(request: IncomingMessage): Accepted {
  const { accept } = request.headers;
  if (accept === undefined || accept === '*/*') return anything;
  if (isTooLong(accept)) return onlyJson;
  const accepted = accepts(request);
  const mediaType = accepted.type(mediaTypes);
  const canStream = Boolean(accepted.type('text/event-stream'));
  if (typeof mediaType === 'string') return { mediaType: mediaType.slice(0, -charset.length), canStream };
  return { mediaType: canStream ? null : json, canStream };
}

/** Whether a client prefers a page to JSON, as browsers do. */
export function wantsPage(request: IncomingMessage): boolean {
  return !isTooLong(request.headers.accept) && accepts(request).type(['json', 'html']) === 'html';
}

/** The encoding of a response that is never compressed with Brotli, or of one that may be. */
export function chooseEncoding(request: IncomingMessage, hasBrotli: boolean): 'br' | 'gzip' | 'identity' {
  if (isTooLong(request.headers['accept-encoding'])) return 'identity';
  const accepted = accepts(request);
  // Browsers list Brotli last, although they do not prefer it least.
  if (hasBrotli && accepted.encodings().includes('br')) return 'br';
  return accepted.encoding(['gzip', 'identity']) === 'gzip' ? 'gzip' : 'identity';
}

function isTooLong(header = ''): boolean {
  return header.length > MAX_LENGTH;
}
