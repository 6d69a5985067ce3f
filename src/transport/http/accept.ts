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

/** Longer values of the header are ignored: the time to parse one may grow with the square of its length. */
const MAX_ACCEPT_LENGTH = 1_000;

/** A client that accepts none of the forms gets JSON. */
export function readAccept(request: IncomingMessage): Accepted {
  const { accept } = request.headers;
  if (accept === undefined || accept === '*/*' || accept.length > MAX_ACCEPT_LENGTH) return anything;
  const accepted = accepts(request);
  const mediaType = accepted.type(mediaTypes);
  const canStream = Boolean(accepted.type('text/event-stream'));
  if (typeof mediaType === 'string') return { mediaType: mediaType.slice(0, -charset.length), canStream };
  return { mediaType: canStream ? null : json, canStream };
}
