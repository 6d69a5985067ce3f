import { PorticoError } from 'portico-client';

/** A demo user, as whom one can sign in by one click. */
interface DemoPerson {
  readonly id: string;
  readonly name: string;
  readonly email: string;
}

/** The ways to sign in at this server: `GET /desk/settings`. */
export interface Settings {
  /** Null if there is no demo, or none for this machine. */
  readonly demo: { readonly people: readonly DemoPerson[]; readonly project_id: string } | null;
  readonly identity_provider: { readonly issuer: string; readonly client_id: string; readonly audience: string } | null;
}

/** How long a response is waited for: without its settings the page shows no way to sign in. */
const TIMEOUT_MS = 10_000;

let settings: Promise<Settings> | null = null;

export function loadSettings(): Promise<Settings> {
  settings ??= fetchJson('/desk/settings').catch((failure) => {
    settings = null;
    throw failure;
  });
  return settings;
}

/** Creates a session token for a demo user: `POST /desk/demo`. */
export function askDemo(userId: string): Promise<{ token: string; expires: string }> {
  return fetchJson('/desk/demo', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ user_id: userId }),
  });
}

async function fetchJson(path: string, init: RequestInit = {}) {
  const { response, body } = await requestJson(path, init);
  if (!response.ok) {
    throw new PorticoError(body.code ?? 'internal_error', body.detail ?? `The server answered ${response.status}.`, response.status);
  }
  return body;
}

/** A response of the server with its JSON object. Throws a `PorticoError` if there is none. */
export async function requestJson(path: string, init: RequestInit = {}) {
  const response = await fetch(path, { signal: AbortSignal.timeout(TIMEOUT_MS), ...init }).catch(() => {
    throw new PorticoError('unreachable', 'The server does not answer.');
  });
  const body = await response.json().catch(() => null);
  if (typeof body !== 'object' || body === null) {
    throw new PorticoError('unreachable', `The answer is not one of this server (${response.status}).`, response.status);
  }
  return { response, body };
}
