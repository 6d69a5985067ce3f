import type { IncomingMessage, Server } from 'node:http';
import type { Socket } from 'node:net';
import { Fault } from '../../kernel/fault.ts';
import { isHost } from './addresses.ts';
import { invalidHttp } from './rawresponse.ts';

export type Upgrade = (request: IncomingMessage, socket: Socket, head: Buffer) => void;

/** The fault of a request's version or Host header (RFC 9112, §2.3 and §3.2); null where both are valid. */
export function checkHead(request: IncomingMessage): Fault | null {
  const { httpVersion } = request;
  if (httpVersion !== '1.1' && httpVersion !== '1.0') return Fault.invalidRequest('The request is not of HTTP/1.1 or HTTP/1.0.');
  const [host, ...more] = request.headersDistinct.host ?? [];
  if (more.length > 0) return Fault.invalidRequest('The header Host is given more than once.');
  if (host === undefined && httpVersion === '1.1') return Fault.invalidRequest('The header Host is missing.');
  if (host && !isHost(host)) return Fault.invalidRequest('The header Host is not a host.');
  return null;
}

/** The parser of Node.js 20.19.0 and 20.19.1 accepts header names that are empty or contain spaces. */
const isParserLenient = Number.parseInt(process.versions.llhttp ?? '', 10) < 9;

/** Whether a header has a name that another parser might read differently, so that nothing behind it can be trusted. */
const hasInvalidName = ({ rawHeaders }: IncomingMessage): boolean =>
  isParserLenient && rawHeaders.some((name, index) => index % 2 === 0 && (name === '' || name.includes(' ')));

/**
 * Whether the target is a URL (RFC 9112, §3.2.2) of another host than the header Host. A proxy may have judged the request by either
 * of them, so neither can be trusted to say which pages are the server's own.
 */
function hasOtherHost({ url = '', headers: { host } }: IncomingMessage): boolean {
  const [, scheme, authority = ''] = /^([a-z][a-z0-9+.-]*):\/\/([^/?#]*)/i.exec(url) ?? [];
  if (scheme === undefined || host === undefined) return false;
  // A scheme decides the default port; `file:` and others would also have a syntax of their own.
  const protocol = /^(https|wss)$/i.test(scheme) ? 'https' : 'http';
  const [named, given] = [authority, host].map((text) => (isHost(text) ? new URL(`${protocol}://${text}`).host : null));
  return named === null || named !== given;
}

/**
 * The headers of a request that Node passes on: it drops any more, which may be a condition, or the address that a proxy has added.
 * Each takes some 200 bytes, for as long as an event stream is open.
 */
export const MAX_HEADERS = 200;

/** The fault of headers that cannot be trusted, or not all of which are known; null for all others. */
export function findHeadersFault(request: IncomingMessage): Fault | null {
  if (request.rawHeaders.length > 2 * MAX_HEADERS) return Fault.invalidRequest('The request has too many headers.');
  if (hasInvalidName(request)) return invalidHttp();
  return hasOtherHost(request) ? Fault.invalidRequest('The header Host is not the host of the target.') : null;
}

const parseTokens = (header: string) => header.split(',').map((token) => token.trim().toLowerCase());

const hasBody = ({ headers }: IncomingMessage): boolean =>
  headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) !== 0;

/**
 * Whether a request offers an upgrade to WebSocket, perhaps among other protocols. The offer of a request with a body is ignored:
 * before version 26, Node takes the body for the first bytes of the new protocol.
 */
export function isWebSocket(request: IncomingMessage): boolean {
  const { headers } = request;
  const isOffered = !hasBody(request) && parseTokens(headers.upgrade ?? '').includes('websocket');
  // The `ws` library does not parse a list of protocols.
  if (isOffered) headers.upgrade = 'websocket';
  return isOffered;
}

/** From version 26 on, Node reads the body of a request that offers an upgrade, before what follows becomes the new protocol. */
const readsBodies = Number.parseInt(process.versions.node, 10) >= 26;

/**
 * Whether Node itself ignores the offer of a request, so that its body is read as any other. Node then loses the bytes that it has
 * already read behind the body, so the connection must be closed after the response.
 */
export const isOfferIgnored = (request: IncomingMessage): boolean =>
  readsBodies && request.headers.upgrade !== undefined && hasBody(request);

/** An option of `createServer`, which the types of Node.js 20 lack. */
export const upgradeOptions = { shouldUpgradeCallback: (request: IncomingMessage) => !isOfferIgnored(request) };

/**
 * Replays a request into the server without its offer of another protocol, which a server may ignore (RFC 9110, §7.8): Node
 * treats every offer as an upgrade, and stops reading the connection after the headers.
 */
export function replayWithoutUpgrade(server: Server, request: IncomingMessage, socket: Socket, rest: Buffer): void {
  const lines = [`${request.method} ${request.url} HTTP/${request.httpVersion}`];
  for (let index = 0; index < request.rawHeaders.length; index += 2) {
    const [name = '', value = ''] = request.rawHeaders.slice(index, index + 2);
    const replayed = withoutUpgrade(name.toLowerCase(), value);
    if (replayed !== null) lines.push(`${name}: ${replayed}`);
  }
  socket.unshift(Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1'), rest]));
  server.emit('connection', socket);
}

/** The value of a header without what makes an upgrade of the request; null where nothing is left. */
function withoutUpgrade(name: string, value: string): string | null {
  if (name === 'upgrade') return null;
  if (name !== 'connection') return value;
  const others = parseTokens(value).filter((token) => token !== 'upgrade');
  return others.join(', ') || null;
}
