import type { IncomingMessage } from 'node:http';
import { Fault } from '../kernel/fault.ts';
import { looksLikeKey } from './apikey.ts';

/** The bearer token of a request (§5.1), or null without one. Throws `not_authenticated` for two, or another scheme. */
export function readBearer(request: IncomingMessage): string | null {
  // `headers` has only the first of several; a proxy may have taken another one for the credential.
  const values = request.headersDistinct.authorization ?? [];
  if (values.length === 0) return null;
  if (values.length > 1) throw Fault.invalidCredential('malformed');
  return readBearerText(values[0]);
}

/** The token of `Bearer <token>`. Throws `not_authenticated` for anything else. */
export function readBearerText(value: unknown): string {
  const match = typeof value === 'string' ? /^Bearer +([A-Za-z0-9\-._~+/]+=*) *$/i.exec(value) : null;
  if (!match?.[1]) throw Fault.invalidCredential('malformed');
  return match[1];
}

/**
 * The session token in the cookie `session`, or null without one. It is accepted for a WebSocket's upgrade only (§5.4). Throws
 * `not_authenticated` for an API key, and for what cannot be a token.
 */
export function readSessionCookie(request: IncomingMessage): string | null {
  const [, token] = /(?:^|;)[ \t]*session=([^;]+)/.exec(request.headers.cookie ?? '') ?? [];
  if (token === undefined) return null;
  const text = token.trim();
  if (!/^[A-Za-z0-9\-._~+/]+=*$/.test(text) || looksLikeKey(text)) throw Fault.invalidCredential('malformed');
  return text;
}
