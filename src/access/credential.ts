import type { IncomingMessage } from 'node:http';
import { Fault } from '../kernel/fault.ts';

/** The bearer token of a request (§5.1), or null without one. Throws `not_authenticated` for two, or another scheme. */
export function readBearer(request: IncomingMessage): string | null {
  // Node keeps only the first of several: what another hop may have read as the credential must not be ignored.
  const values = request.headersDistinct.authorization ?? [];
  if (values.length === 0) return null;
  const [value = ''] = values;
  const match = /^Bearer +([A-Za-z0-9\-._~+/]+=*) *$/i.exec(value);
  if (values.length > 1 || !match?.[1]) throw Fault.notAuthenticated('The credential is not valid.');
  return match[1];
}
