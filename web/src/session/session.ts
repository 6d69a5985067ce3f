/** The source of a new credential: the demo, by the user's id, or the identity provider, by the refresh token. */
export type Renewal = { readonly demo: string } | RefreshToken;

export interface RefreshToken {
  readonly refreshToken: string;
  /** Names the tokens that have been issued for each other. A provider may end the session of one that is used twice. */
  readonly family: string;
}

/** The credential of the user who is signed in, and its kind. Both are stored in memory and in the tab's sessionStorage. */
export interface Session {
  /** A pasted key or token, a demo user, or a user of the identity provider. */
  readonly kind: 'key' | 'token' | 'demo' | 'provider';
  readonly credential: string;
  /** When the credential expires, in milliseconds since 1970; null if unknown. */
  readonly expires: number | null;
  /** How the credential is renewed before it expires; null if it cannot be. */
  readonly renewal: Renewal | null;
}

/** The storage key. GraphiQL and the API reference read it too, from the sessionStorage that a tab opened by the desk inherits. */
const STORAGE_KEY = 'portico:session';

export function readSession(): Session | null {
  try {
    return JSON.parse(sessionStorage.getItem(STORAGE_KEY) ?? 'null');
  } catch {
    return null;
  }
}

export function writeSession(session: Session | null): void {
  if (session) sessionStorage.setItem(STORAGE_KEY, JSON.stringify(session));
  else {
    sessionStorage.removeItem(STORAGE_KEY);
    // Tabs that were opened by this one delete their copies.
    const channel = new BroadcastChannel(STORAGE_KEY);
    channel.postMessage('ended');
    channel.close();
  }
}

/** When a token expires (`exp`), in milliseconds since 1970; null for a key or an unreadable token. */
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
