import { Fault } from '../../kernel/fault.ts';

/** The path of a request's target, which may be an absolute URL, as in a request to a proxy. */
export function readPath(url: string): string {
  return /^(?:[A-Za-z][A-Za-z0-9+.-]*:\/\/[^/?#]*)?([^?#]*)/.exec(url)?.[1] ?? '';
}

/** The path and query of a request's target, which may be an absolute URL (RFC 9112 §3.2.2); an asterisk stays. */
export function readTarget(url: string): string {
  return url.startsWith('/') || url === '*' ? url : `${readPath(url) || '/'}${queryText(url)}`;
}

/** A regular expression for a route's path, with its parameters (`:name`) as named groups. */
export function pathPattern(path: string): RegExp {
  return new RegExp(`^${path.replace(/:(\w+)/g, '(?<$1>[^/]+)')}$`);
}

/** A URL's query string, from its question mark on; empty without one. */
export function queryText(url: string): string {
  const start = url.indexOf('?');
  return start < 0 ? '' : url.slice(start);
}

/** Throws `invalid_request` for a query string that is not percent-encoded UTF-8, which URLSearchParams would repair. */
export function readQueryString(url: string): URLSearchParams {
  const text = queryText(url);
  try {
    decodeURIComponent(text);
  } catch {
    throw Fault.invalidRequest('The query string is not valid.');
  }
  return new URLSearchParams(text);
}

/** Whether a path belongs to v1, where even one that does not exist requires a credential. */
export const isBelowV1 = (path: string): boolean => path === '/v1' || path.startsWith('/v1/');
