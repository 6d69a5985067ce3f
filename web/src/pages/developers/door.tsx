import type { ReactNode } from 'react';

/** A link to another page of the server, in a new tab that inherits this tab's session through `rel="opener"`. */
export function Door({ to, children }: { to: string; children: ReactNode }) {
  return (
    // biome-ignore lint/security/noBlankTarget: the page is our own, and inherits the session this way.
    <a href={to} target="_blank" rel="opener">
      {children}
    </a>
  );
}
