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
  const isTrustedHop = (address: string, hop: number) => isTrusted(withoutPort(address), hop);
  const isProxy = (socket: Socket) => isTrusted(socket.remoteAddress ?? '', 0);
  return {
    of: (request: AddressedRequest) => {
      if (!isProxy(request.socket)) return normalizeAddress(request.socket.remoteAddress ?? '');
      return (request[proxied] ??= normalizeAddress(proxyAddr(request, isTrustedHop)));
    },
    isProxy,
  };
}

/** The address behind a proxy is stored on the request: each part of a body asks for it, and the header that has it may be 16 KiB. */
const proxied = Symbol('address');
type AddressedRequest = IncomingMessage & { [proxied]?: string };

/** Some proxies include the client's port: `203.0.113.1:4711`, `[2001:db8::1]:4711`, with a zone `[fe80::1%eth0]:4711`. */
const withPort = /^(?:([\d.]+):\d+|\[([\da-f:.]+)(?:%[^\]]+)?\](?::\d+)?)$/i;

const withoutPort = (address: string): string => withPort.exec(address)?.slice(1).find(Boolean) ?? address;

const normalized = createTextCache<string>();

/** The address that a budget is charged to: an IPv4 address, or the network of 64 bits that an IPv6 client has for itself. */
export function normalizeAddress(text: string): string {
  const cached = normalized.get(text);
  if (cached) return cached;
  const bare = withoutPort(text);
  if (!ipaddr.isValid(bare)) return 'unknown';
  const address = ipaddr.process(bare);
  const charged = address.kind() === 'ipv4' ? address.toString() : networkOf(address as ipaddr.IPv6);
  normalized.set(text, charged);
  return charged;
}

function networkOf({ parts }: ipaddr.IPv6): string {
  const network = parts.slice(0, 4).map((part) => part.toString(16));
  return `${network.join(':')}::/64`;
}

/**
 * Whether a text is a host, perhaps with a port (RFC 3986, §3.2.2). A URL could also have a user or a path. A host has a bound, as
 * 16 KiB of letters of other alphabets take a URL's parser 4 ms.
 */
export function isHostHeader(text: string): boolean {
  return /^([\w.~!$&'()*+,;=%-]{1,255}|\[[\da-f:.]{2,45}\])(:\d{0,5})?$/i.test(text) && URL.canParse(`http://${text}`);
}

/** Scheme, host and port that the client used; `localhost` in place of a host that is missing or malformed. */
export function requestOrigin(request: IncomingMessage, addresses: ClientAddresses): string {
  const [forwarded] = addresses.isProxy(request.socket) ? String(request.headers['x-forwarded-proto'] ?? '').split(',') : [];
  const { host = 'localhost' } = request.headers;
  return isHostHeader(host) ? new URL(`${forwarded?.trim() === 'https' ? 'https' : 'http'}://${host}`).origin : 'http://localhost';
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
