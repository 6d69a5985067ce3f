import { Dialog } from '@ariakit/react';
import { useLayoutEffect, useRef, useState } from 'react';
import { useLocation } from 'wouter';

/** Asks before leaving with unsaved changes: by a link, the back button, or closing the tab. */
export function Leaving({ isDirty, onLeave }: { isDirty: boolean; onLeave(): void }) {
  const [, navigate] = useLocation();
  const [proceed, setProceed] = useState<(() => void) | null>(null);
  const isAllowed = useRef(false);

  // The redirect after signing out is a layout effect, which this must not block: a layout effect is cleaned up before it.
  useLayoutEffect(() => {
    if (!isDirty) return;
    isAllowed.current = false;
    // Browsers without the Navigation API still keep the draft in memory.
    const { navigation } = window as { navigation?: Navigation };
    const onNavigate = (event: NavigateEvent) => {
      const to = new URL(event.destination.url);
      const isWithin = to.origin === location.origin && to.pathname === location.pathname;
      if (isAllowed.current || !event.cancelable || isWithin || event.downloadRequest !== null) return;
      event.preventDefault();
      const { key, sameDocument } = event.destination;
      const isBack = event.navigationType === 'traverse';
      setProceed(() => () => {
        isAllowed.current = true;
        if (isBack) navigation?.traverseTo(key);
        else if (sameDocument) navigate(to.pathname + to.search + to.hash);
        else location.assign(to);
      });
    };
    const onUnload = (event: BeforeUnloadEvent) => {
      if (!isAllowed.current) event.preventDefault();
    };
    navigation?.addEventListener('navigate', onNavigate);
    addEventListener('beforeunload', onUnload);
    return () => {
      navigation?.removeEventListener('navigate', onNavigate);
      removeEventListener('beforeunload', onUnload);
    };
  }, [isDirty, navigate]);

  const leave = () => {
    onLeave();
    proceed?.();
    setProceed(null);
  };
  return (
    <Dialog
      open={proceed !== null}
      onClose={() => setProceed(null)}
      className="dialog"
      aria-labelledby="leaving"
      backdrop={<div className="backdrop" />}
    >
      <h2 id="leaving">Leave without saving?</h2>
      <p>What you changed here is not saved, and is gone when you leave.</p>
      <div className="actions">
        <button type="button" className="button primary" onClick={() => setProceed(null)}>
          Stay here
        </button>
        <button type="button" className="button danger" onClick={leave}>
          Leave, and lose the changes
        </button>
      </div>
    </Dialog>
  );
}
