import type { Session } from './session.ts';
import { askDemo } from './settings.ts';

/** The source of a new credential: the demo, by the user's id, or the identity provider, by the refresh token. */
export type Renewal = { readonly demo: string } | { readonly refreshToken: string };

export async function signInDemo(userId: string): Promise<Session> {
  const { token, expires } = await askDemo(userId);
  return { kind: 'demo', credential: token, expires: Date.parse(expires), renewal: { demo: userId } };
}

/** The same session with a new credential. */
export async function renew(renewal: Renewal): Promise<Session> {
  if ('demo' in renewal) return signInDemo(renewal.demo);
  const { refresh } = await import('./provider.ts');
  return refresh(renewal.refreshToken);
}
