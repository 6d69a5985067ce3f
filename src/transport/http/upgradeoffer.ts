import type { IncomingMessage, Server } from 'node:http';
import type { Socket } from 'node:net';
import { declaresBody } from './bodyheaders.ts';

export type Upgrade = (request: IncomingMessage, socket: Socket, head: Buffer) => void;

const parseTokens = (header: string) => header.split(',').map((token) => token.trim().toLowerCase());

/**
 * Whether a request offers an upgrade to WebSocket, perhaps among other protocols. Only the offer of a GET of HTTP/1.1 counts: other
 * methods have no handshake (RFC 6455, §4.1), and a server ignores the offers of HTTP/1.0 (RFC 9110, §7.8). The offer of a request with
 * a body is ignored too: before version 26, Node takes the body for the first bytes of the new protocol.
 */
export function isWebSocket(request: IncomingMessage): boolean {
  const { method, httpVersion, headers } = request;
  const isHandshake = method === 'GET' && httpVersion === '1.1' && !declaresBody(request);
  const isOffered = isHandshake && parseTokens(headers.upgrade ?? '').includes('websocket');
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
  readsBodies && request.headers.upgrade !== undefined && declaresBody(request);

/** An option of `createServer`, which the types of Node.js 20 lack. */
export const upgradeOptions = { shouldUpgradeCallback: (request: IncomingMessage) => !isOfferIgnored(request) };

/**
 * Replays a request at which the parser has stopped into the server, without its offer of another protocol, if it has one. A server
 * may ignore an offer (RFC 9110, §7.8), but Node treats every one as an upgrade, and stops reading the connection after the headers.
 */
export function replay(server: Server, request: IncomingMessage, socket: Socket, rest: Buffer): void {
  const lines = [`${request.method} ${request.url} HTTP/${request.httpVersion}`];
  for (let index = 0; index < request.rawHeaders.length; index += 2) {
    const [name = '', value = ''] = request.rawHeaders.slice(index, index + 2);
    const replayed = withoutUpgrade(name.toLowerCase(), value);
    if (replayed !== null) lines.push(`${name}: ${replayed}`);
  }
  // The client has closed its side: nothing can be put back, and Node does not answer such a client either.
  if (socket.readableEnded) return void socket.end();
  // The server does not stop the timer of an idle connection that it has handed over.
  socket.setTimeout(0);
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
