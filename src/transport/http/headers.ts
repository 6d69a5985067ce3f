/**
 * The headers of every response (name, value, name, value): helmet's defaults, except that other sites may embed an API's responses,
 * and that each page has a content policy of its own. Every response varies by origin, even one without CORS headers, so that a
 * cache does not serve it to a page of another origin.
 */
export const standardHeaders: readonly string[] = [
  ['Vary', 'Origin'],
  ['Cross-Origin-Opener-Policy', 'same-origin'],
  ['Cross-Origin-Resource-Policy', 'cross-origin'],
  ['Origin-Agent-Cluster', '?1'],
  ['Referrer-Policy', 'no-referrer'],
  ['Strict-Transport-Security', 'max-age=31536000; includeSubDomains'],
  ['X-Content-Type-Options', 'nosniff'],
  ['X-DNS-Prefetch-Control', 'off'],
  ['X-Download-Options', 'noopen'],
  ['X-Frame-Options', 'SAMEORIGIN'],
  ['X-Permitted-Cross-Domain-Policies', 'none'],
  ['X-XSS-Protection', '0'],
].flat();
