import { useCallback, useEffect, useRef } from 'react';

/** Returns a function that says whether the component is still mounted, for a response that arrives late. */
export function useMounted(): () => boolean {
  const isMounted = useRef(false);
  useEffect(() => {
    isMounted.current = true;
    return () => {
      isMounted.current = false;
    };
  }, []);
  return useCallback(() => isMounted.current, []);
}
