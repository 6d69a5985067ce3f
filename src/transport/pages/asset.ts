import { createHash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { chooseEncoding } from '../http/accept.ts';
import { markShared } from '../http/countedresponse.ts';
import type { Middleware } from '../http/exchange.ts';
import { send, sendEmpty } from '../http/send.ts';

const compress = promisify(gzip);

/** A static file or page. */
export interface Asset {
  readonly mediaType: string;
  readonly headers?: Readonly<Record<string, string>>;
  load(): string | Uint8Array | Promise<string | Uint8Array>;
  /** The Brotli-compressed content, where the build has made one. */
  readonly loadBrotli?: (() => Promise<Uint8Array>) | undefined;
}

interface Representation {
  readonly bytes: Buffer;
  readonly headers: Readonly<Record<string, string>>;
}

interface Representations {
  readonly identity: Representation;
  readonly gzip: Representation;
  readonly br: Representation | null;
}

/**
 * Serves an asset: it is loaded and compressed at the first request, and cached in memory from then on. `express.static` would read
 * the file for each request, and compress nothing.
 */
export function serveAsset(asset: Asset): Middleware {
  let representations: Promise<Representations> | null = null;
  return async (request, response) => {
    representations ??= prepare(asset).catch((failure: unknown) => {
      representations = null;
      throw failure;
    });
    const cached = await representations;
    const { bytes, headers } = cached[chooseEncoding(request, cached.br !== null)] ?? cached.identity;
    if (matchesTag(request, headers.ETag ?? '')) return sendEmpty(response, 304, headers);
    send(response, 200, bytes, asset.mediaType, headers);
  };
}

async function prepare({ headers, load, loadBrotli }: Asset): Promise<Representations> {
  const bytes = Buffer.from(await load());
  const tag = createHash('sha256').update(bytes).digest('base64url').slice(0, 22);
  const common = { Vary: 'Accept-Encoding', ...headers };
  const encoded = (encoding: string, bytes: Buffer): Representation => ({
    bytes: markShared(bytes),
    headers: { ...common, ETag: `"${tag}-${encoding}"`, 'Content-Encoding': encoding },
  });
  return {
    identity: { bytes: markShared(bytes), headers: { ...common, ETag: `"${tag}"` } },
    gzip: encoded('gzip', await compress(bytes)),
    br: loadBrotli ? encoded('br', Buffer.from(await loadBrotli())) : null,
  };
}

/** Whether the client already has the representation (RFC 9110, §13.1.2). */
function matchesTag(request: IncomingMessage, tag: string): boolean {
  const tags = request.headers['if-none-match']?.split(',').map((one) => one.trim().replace(/^W\//, '')) ?? [];
  return tags.includes(tag) || tags.includes('*');
}
