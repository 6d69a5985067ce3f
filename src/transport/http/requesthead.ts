import type { IncomingMessage } from 'node:http';
import { Fault } from '../../kernel/fault.ts';
import { isHostHeader } from './addresses.ts';
import { invalidHttp } from './serverfaults.ts';

/** The fault of a request's version or Host header (RFC 9112, §2.3 and §3.2); null where both are valid. */
export function checkHead(request: IncomingMessage): Fault | null {
  const { httpVersion } = request;
  if (httpVersion !== '1.1' && httpVersion !== '1.0') return Fault.invalidRequest('The request is not of HTTP/1.1 or HTTP/1.0.');
  const [host, ...more] = request.headersDistinct.host ?? [];
  if (more.length > 0) return Fault.invalidRequest('The header Host is given more than once.');
  if (host === undefined && httpVersion === '1.1') return Fault.invalidRequest('The header Host is missing.');
  if (host && !isHostHeader(host)) return Fault.invalidRequest('The header Host is not a host.');
  return null;
}

/** The parser of Node.js 20.19.0 and 20.19.1 accepts header names that are empty or contain spaces. */
const isParserLenient = Number.parseInt(process.versions.llhttp ?? '', 10) < 9;

/** Whether a header has a name that another parser might read differently, so that nothing behind it can be trusted. */
const hasInvalidName = ({ rawHeaders }: IncomingMessage): boolean =>
  isParserLenient && rawHeaders.some((name, index) => index % 2 === 0 && (name === '' || name.includes(' ')));

/**
 * Whether the target has a character that no target has: the number sign, as a fragment is never sent (RFC 9112, §3.2), or one that is
 * not visible ASCII, which the lenient parser accepts. At these, Express divides a target by other rules than the server's own functions.
 */
const hasInvalidTarget = ({ url = '' }: IncomingMessage): boolean => /[^!-~]|#/.test(url);

/**
 * Whether the target is a URL (RFC 9112, §3.2.2) of another host than the header Host. A proxy may have judged the request by either
 * of them, so neither can be trusted to say which pages are the server's own.
 */
function hasOtherHost({ url = '', headers: { host } }: IncomingMessage): boolean {
  const [, scheme, authority = ''] = /^([a-z][a-z0-9+.-]*):\/\/([^/?#]*)/i.exec(url) ?? [];
  if (scheme === undefined || host === undefined) return false;
  // A scheme decides the default port; `file:` and others would also have a syntax of their own.
  const protocol = /^(https|wss)$/i.test(scheme) ? 'https' : 'http';
  const [named, given] = [authority, host].map((text) => (isHostHeader(text) ? new URL(`${protocol}://${text}`).host : null));
  return named === null || named !== given;
}

/**
 * The headers of a request that Node passes on: it drops any more, which may be a condition, or the address that a proxy has added.
 * Each takes some 200 bytes, for as long as an event stream is open.
 */
export const MAX_HEADERS = 200;

/** The fault of a target that is not valid, or of headers that cannot be trusted, or not all of which are known; null for all others. */
export function findHeadersFault(request: IncomingMessage): Fault | null {
  if (request.rawHeaders.length > 2 * MAX_HEADERS) return Fault.invalidRequest('The request has too many headers.');
  if (hasInvalidName(request) || hasInvalidTarget(request)) return invalidHttp();
  return hasOtherHost(request) ? Fault.invalidRequest('The header Host is not the host of the target.') : null;
}
