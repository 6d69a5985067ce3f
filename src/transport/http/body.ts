import type { IncomingMessage } from 'node:http';
import { promisify } from 'node:util';
import { brotliDecompress, gunzip, inflate } from 'node:zlib';
import { parse as parseMediaType } from 'content-type';
import express from 'express';
import { Fault } from '../../kernel/fault.ts';
import { parseJson } from '../../kernel/jsontext.ts';
import { requestQueueOf } from './pipelining.ts';

const MAX_BODY_BYTES = 1024 * 1024;
const readBytes = express.raw({ type: () => true, limit: MAX_BODY_BYTES });
const utf8 = new TextDecoder('utf-8', { fatal: true });

export type JsonObject = Readonly<Record<string, unknown>>;

/**
 * The body as a JSON object; an empty body is an empty object. Throws `invalid_request` for what is too large, not
 * JSON, not an object, of another media type, or not UTF-8: nothing is repaired on the way in.
 */
export async function readJsonObject(request: IncomingMessage): Promise<JsonObject> {
  const encoding = request.headers['content-encoding']?.toLowerCase() || 'identity';
  if (encoding !== 'identity' && !decoders.has(encoding)) throw Fault.invalidRequest('The content encoding is not supported.');
  const bytes = await decode(encoding, await readBody(request));
  if (bytes.length === 0) return {};
  if (!isJson(request.headers['content-type'])) throw Fault.invalidRequest('The media type must be application/json.');
  const value = parseBytes(bytes);
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw Fault.invalidRequest('The body must be a JSON object.');
  return value as JsonObject;
}

/** A body up to this size mostly arrives with the headers: the limit on connections bounds the memory of such bodies. */
const SMALL_BYTES = 16 * 1024;

/** Whether the headers declare a small body that is not compressed. */
export function isSmallBody({ headers }: IncomingMessage): boolean {
  const isPlain = headers['transfer-encoding'] === undefined && headers['content-encoding'] === undefined;
  return isPlain && Number(headers['content-length'] ?? 0) <= SMALL_BYTES;
}

/**
 * Counts a large body while it arrives, as a slow client keeps it in memory for long; one that turns out to be too large keeps
 * nothing, and is only read to its end. Returns a function that releases its bytes.
 */
function countBody(request: IncomingMessage, onTooLarge: () => void): () => void {
  const queue = isSmallBody(request) ? null : requestQueueOf(request.socket);
  if (!queue) return () => {};
  let size = 0;
  const release = () => {
    request.off('data', count);
    queue.reserve(request, -size);
    size = 0;
  };
  const count = (part: Buffer) => {
    size += part.length;
    queue.reserve(request, part.length);
    if (size <= MAX_BODY_BYTES) return;
    release();
    onTooLarge();
  };
  request.on('data', count);
  return release;
}

const decoders = new Map([
  ['gzip', promisify<Buffer, object, Buffer>(gunzip)],
  ['deflate', promisify<Buffer, object, Buffer>(inflate)],
  ['br', promisify<Buffer, object, Buffer>(brotliDecompress)],
]);

/** Decompresses a complete body: the output of a partial one would be in memory without being counted. */
async function decode(encoding: string, bytes: Buffer): Promise<Buffer> {
  const decompress = decoders.get(encoding);
  if (!decompress || bytes.length === 0) return bytes;
  try {
    return await decompress(bytes, { maxOutputLength: MAX_BODY_BYTES });
  } catch (failure) {
    throw explainFailure((failure as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE');
  }
}

function readBody(request: IncomingMessage & { body?: unknown }): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const refuse = () => reject(explainFailure(true));
    if (Number(request.headers['content-length'] ?? 0) > MAX_BODY_BYTES) return refuse();
    const release = countBody(request, refuse);
    // The parser would decompress the body while it arrives.
    delete request.headers['content-encoding'];
    // The parser writes nothing: it needs no response.
    readBytes(request as express.Request, {} as express.Response, (failure?: { type?: unknown }) => {
      release();
      if (failure) return reject(explainFailure(failure.type === 'entity.too.large'));
      if (Buffer.isBuffer(request.body)) resolve(request.body);
      // The parser reads nothing of a request whose client has gone, and reports no failure: an empty body may mean everything.
      else if (declaresBody(request)) reject(explainFailure(false));
      else resolve(Buffer.alloc(0));
    });
  });
}

function declaresBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}

function explainFailure(isTooLarge: boolean): Fault {
  return Fault.invalidRequest(isTooLarge ? `The body must not be larger than ${MAX_BODY_BYTES} bytes.` : 'The body could not be read.');
}

function isJson(header: string | undefined): boolean {
  try {
    const { type, parameters } = parseMediaType(header ?? '');
    return type === 'application/json' && /^utf-?8$/i.test(parameters.charset ?? 'utf-8');
  } catch {
    return false;
  }
}

function parseBytes(bytes: Buffer): unknown {
  try {
    return parseJson(utf8.decode(bytes));
  } catch {
    throw Fault.invalidRequest('The body is not valid JSON.');
  }
}
