import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import ipaddr from 'ipaddr.js';
import proxyAddr from 'proxy-addr';
import { createTextCache } from '../../kernel/cache.ts';

/** Which address a request is charged to. */
export interface ClientAddresses {
  of(request: IncomingMessage): string;
  /** Whether a connection's peer is a trusted proxy. */
  isProxy(socket: Socket): boolean;
}

/** Charges the peer's own address; for a trusted proxy, the last address in X-Forwarded-For that is not a trusted proxy. */
export function createClientAddresses(trustedProxies: readonly string[]): ClientAddresses {
  const isTrusted = proxyAddr.compile([...trustedProxies]);
  const isProxy = (socket: Socket) => isTrusted(socket.remoteAddress ?? '', 0);
  return {
    of: (request) => normalizeAddress(isProxy(request.socket) ? proxyAddr(request, isTrusted) : (request.socket.remoteAddress ?? '')),
    isProxy,
  };
}

/** Some proxies include the client's port: `203.0.113.1:4711`, `[2001:db8::1]:4711`. */
const withPort = /^(?:([\d.]+):\d+|\[([\da-f:.]+)\](?::\d+)?)$/i;

const folded = createTextCache<string>();

/** The address that a budget is charged to: an IPv4 address, or the network of 64 bits that an IPv6 client has for itself. */
export function normalizeAddress(text: string): string {
  const cached = folded.get(text);
  if (cached) return cached;
  const bare = withPort.exec(text)?.slice(1).find(Boolean) ?? text;
  if (!ipaddr.isValid(bare)) return 'unknown';
  const address = ipaddr.process(bare);
  const charged = address.kind() === 'ipv4' ? address.toString() : networkOf(address as ipaddr.IPv6);
  folded.set(text, charged);
  return charged;
}

function networkOf({ parts }: ipaddr.IPv6): string {
  const network = parts.slice(0, 4).map((part) => part.toString(16));
  return `${network.join(':')}::/64`;
}

/** Scheme, host and port that the client used. */
export function requestOrigin(request: IncomingMessage, addresses: ClientAddresses): string {
  const [forwarded] = addresses.isProxy(request.socket) ? String(request.headers['x-forwarded-proto'] ?? '').split(',') : [];
  const origin = `${forwarded?.trim() === 'https' ? 'https' : 'http'}://${request.headers.host ?? 'localhost'}`;
  return URL.canParse(origin) ? new URL(origin).origin : 'http://localhost';
}

interface OriginRules {
  readonly addresses: ClientAddresses;
  readonly config: { readonly publicUrl: string | null; readonly allowedOrigins: readonly string[] };
}

/** Whether a page of an origin may call this server: the configured origins, and the server's own. One rule for CORS and sockets. */
export function createOriginCheck({ config, addresses }: OriginRules): (origin: string, request: IncomingMessage) => boolean {
  const allowed = new Set(config.allowedOrigins);
  const own = config.publicUrl && new URL(config.publicUrl).origin;
  return (origin, request) => allowed.has(origin) || origin === (own ?? requestOrigin(request, addresses));
}
