import type { Session } from './session.ts';
import { askDemo } from './settings.ts';

/** How a new credential is had: of the demo for the same person, of the identity provider by its refresh token. */
export type Renewal = { readonly demo: string } | { readonly refreshToken: string };

export async function signInDemo(userId: string): Promise<Session> {
  const { token, expires } = await askDemo(userId);
  return { kind: 'demo', credential: token, expires: Date.parse(expires), renewal: { demo: userId } };
}

/** A session as good as the one before it, with a new credential. */
export async function renew(renewal: Renewal): Promise<Session> {
  if ('demo' in renewal) return signInDemo(renewal.demo);
  const { refresh } = await import('./provider.ts');
  return refresh(renewal.refreshToken);
}
