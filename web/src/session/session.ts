import type { Renewal } from './renewal.ts';

/** Who is signed in, and how. It lives as long as the tab: in memory, and in its sessionStorage. */
export interface Session {
  /** A key or token that was pasted, a person of the demo, or somebody whom the identity provider knows. */
  readonly kind: 'key' | 'token' | 'demo' | 'provider';
  readonly credential: string;
  /** When the credential ends, in milliseconds since 1970; null: nobody knows. */
  readonly expires: number | null;
  /** How a new credential is had before this one ends; null: not at all. */
  readonly renewal: Renewal | null;
}

/** GraphiQL and the reference read it under this name, from the storage that a link of the desk hands to them. */
const NAME = 'portico:session';

export function readSession(): Session | null {
  try {
    return JSON.parse(sessionStorage.getItem(NAME) ?? 'null');
  } catch {
    return null;
  }
}

export function writeSession(session: Session | null): void {
  if (session) sessionStorage.setItem(NAME, JSON.stringify(session));
  else sessionStorage.removeItem(NAME);
}

/** When a token ends (`exp`), in milliseconds since 1970; null for a key, and for whatever cannot be read. */
export function readExpiry(credential: string): number | null {
  const [, payload] = credential.split('.');
  if (!payload) return null;
  try {
    const { exp } = JSON.parse(atob(payload.replaceAll('-', '+').replaceAll('_', '/')));
    return typeof exp === 'number' ? exp * 1000 : null;
  } catch {
    return null;
  }
}
