import type { IncomingMessage, ServerResponse } from 'node:http';
import { promisify } from 'node:util';
import { brotliDecompress, gunzip, inflate } from 'node:zlib';
import { parse as parseMediaType } from 'content-type';
import { FairLimit } from '../../kernel/fairlimit.ts';
import { Fault } from '../../kernel/fault.ts';
import { parseTracked } from '../../kernel/json/exact.ts';
import { countParts } from '../../kernel/json/scan.ts';
import { Turns } from '../../kernel/turns.ts';
import { declaresBody, isSmallBody, SMALL_BYTES } from './bodyheaders.ts';
import { requestQueueOf } from './requestqueue.ts';
import { readPath } from './url.ts';

const MAX_BODY_BYTES = 1024 * 1024;
/** Each list, object and field takes many times the bytes of its text. */
const MAX_BODY_PARTS = 25_000;
/** Bodies larger than `SMALL_BYTES` that are decoded, parsed and kept at the same time, in a process. */
const LARGE_BODIES_AT_ONCE = 8;
/**
 * How long the request of a large body keeps its slot at most, also if its response is still to be written or is a stream. So no
 * client can hold the slots for long, within its request budget.
 */
const MAX_SLOT_MS = 2_000;
const utf8 = new TextDecoder('utf-8', { fatal: true });
const largeBodies = new FairLimit(LARGE_BODIES_AT_ONCE);
/** A slot is kept meanwhile, so these are not the turns of documents and events, of which a user may have thousands. */
const bodyTurns = new Turns();

export type JsonObject = Readonly<Record<string, unknown>>;

/** The request whose body is read. */
interface BodyExchange {
  /** The user; without one, all clients without a credential together. */
  readonly turnKey: string;
  /** The size of the decompressed body, in bytes, once it has been read. */
  bodyBytes: number;
}

/**
 * The body as a JSON object; an empty body is an empty object. Throws `invalid_request` for what is too large, not
 * JSON, not an object, of another media type, or not UTF-8: nothing is repaired on the way in. A large body, or a compressed
 * one, waits until few others are in memory, and behind others of its user; what was parsed is in memory until the
 * response is written.
 */
export async function readJsonObject(request: IncomingMessage, response: ServerResponse, exchange: BodyExchange): Promise<JsonObject> {
  const { 'transfer-encoding': coding = 'chunked', 'content-encoding': given } = request.headers;
  if (coding.toLowerCase() !== 'chunked') throw Fault.invalidRequest('The transfer coding is not supported.');
  const encoding = given?.toLowerCase() || 'identity';
  if (encoding !== 'identity' && !decoders.has(encoding)) throw Fault.invalidRequest('The content encoding is not supported.');
  const body = await readBody(request);
  if (encoding === 'identity' && body.bytes.length <= SMALL_BYTES) {
    // A body whose length was not declared has been counted.
    body.release();
    return parseObject(request, body.bytes, exchange);
  }
  return new Promise((resolve, reject) => {
    void largeBodies.run(exchange.turnKey, async () => {
      try {
        if (response.destroyed) throw unreadableBody();
        const bytes = await decode(encoding, body.bytes);
        await bodyTurns.take(exchange.turnKey);
        resolve(parseObject(request, bytes, exchange));
        if (bytes.length <= SMALL_BYTES) return;
      } catch (failure) {
        return reject(failure);
      } finally {
        body.release();
      }
      await whenWritten(response);
    });
  });
}

function parseObject({ headersDistinct, url = '' }: IncomingMessage, bytes: Buffer, exchange: BodyExchange): JsonObject {
  exchange.bodyBytes = bytes.length;
  if (bytes.length === 0) return {};
  // `headers` has only the first of several; a proxy may have read another one.
  const [mediaType, ...more] = headersDistinct['content-type'] ?? [];
  if (more.length > 0) throw Fault.invalidRequest('The header Content-Type is given more than once.');
  checkMediaType(mediaType);
  const value = parseBytes(bytes);
  if (Array.isArray(value) && readPath(url) === '/graphql')
    throw Fault.invalidRequest('Batches are not supported: send each operation, a JSON object, in a request of its own.');
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw Fault.invalidRequest('The body must be a JSON object.');
  return value as JsonObject;
}

function whenWritten(response: ServerResponse): Promise<void> {
  if (response.writableEnded || response.destroyed) return Promise.resolve();
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, MAX_SLOT_MS).unref();
    const finish = () => {
      clearTimeout(timer);
      resolve();
    };
    response.once('prefinish', finish).once('close', finish);
  });
}

