import type { ServerResponse } from 'node:http';
import { promisify } from 'node:util';
import { constants, gzip, gzipSync } from 'node:zlib';
import { chooseEncoding } from './accept.ts';
import { exchangeOf } from './exchange.ts';
import { send } from './send.ts';

/** Smaller responses are sent as they are: compressing one would cost as much as the rest of the request. */
const MIN_LENGTH = 8 * 1024;

/** Responses up to this size are compressed synchronously, within half a millisecond; larger ones in the thread pool. */
const MAX_SYNC_LENGTH = 64 * 1024;

/**
 * The responses that the thread pool compresses at the same time: half of its threads. Meanwhile, other responses are sent
 * uncompressed, so that compression keeps at most two responses in memory.
 */
const MAX_CONCURRENT = 2;

const options = { level: constants.Z_BEST_SPEED };
const gzipAsync = promisify(gzip);
let concurrent = 0;

type Headers = Readonly<Record<string, string>>;

/** Writes a complete response, compressed if it is large enough and the client accepts gzip. */
export function sendCompressed(
  response: ServerResponse,
  status: number,
  text: string | Buffer,
  mediaType: string,
  headers?: Headers,
): void {
  if (text.length < MIN_LENGTH || !exchangeOf(response.req).compresses) return send(response, status, text, mediaType, headers);
  const plain = { ...headers, Vary: 'Accept-Encoding' };
  const sendPlain = () => send(response, status, text, mediaType, plain);
  const sendGzipped = (bytes: Buffer) => send(response, status, bytes, mediaType, asCompressed(plain));
  if (chooseEncoding(response.req, false) !== 'gzip') return sendPlain();
  if (text.length <= MAX_SYNC_LENGTH) return sendGzipped(gzipSync(text, options));
  if (concurrent >= MAX_CONCURRENT) return sendPlain();
  concurrent += 1;
  gzipAsync(text, options)
    .finally(() => {
      concurrent -= 1;
    })
    // The client may have gone meanwhile.
    .then((bytes) => response.destroyed || sendGzipped(bytes), sendPlain);
}

/** A strong ETag identifies the bytes, which compression changes: the compressed response has a weak one, which `If-Match` accepts too. */
function asCompressed({ ETag, ...headers }: Headers): Headers {
  return { ...headers, ...(ETag && { ETag: `W/${ETag}` }), 'Content-Encoding': 'gzip' };
}
