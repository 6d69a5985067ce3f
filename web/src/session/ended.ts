import { useEffect } from 'react';
import { useDesk } from './desk.tsx';

/** Signs out once the server has rejected the credential: the code of a failure is `not_authenticated`. */
export function useEnded(code: string | undefined): boolean {
  const { signOut } = useDesk();
  const isEnded = code === 'not_authenticated';
  useEffect(() => {
    if (isEnded) signOut('not_authenticated');
  }, [isEnded, signOut]);
  return isEnded;
}