/** The value that a decoder of `node:zlib` returns with its option `info`. */
interface Decoded {
  readonly buffer: Buffer;
  /** `bytesWritten`: how many of the compressed bytes it has taken. */
  readonly engine: { readonly bytesWritten: number };
}

type Decompress = (bytes: Buffer, options: object) => Promise<Decoded>;

/** The types of `node:zlib` do not know what `info` changes. */
const decoders = new Map([
  ['gzip', promisify(gunzip) as unknown as Decompress],
  ['deflate', promisify(inflate) as unknown as Decompress],
  ['br', promisify(brotliDecompress) as unknown as Decompress],
]);

/** Decompresses a complete body: the output of a partial one would be in memory without being counted. */
async function decode(encoding: string, bytes: Buffer): Promise<Buffer> {
  const decompress = decoders.get(encoding);
  if (!decompress || bytes.length === 0) return bytes;
  const { buffer, engine } = await decompress(bytes, { maxOutputLength: MAX_BODY_BYTES, info: true }).catch((failure) => {
    throw failure.code === 'ERR_BUFFER_TOO_LARGE' ? tooLargeBody() : unreadableBody();
  });
  // The decoders stop at the end of the compressed data, and ignore what is behind it.
  if (engine.bytesWritten < bytes.length) throw unreadableBody();
  return buffer;
}

/** A complete body, as it came in; its bytes count for its connection until they are released. */
interface Body {
  readonly bytes: Buffer;
  release(): void;
}

const emptyBody: Body = { bytes: Buffer.alloc(0), release: () => {} };
const FIRST_BYTES = 4 * 1024;

/**
 * Reads a body into one buffer, because a client may send tiny chunks, each of which takes much more memory than its bytes. A large
 * body is counted while it arrives, as a slow client keeps it in memory for long. The rest of one that is too large is read and dropped.
 */
function readBody(request: IncomingMessage): Promise<Body> {
  return new Promise((resolve, reject) => {
    const declared = Number(request.headers['content-length'] ?? 0);
    if (declared > MAX_BODY_BYTES) return reject(tooLargeBody());
    if (!declaresBody(request)) return resolve(emptyBody);
    // The client has gone. Its body must not be taken for an empty one, which for some routes means everything (mark all as read).
    if (request.destroyed) return reject(unreadableBody());
    const queue = isSmallBody(request) ? null : requestQueueOf(request.socket);
    let held = emptyBody.bytes;
    let length = 0;
    const hold = (buffer: Buffer) => {
      queue?.reserve(request, buffer.length - held.length);
      held = buffer;
    };
    const release = () => hold(emptyBody.bytes);
    const add = (part: Buffer) => {
      const end = length + part.length;
      if (end > MAX_BODY_BYTES) return fail(tooLargeBody());
      if (end > held.length) {
        const grown = Buffer.allocUnsafeSlow(Math.min(declared || MAX_BODY_BYTES, Math.max(end, 2 * held.length, FIRST_BYTES)));
        held.copy(grown, 0, 0, length);
        hold(grown);
      }
      part.copy(held, length);
      length = end;
    };
    const fail = (fault: Fault) => {
      request.off('data', add).resume();
      release();
      reject(fault);
    };
    const failUnread = () => fail(unreadableBody());
    request.on('data', add).once('error', failUnread).once('close', failUnread);
    request.once('end', () => {
      request.off('data', add).off('error', failUnread).off('close', failUnread);
      resolve({ bytes: held.subarray(0, length), release });
    });
  });
}

const tooLargeBody = () => Fault.invalidRequest(`The body must not be larger than ${MAX_BODY_BYTES} bytes.`);
const unreadableBody = () => Fault.invalidRequest('The body could not be read.');

/** Throws `invalid_request` for another media type than JSON in UTF-8. */
function checkMediaType(header: string | undefined): void {
  const { type, parameters } = parseMediaType(header ?? '');
  if (type !== 'application/json') throw Fault.invalidRequest('The media type must be application/json.');
  if (!/^(?:utf-?8|us-ascii)$/i.test(parameters.charset ?? 'utf-8'))
    throw Fault.invalidRequest('The charset of the media type must be UTF-8 or US-ASCII, or left out.');
}

function parseBytes(bytes: Buffer): unknown {
  let text: string;
  try {
    text = utf8.decode(bytes);
  } catch {
    throw invalidJson();
  }
  if (text.length > MAX_BODY_PARTS && countParts(text) > MAX_BODY_PARTS)
    throw Fault.invalidRequest(`The body must not have more than ${MAX_BODY_PARTS} lists, objects and fields.`);
  try {
    return parseTracked(text);
  } catch {
    throw invalidJson();
  }
}

const invalidJson = () => Fault.invalidRequest('The body is not valid JSON.');
