import type { ReactNode } from 'react';

/** A page of the server beside the desk, in a tab that has the session of this one: `opener` hands it on. */
export function Door({ to, children }: { to: string; children: ReactNode }) {
  return (
    // biome-ignore lint/security/noBlankTarget: the page is our own, and has the session by this.
    <a href={to} target="_blank" rel="opener">
      {children}
    </a>
  );
}
