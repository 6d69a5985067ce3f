import type { IncomingMessage } from 'node:http';
import { parse as parseMediaType } from 'content-type';
import express from 'express';
import { Fault } from '../kernel/fault.ts';

const MAX_BODY_BYTES = 1024 * 1024;
const readBytes = express.raw({ type: () => true, limit: MAX_BODY_BYTES });
const utf8 = new TextDecoder('utf-8', { fatal: true });

/**
 * The body as a JSON object; an empty body is an empty object. Throws `invalid_request` for what is too large, not
 * JSON, not an object, of another media type, or not UTF-8: nothing is repaired on the way in.
 */
export async function readJsonObject(request: IncomingMessage): Promise<Readonly<Record<string, unknown>>> {
  const bytes = await readBody(request);
  if (bytes.length === 0) return {};
  if (!isJson(request.headers['content-type'])) throw Fault.invalidRequest('The media type must be application/json.');
  const value = parseJson(bytes);
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw Fault.invalidRequest('The body must be a JSON object.');
  return value as Record<string, unknown>;
}

function readBody(request: IncomingMessage & { body?: unknown }): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    // The parser writes nothing: it needs no response.
    readBytes(request as express.Request, {} as express.Response, (failure?: unknown) => {
      if (failure) return reject(Fault.invalidRequest(describe(failure)));
      resolve(Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0));
    });
  });
}

function describe(failure: unknown): string {
  const type = (failure as { type?: unknown }).type;
  if (type === 'entity.too.large') return `The body must not be larger than ${MAX_BODY_BYTES} bytes.`;
  if (type === 'encoding.unsupported') return 'The content encoding is not supported.';
  return 'The body could not be read.';
}

function isJson(header: string | undefined): boolean {
  try {
    const { type, parameters } = parseMediaType(header ?? '');
    return type === 'application/json' && /^utf-?8$/i.test(parameters.charset ?? 'utf-8');
  } catch {
    return false;
  }
}

function parseJson(bytes: Buffer): unknown {
  try {
    return JSON.parse(utf8.decode(bytes));
  } catch {
    throw Fault.invalidRequest('The body is not valid JSON.');
  }
}
