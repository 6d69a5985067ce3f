import { PorticoError } from 'portico-client';
import type { Renewal, Session } from './session.ts';
import { askDemo } from './settings.ts';

export async function signInDemo(userId: string): Promise<Session> {
  const { token, expires } = await askDemo(userId);
  return { kind: 'demo', credential: token, expires: Date.parse(expires), renewal: { demo: userId } };
}

/** The code that asks the identity provider. It is loaded only for the sessions that need it. */
export const loadProvider = () => import('./provider.ts');

/** The same session with a new credential; null if its source issues no new one, whenever it is asked again. */
export async function renew(renewal: Renewal): Promise<Session | null> {
  if ('demo' in renewal) {
    return signInDemo(renewal.demo).catch((failure) => {
      if (failure instanceof PorticoError && failure.status === 404) return null;
      throw failure;
    });
  }
  const { refresh } = await loadProvider();
  return refresh(renewal);
}
