import type { ServerResponse } from 'node:http';
import { promisify } from 'node:util';
import { constants, gzip, gzipSync } from 'node:zlib';
import accepts from 'accepts';
import { exchangeOf } from './exchange.ts';
import { send } from './send.ts';

/** Smaller answers are sent as they are: to compress one would cost as much as all else that a request takes. */
const MIN_LENGTH = 8 * 1024;

/** Up to here an answer is compressed at once, within half a millisecond; a larger one beside the event loop. */
const MAX_SYNC_LENGTH = 64 * 1024;

/**
 * Beside the event loop two are compressed at a time, half of the threads that the process has for that; whoever comes then
 * gets it plain. So what compression holds in memory is bounded by two answers.
 */
const MAX_AT_ONCE = 2;

const options = { level: constants.Z_BEST_SPEED };
const compressAside = promisify(gzip);
let atOnce = 0;

type Headers = Readonly<Record<string, string>>;

/** Writes an answer whole, compressed where that is worth it and the client takes it. */
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
  const sendBytes = (bytes: Buffer) => send(response, status, bytes, mediaType, asCompressed(plain));
  if (accepts(response.req).encoding(['gzip', 'identity']) !== 'gzip') return sendPlain();
  if (text.length <= MAX_SYNC_LENGTH) return sendBytes(gzipSync(text, options));
  if (atOnce >= MAX_AT_ONCE) return sendPlain();
  atOnce += 1;
  compressAside(text, options)
    .finally(() => {
      atOnce -= 1;
    })
    // A client that has gone takes no answer.
    .then((bytes) => response.destroyed || sendBytes(bytes), sendPlain);
}

/** A strong tag names the bytes of an answer, of which there are two now: the tag of the compressed ones is weak, and as good in `If-Match`. */
function asCompressed({ ETag, ...headers }: Headers): Headers {
  return { ...headers, ...(ETag && { ETag: `W/${ETag}` }), 'Content-Encoding': 'gzip' };
}
