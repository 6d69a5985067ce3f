import { Fault } from '../kernel/fault.ts';

/** A URL's query string, from its question mark on; empty without one. */
export function queryText(url: string): string {
  const start = url.indexOf('?');
  return start < 0 ? '' : url.slice(start);
}

/** Throws `invalid_request` for what is not percent-encoded UTF-8: URLSearchParams would repair it. */
export function readQueryString(url: string): URLSearchParams {
  const text = queryText(url);
  try {
    decodeURIComponent(text);
  } catch {
    throw Fault.invalidRequest('The query string is not valid.');
  }
  return new URLSearchParams(text);
}
