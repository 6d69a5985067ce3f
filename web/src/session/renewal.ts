import type { Renewal, Session } from './session.ts';
import { askDemo } from './settings.ts';

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
